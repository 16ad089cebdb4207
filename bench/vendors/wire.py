"""The shapes in which vendors send an answer: whole, or as server-sent events.

Invariants: the same `Reply` gives the same text and calls in every shape. A field stands here because a vendor's
documentation, or a report with a recorded stream, shows it.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from string import ascii_letters, digits
from typing import Any, Final, Literal, TypeAlias

JSON: TypeAlias = dict[str, Any]

#: Why an answer ended, in OpenAI's words; a vendor's table has its own.
Finish: TypeAlias = Literal["stop", "tool_calls", "length", "content_filter", "error"]


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call. `arguments` is JSON, or whatever a case has the model write instead."""

    id: str
    name: str
    arguments: Any = "{}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the model says. `proof` is the opaque text that some vendors want back with the calls.

    `read`, `cached` and `written` are tokens; `cached` is a part of `read`.
    """

    text: str = ""
    thought: str = ""
    proof: str = ""
    calls: tuple[Call, ...] = ()
    finish: Finish = "stop"
    read: int = 100
    cached: int = 0
    written: int = 10


@dataclass(frozen=True, slots=True)
class Refusal:
    status: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How a vendor writes answers.

    `thought` is the field of thoughts: a name, `details` (OpenRouter), `chunks` (Mistral), `tags` in the text, or
    none. `calls` says how a stream brings calls: in `pieces`, `whole`, or whole and `bare` of an index. `usage` says
    where a stream counts tokens: in a chunk `apart` if the request wants that, in the `last` chunk, in its `choice`, in
    `x_groq`, or in `each` chunk as a running total.
    """

    thought: str = ""
    calls: Literal["pieces", "whole", "bare"] = "pieces"
    usage: Literal["apart", "last", "choice", "x_groq", "each"] = "apart"
    #: A stream's finish reason after calls, where it is another than `tool_calls`.
    streamed_calls: str = "tool_calls"
    cached: str = "prompt_tokens_details"
    comment: str = ""
    #: The form of the ids of calls: <12> stands for twelve random bytes in hexadecimal.
    id: str

    def new_id(self, tool: str) -> str:
        made = {
            "nine": "".join(secrets.choice(ascii_letters + digits) for _ in range(9)),
            "number": str(secrets.randbelow(10**9)),
        }
        return re.sub(
            r"<(\w+)>", lambda part: made.get(part[1]) or secrets.token_hex(int(part[1])), self.id.format(name=tool)
        )


def pieces(text: str, size: int = 7) -> Iterator[str]:
    for start in range(0, len(text), size):
        yield text[start : start + size]


def _usage(shape: Shape, reply: Reply) -> JSON:
    usage: JSON = {
        "prompt_tokens": reply.read, "completion_tokens": reply.written, "total_tokens": reply.read + reply.written,
    }  # fmt: skip
    if shape.cached == "hit":
        usage |= {"prompt_cache_hit_tokens": reply.cached, "prompt_cache_miss_tokens": reply.read - reply.cached}
    elif shape.cached == "flat":
        usage |= {"cached_tokens": reply.cached}
    elif shape.cached:
        usage |= {shape.cached: {"cached_tokens": reply.cached}}
    return usage


def _details(reply: Reply, text: str, *, end: bool) -> list[JSON]:
    form = {"format": "google-gemini-v1"}
    entries = [{"type": "reasoning.text", "text": text, "index": 0, **form}] if text else []
    if end and reply.proof:
        sealed = {"type": "reasoning.encrypted", "data": reply.proof, "index": 1, **form}
        entries.append(sealed | ({"id": reply.calls[0].id} if reply.calls else {}))
    return entries


def _thought(shape: Shape, reply: Reply, part: str, *, end: bool) -> JSON:
    """Returns the fields with a part of what the model thought, the last one at the `end`."""
    match shape.thought:
        case "tags":
            return {"content": part}
        case "chunks":
            return {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": part}]}]}
        case "details":
            return {"content": "", **({"reasoning": part} if part else {}),
                    "reasoning_details": _details(reply, part, end=end)}  # fmt: skip
        case name:
            return {"content": "" if name == "reasoning" else None, name: part}


def _calls(shape: Shape, reply: Reply) -> list[JSON]:
    calls: list[JSON] = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in reply.calls
    ]
    if calls and shape.calls == "bare" and reply.proof:
        calls[0]["extra_content"] = {"google": {"thought_signature": reply.proof}}
    return calls


def deltas(shape: Shape, reply: Reply) -> Iterator[JSON]:
    """Yields the deltas of a stream: the role, thoughts, words, calls, and the empty one that ends it."""
    yield {"role": "assistant", "content": ""}
    if reply.thought and shape.thought:
        parts = [*pieces(reply.thought, 16)]
        parts = ["<think>", *parts, "</think>\n\n"] if shape.thought == "tags" else parts
        yield from (_thought(shape, reply, part, end=False) for part in parts)
        if shape.thought == "details":
            yield _thought(shape, reply, "", end=True)
    yield from ({"content": part} for part in pieces(reply.text))
    for index, call in enumerate(_calls(shape, reply)):
        placed, written = {} if shape.calls == "bare" else {"index": index}, call["function"]["arguments"]
        if shape.calls != "pieces" or not isinstance(written, str):
            yield {"tool_calls": [call | placed]}
            continue
        yield {"tool_calls": [{**call, **placed, "function": {**call["function"], "arguments": ""}}]}
        yield from ({"tool_calls": [{**placed, "function": {"arguments": part}}]} for part in pieces(written, 5))
    if shape.calls == "bare" and reply.proof and not reply.calls:
        # Gemini signs answers, too, in a delta of their own.
        yield {"content": "", "extra_content": {"google": {"thought_signature": reply.proof}}}
    yield {}


