"""Requests and answers as OpenAI's API has them: chat completions and responses.

Invariants: a part that is not understood is refused by name, never left out; so is a field of another type than it has
there. Both forms become one `Asked`, and one `ApiAnswer` becomes either form, so that no rule is written twice.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

from agents.llm import ChatMessage, Picture, Role, ToolCall, ToolSpec
from gateway.api.callers import ApiRefusal
from gateway.reading.attachments import picture_type
from memory.store.usage import Spent

JSON: TypeAlias = dict[str, Any]
Form: TypeAlias = Literal["chat", "response"]

_PLAIN: Final = ("text", "input_text", "output_text")
_SEEN: Final = ("image_url", "input_image")
#: The most messages of a request and characters in them, and the most tools or calls of tools; OpenAI takes as many
#: tools. No model reads more text.
_MOST_MESSAGES: Final = 2_000
_MOST_TEXT: Final = 2_000_000
_MOST_TOOLS: Final = 128
#: The largest whole number that means anything here.
_LARGEST: Final = 2**31
_ROLES: Final[Mapping[str, Role]] = {one: one for one in get_args(Role)} | {"developer": "system"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request for an answer, in either form. `conversation` is the one that its body names; "" if it names none.

    With `must_call` the answer is to call one of the `tools`. With a `json_schema` it is to be JSON of that schema, to
    which servers shall hold it if `strict`.
    """

    form: Form
    model: str
    messages: tuple[ChatMessage, ...]
    stream: bool
    usage: bool
    user: str
    conversation: str
    tools: tuple[ToolSpec, ...] = ()
    must_call: bool = False
    json_schema: JSON | None = None
    strict: bool = False
    temperature: float | None = None
    max_tokens: int | None = None

    @property
    def instructions(self) -> str:
        return "\n".join(one.content for one in self.messages if one.role == "system" and one.content.strip())

    @property
    def said(self) -> str:
        """The person's newest words. Raises `ApiRefusal` if the last message is no person's."""
        last = self.messages[-1] if self.messages else None
        if last is None or last.role != "user" or not (last.content.strip() or last.pictures):
            message = "The last message must be the person's, with text or a picture."
            raise ApiRefusal(400, "no_message", message, param="messages")
        return last.content

    @property
    def talk(self) -> list[ChatMessage]:
        return [one for one in self.messages if one.role != "system"]

    @property
    def has_history(self) -> bool:
        return len(self.talk) > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiAnswer:
    """A complete answer. `turn` is that of the agent; None if the model answered alone."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    spent: Spent | None = None
    cut: bool = False
    turn: int | None = None


def asked(body: JSON, form: Form) -> Asked:
    """Returns the request in a body. Raises `ApiRefusal`."""
    param = "messages" if form == "chat" else "input"
    messages = [_message(item, param) for item in _items(body, param)]
    if own := _text(body, "instructions", ""):
        messages.insert(0, ChatMessage(role="system", content=own))
    if sum(len(one.content) for one in messages) > _MOST_TEXT:
        message = f"A request may hold at most {_MOST_TEXT:,} characters of text."
        raise ApiRefusal(400, "context_length_exceeded", message, param=param)
    for name, only in (("n", 1), ("background", False), ("logprobs", False)):
        if body.get(name, only) not in (only, None):
            raise ApiRefusal(400, "unsupported", f"{name} can only be {json.dumps(only)} here.", param=name)
    most = [_whole(body, name) for name in ("max_completion_tokens", "max_tokens", "max_output_tokens")]
    return Asked(
        form=form,
        model=_text(body, "model"),
        messages=tuple(messages),
        stream=_flag(body, "stream"),
        usage=_flag(_fields(body, "stream_options"), "include_usage"),
        user=_text(body, "user", ""),
        conversation=_conversation(body),
        tools=tuple(_tool(one) for one in _list(body, "tools", most=_MOST_TOOLS)),
        must_call=body.get("tool_choice") not in (None, "auto", "none"),
        json_schema=_schema(body),
        strict=_is_strict(body),
        temperature=_number(body, "temperature"),
        max_tokens=next((given for given in most if given is not None and given > 0), None),
    )


def failed(refusal: ApiRefusal) -> JSON:
    kinds = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
    kind = kinds.get(refusal.status, "invalid_request_error" if refusal.status < 500 else "server_error")
    return {"error": {"message": str(refusal), "type": kind, "param": refusal.param, "code": refusal.code}}


class Answering:
    def __init__(self, request: Asked, answer_id: str, at: int) -> None:
        """`at` is in seconds UTC."""
        self._request = request
        self._id = answer_id
        self._at = at
        self._n = 0

    def whole(self, said: ApiAnswer) -> JSON:
        if self._request.form == "response":
            return self._response("completed", said)
        message: JSON = {"role": "assistant", "content": said.text or None, "refusal": None}
        if said.calls:
            message["tool_calls"] = [_call(one) for one in said.calls]
        choice = {"index": 0, "message": message, "finish_reason": _finish(said), "logprobs": None}
        return self._chat("chat.completion", [choice], usage=_usage(said.spent), **_turn(said))

    def begin(self) -> Iterator[bytes]:
        if self._request.form == "chat":
            yield self._chunk({"role": "assistant", "content": ""})
            return
        yield self._event("response.created", response=self._response("in_progress"))
        yield self._event("response.in_progress", response=self._response("in_progress"))
        yield self._event("response.output_item.added", output_index=0, item=self._item("in_progress", None))
        yield self._event("response.content_part.added", **self._at_part(), part=_part(""))

    def piece(self, text: str) -> bytes:
        """Returns the event for a piece of the text; "" only keeps the connection open."""
        if not text:
            return b": keep-alive\n\n"
        if self._request.form == "chat":
            return self._chunk({"content": text})
        return self._event("response.output_text.delta", **self._at_part(), delta=text, logprobs=[])

    def end(self, said: ApiAnswer) -> Iterator[bytes]:
        if self._request.form == "chat":
            if said.calls:
                yield self._chunk({"tool_calls": [{"index": n, **_call(one)} for n, one in enumerate(said.calls)]})
            yield self._chunk({}, finish=_finish(said), **_turn(said))
            if self._request.usage:
                yield _data(self._chat("chat.completion.chunk", [], usage=_usage(said.spent)))
            yield b"data: [DONE]\n\n"
            return
        yield self._event("response.output_text.done", **self._at_part(), text=said.text, logprobs=[])
        yield self._event("response.content_part.done", **self._at_part(), part=_part(said.text))
        yield self._event("response.output_item.done", output_index=0, item=self._item("completed", said.text))
        for n, one in enumerate(said.calls, 1):
            item = _called(one)
            yield self._event("response.output_item.added", output_index=n, item=item | {"arguments": ""})
            at: JSON = {"item_id": item["id"], "output_index": n}
            yield self._event("response.function_call_arguments.delta", **at, delta=one.arguments)
            yield self._event("response.function_call_arguments.done", **at, arguments=one.arguments, name=one.name)
            yield self._event("response.output_item.done", output_index=n, item=item)
        yield self._event("response.completed", response=self._response("completed", said))

    def broken(self, refusal: ApiRefusal) -> bytes:
        if self._request.form == "chat":
            return _data(failed(refusal))
        return self._event("error", code=refusal.code, message=str(refusal), param=None)

    def _chunk(self, delta: JSON, *, finish: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return _data(self._chat("chat.completion.chunk", [choice], **more))

    def _chat(self, kind: str, choices: list[JSON], **more: Any) -> JSON:
        head = {"id": self._id, "object": kind, "created": self._at, "model": self._request.model}
        return {**head, "choices": choices, **more}

    def _event(self, kind: str, **fields: Any) -> bytes:
        event = {"type": kind, "sequence_number": self._n, **fields}
        self._n += 1
        return b"event: " + kind.encode() + b"\n" + _data(event)

    def _at_part(self) -> JSON:
        return {"item_id": f"msg_{self._id}", "output_index": 0, "content_index": 0}

    def _item(self, status: str, text: str | None) -> JSON:
        content = [] if text is None else [_part(text)]
        of = {"type": "message", "role": "assistant", "status": status, "content": content}
        return {"id": f"msg_{self._id}", **of}

    def _response(self, status: str, said: ApiAnswer | None = None) -> JSON:
        output = [] if said is None else [self._item("completed", said.text), *(_called(one) for one in said.calls)]
        usage, turn = (None, {}) if said is None else (_usage(said.spent, form="response"), _turn(said))
        return {
            "id": self._id, "object": "response", "created_at": self._at, "status": status,
            "model": self._request.model, "output": output, "usage": usage, "error": None,
            "incomplete_details": None, "instructions": None, "metadata": turn, "parallel_tool_calls": True,
            "previous_response_id": None, "temperature": self._request.temperature, "tool_choice": "auto",
            "tools": [], "top_p": None,
        }  # fmt: skip


def _items(body: JSON, param: str) -> list[Any]:
    given = body.get(param)
    if isinstance(given, str) and param == "input":
        return [{"role": "user", "content": given}]
    if not isinstance(given, list) or not given or len(given) > _MOST_MESSAGES:
        message = f"{param} must be a list of messages, of which there may be {_MOST_MESSAGES:,}."
        raise ApiRefusal(400, "invalid_request", message, param=param)
    return given


def _message(item: object, param: str) -> ChatMessage:
    if not isinstance(item, dict):
        raise ApiRefusal(400, "invalid_request", f"{param} must hold objects.", param=param)
    match _text(item, "type", "message"):
        case "function_call":
            wanted = ToolCall(id=_text(item, "call_id"), name=_text(item, "name"), arguments=_text(item, "arguments"))
            return ChatMessage(role="assistant", content="", tool_calls=(wanted,))
        case "function_call_output":
            return ChatMessage(role="tool", content=_words(item.get("output")), tool_call_id=_text(item, "call_id"))
        case "message":
            pass
        case other:
            raise ApiRefusal(400, "unsupported", f"Items of type {other[:80]!r} can't be read here.", param=param)
    role = _ROLES.get(named := _text(item, "role"))
    if role is None:
        raise ApiRefusal(400, "invalid_request", f"{named[:80]!r} is no role of a message.", param=param)
    return ChatMessage(
        role=role,
        content=_words(item.get("content")),
        pictures=_pictures(item.get("content")) if role == "user" else (),
        tool_calls=tuple(_wanted(one) for one in _list(item, "tool_calls", most=_MOST_TOOLS)),
        tool_call_id=(_text(item, "tool_call_id", "") or None) if role == "tool" else None,
    )


def _words(content: object) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise _unreadable("content", "a text or a list of parts")
    texts = []
    for part in content:
        kind = _text(part, "type", "") if isinstance(part, dict) else ""
        if kind not in (*_PLAIN, *_SEEN):
            message = f"Only text and pictures can be read here, and this message has a part {kind[:80]!r}."
            raise ApiRefusal(400, "unsupported", message, param="content")
        if kind in _PLAIN:
            texts.append(_text(part, "text"))
    return "\n".join(texts)


def _pictures(content: object) -> tuple[Picture, ...]:
    """Returns the pictures of a message. Raises `ApiRefusal` unless it holds them itself."""
    pictures = []
    for part in content if isinstance(content, list) else ():
        if part["type"] not in _SEEN:
            continue
        named = part.get("image_url")
        url = named.get("url") if isinstance(named, dict) else named
        if not isinstance(url, str) or not url.startswith("data:"):
            message = "Send the picture itself, as a data: URL. Pictures are not fetched from other addresses."
            raise ApiRefusal(400, "unsupported", message, param="image_url")
        head, _, body = url.partition(",")
        try:
            data = base64.b64decode(body, validate=True) if head.endswith(";base64") else b""
        except ValueError:  # no base64, or not even ASCII
            data = b""
        media_type = picture_type(data)
        if media_type is None:
            message = "A picture must be a PNG, JPEG, GIF or WebP in base64."
            raise ApiRefusal(400, "invalid_image", message, param="image_url")
        pictures.append(Picture(media_type=media_type, data=data))
    return tuple(pictures)


def _wanted(call: object) -> ToolCall:
    if not isinstance(call, dict):
        raise _unreadable("tool_calls", "calls of functions")
    function = _fields(call, "function")
    return ToolCall(id=_text(call, "id"), name=_text(function, "name"), arguments=_text(function, "arguments"))


def _tool(tool: object) -> ToolSpec:
    if not isinstance(tool, dict) or tool.get("type") != "function":
        raise ApiRefusal(400, "unsupported", "Only tools of the type function can be passed on.", param="tools")
    spec = _fields(tool, "function") or tool
    return ToolSpec(
        name=_text(spec, "name"), description=_text(spec, "description", ""), parameters=_fields(spec, "parameters")
    )


def _schema(body: JSON) -> JSON | None:
    """Returns the schema of the JSON that is asked for, {} for any JSON; None if words are asked for."""
    match body.get("response_format") or _fields(body, "text").get("format"):
        case None | {"type": "text"}:
            return None
        case {"type": "json_object"}:
            return {}
        case {"type": "json_schema", "json_schema": {"schema": dict(schema)}} | {
            "type": "json_schema",
            "schema": dict(schema),
        }:
            return schema
    raise ApiRefusal(400, "unsupported", "This format of an answer is not known here.", param="response_format")


def _is_strict(body: JSON) -> bool:
    form = _fields(body, "response_format") or _fields(_fields(body, "text"), "format")
    return _flag(_fields(form, "json_schema") or form, "strict")


def _conversation(body: JSON) -> str:
    given = body.get("conversation")
    if named := _text(given, "id") if isinstance(given, dict) else _text(body, "conversation", ""):
        return named
    before = _text(body, "previous_response_id", "")
    if not before:
        return ""
    head, _, rest = before.partition("_")
    own = rest.partition("_")[0]
    if head != "resp" or not own:
        message = "This is not the id of an answer from here."
        raise ApiRefusal(400, "invalid_request", message, param="previous_response_id")
    return own


# Fields: a reader refuses by its name what is of another type, and takes null like a field that is left out -----------


def _text(body: Mapping[str, Any], name: str, default: str | None = None) -> str:
    value = body.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        raise _unreadable(name, "a text")
    return value


def _number(body: Mapping[str, Any], name: str) -> float | None:
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise _unreadable(name, "a number")
    return float(value)


def _whole(body: Mapping[str, Any], name: str) -> int | None:
    value = body.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or abs(value) > _LARGEST):
        raise _unreadable(name, "a whole number")
    return value


def _flag(body: Mapping[str, Any], name: str) -> bool:
    value = body.get(name)
    if value is not None and not isinstance(value, bool):
        raise _unreadable(name, "true or false")
    return bool(value)


def _list(body: Mapping[str, Any], name: str, *, most: int) -> list[Any]:
    value = body.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or len(value) > most:
        raise _unreadable(name, f"a list of at most {most}")
    return value


def _fields(body: Mapping[str, Any], name: str) -> JSON:
    value = body.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _unreadable(name, "an object")
    return value


def _unreadable(name: str, meant: str) -> ApiRefusal:
    return ApiRefusal(400, "invalid_request", f"{name} must be {meant}.", param=name)


def _finish(said: ApiAnswer) -> str:
    return "tool_calls" if said.calls else "length" if said.cut else "stop"


def _turn(said: ApiAnswer) -> dict[str, str]:
    """Returns the member that names an answer's turn: a stream may begin before the turn is known."""
    return {} if said.turn is None else {"remora_turn": str(said.turn)}


def _call(call: ToolCall) -> JSON:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _called(call: ToolCall) -> JSON:
    return {
        "id": f"fc_{call.id}", "type": "function_call", "status": "completed",
        "call_id": call.id, "name": call.name, "arguments": call.arguments,
    }  # fmt: skip


def _part(text: str) -> JSON:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _usage(spent: Spent | None, form: Form = "chat") -> JSON:
    read, written, cached = (
        (0, 0, 0) if spent is None else (spent.input_tokens, spent.output_tokens, spent.cached_tokens)
    )
    if form == "response":
        return {
            "input_tokens": read, "input_tokens_details": {"cached_tokens": cached},
            "output_tokens": written, "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": read + written,
        }  # fmt: skip
    return {
        "prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written,
        "prompt_tokens_details": {"cached_tokens": cached},
    }  # fmt: skip


def _data(fields: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace") + b"\n\n"


def total(spent: Sequence[Spent]) -> Spent | None:
    if not spent:
        return None
    return Spent(
        model=spent[-1].model,
        input_tokens=sum(one.input_tokens for one in spent),
        output_tokens=sum(one.output_tokens for one in spent),
        cached_tokens=sum(one.cached_tokens for one in spent),
        estimated=any(one.estimated for one in spent),
    )