def chunks(shape: Shape, reply: Reply, body: JSON) -> Iterator[JSON]:
    head = {"id": f"chatcmpl-{secrets.token_hex(6)}", "object": "chat.completion.chunk", "created": 1_790_000_000,
            "model": body.get("model")}  # fmt: skip
    usage = {"usage": _usage(shape, reply)}
    finish = shape.streamed_calls if reply.finish == "tool_calls" else reply.finish
    for delta in deltas(shape, reply):
        counts = shape.usage if not delta or shape.usage == "each" else ""
        choice = {"index": 0, "delta": delta, "finish_reason": None if delta else finish}
        choice |= usage if counts == "choice" else {}
        more = (
            usage if counts in {"last", "each"} else {"x_groq": {"id": "req_1", **usage}} if counts == "x_groq" else {}
        )
        yield {**head, "choices": [choice], **more}
    if shape.usage in {"apart", "x_groq"} and (body.get("stream_options") or {}).get("include_usage"):
        yield {**head, "choices": [], **usage}


def whole(shape: Shape, reply: Reply, body: JSON) -> JSON:
    thinks = bool(reply.thought and shape.thought)
    message: JSON = {"role": "assistant", **(_thought(shape, reply, reply.thought, end=True) if thinks else {})}
    if thinks and shape.thought == "chunks":
        message["content"] += [{"type": "text", "text": reply.text}] if reply.text else []
    elif thinks and shape.thought == "tags":
        message["content"] = f"<think>{reply.thought}</think>\n\n{reply.text}"
    else:
        message["content"] = reply.text or None
    if reply.calls:
        message["tool_calls"] = _calls(shape, reply)
    return {
        "id": f"chatcmpl-{secrets.token_hex(6)}", "object": "chat.completion", "created": 1_790_000_000,
        "model": body.get("model"), "usage": _usage(shape, reply),
        "choices": [{"index": 0, "message": message, "finish_reason": reply.finish}],
    }  # fmt: skip


def event(data: Any, name: str = "") -> bytes:
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()


def events(shape: Shape, reply: Reply, body: JSON) -> list[bytes]:
    """Returns the events of a stream in OpenAI's form, the closing one last."""
    comment = [f": {shape.comment}\n\n".encode()] if shape.comment else []
    return [*comment, *map(event, chunks(shape, reply, body)), event("[DONE]")]


STOPS: Final = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "content_filter": "refusal"}


def blocks(reply: Reply) -> list[JSON]:
    """Returns the blocks of an answer in Anthropic's form. A proof without thoughts is of some that are withheld."""
    thought = {"type": "thinking", "thinking": reply.thought, "signature": reply.proof}
    if not reply.thought:
        thought = {"type": "redacted_thinking", "data": reply.proof}
    uses = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.arguments)}
        for call in reply.calls
    ]
    return [*([thought] if reply.proof else []), *([{"type": "text", "text": reply.text}] if reply.text else []), *uses]


def _parts(block: JSON) -> tuple[JSON, list[JSON]]:
    """Returns a block as it begins in a stream, and what is added to it."""
    match block["type"]:
        case "thinking":
            parts = [{"type": "thinking_delta", "thinking": part} for part in pieces(block["thinking"], 16)]
            return block | {"thinking": "", "signature": ""}, [
                *parts, {"type": "signature_delta", "signature": block["signature"]},
            ]  # fmt: skip
        case "text":
            return block | {"text": ""}, [{"type": "text_delta", "text": part} for part in pieces(block["text"])]
        case "tool_use":
            written = json.dumps(block["input"]) if block["input"] else ""
            return block | {"input": {}}, [
                {"type": "input_json_delta", "partial_json": part} for part in ["", *pieces(written, 5)]
            ]
        case _:
            return block, []


def message(reply: Reply, body: JSON) -> JSON:
    usage = {
        "input_tokens": reply.read - reply.cached, "cache_read_input_tokens": reply.cached,
        "cache_creation_input_tokens": 0, "output_tokens": reply.written,
    }  # fmt: skip
    return {
        "id": f"msg_{secrets.token_hex(10)}", "type": "message", "role": "assistant", "model": body.get("model"),
        "content": blocks(reply), "stop_reason": STOPS[reply.finish], "stop_sequence": None, "usage": usage,
    }  # fmt: skip


def message_events(reply: Reply, body: JSON) -> list[bytes]:
    """Returns the events of a stream in Anthropic's form, the closing one last."""
    full = message(reply, body)
    start = full | {"content": [], "stop_reason": None, "usage": full["usage"] | {"output_tokens": 1}}
    sent: list[JSON] = [{"type": "message_start", "message": start}, {"type": "ping"}]
    for index, block in enumerate(full["content"]):
        opening, parts = _parts(block)
        sent.append({"type": "content_block_start", "index": index, "content_block": opening})
        sent += [{"type": "content_block_delta", "index": index, "delta": part} for part in parts]
        sent.append({"type": "content_block_stop", "index": index})
    stop = {"stop_reason": full["stop_reason"], "stop_sequence": None}
    sent.append({"type": "message_delta", "delta": stop, "usage": {"output_tokens": reply.written}})
    return [event(one, str(one["type"])) for one in [*sent, {"type": "message_stop"}]]
