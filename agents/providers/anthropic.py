"""Speaks Anthropic's Messages API.

Marks for the prompt cache stand after the system's text and the tools, which stay the same from turn to turn, and after
the last message but one. The wire format follows Anthropic's API reference ("Messages", "Streaming messages", "Prompt
caching", "Extended thinking").
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence, Set
from typing import Any

from agents.llm import ChatMessage, Request, Usage
from agents.providers import opaque
from agents.providers.adapter import UNSEEN, Adapter
from agents.providers.answer import Assembled, json_object, token_count
from agents.providers.quirks import Quirk, most_tokens
from agents.providers.roles import without_tools

_VERSION = "2023-06-01"
#: The API wants a limit with every request.
_ANSWER_TOKENS = 4096
_CACHED = {"type": "ephemeral"}


class AnthropicProvider(Adapter):
    path = "/messages"
    caches = True

    def headers(self) -> dict[str, str]:
        key = {"x-api-key": self._server.key} if self._server.key else {}
        return {"anthropic-version": _VERSION, **key}

    def body(self, request: Request, messages: Sequence[ChatMessage], quirks: Set[Quirk]) -> dict[str, Any]:
        model = self._model
        if not request.tools:  # calls in the conversation are refused where no tool is offered
            messages = without_tools(messages)
        limit = (model.max_tokens if request.max_tokens is None else request.max_tokens) or _ANSWER_TOKENS
        most = most_tokens(quirks)
        cached = {} if "cache_control" in quirks else {"cache_control": _CACHED}
        body: dict[str, Any] = {
            "model": model.model,
            "messages": _conversation(messages, shown="pictures" not in quirks, cached=cached),
            "max_tokens": min(limit, most or limit),
            "stream": "stream" not in quirks,
        }
        system = "\n\n".join(message.content for message in messages if message.role == "system")
        if system:
            body["system"] = [{"type": "text", "text": system, **cached}]
        if request.tools:
            body["tools"] = [
                {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
                for tool in request.tools
            ]
            body["tools"][-1] |= cached
        if model.thinking is not None and "budget" not in quirks and not request.json_mode and _may_think(messages):
            longest = max(limit, model.thinking + _ANSWER_TOKENS)
            longest = min(longest, most or longest)
            budget = min(model.thinking, longest - min(_ANSWER_TOKENS, longest // 2))
            body["max_tokens"] = longest
            body["thinking"] = {"type": "enabled", "budget_tokens": budget}
            if "adaptive" in quirks:
                body["thinking"] = {"type": "adaptive"}
            return body | model.extra_body  # no temperature beside it
        warmth = model.temperature if request.temperature is None else request.temperature
        if warmth is not None and "temperature" not in quirks and (warmth > 0 or "cold" not in quirks):
            body["temperature"] = min(warmth, 1.0)
        if model.top_p is not None and "top_p" not in quirks:
            body["top_p"] = model.top_p
        return body | model.extra_body

    def is_answer(self, whole: Mapping[str, Any]) -> bool:
        return "content" in whole or "error" in whole

    def add(self, answer: Assembled, chunk: dict[str, Any]) -> str:
        match chunk.get("type"):
            case "message_start" if isinstance(chunk.get("message"), dict):
                self._add_head(answer, chunk["message"])
            case "message":
                return self._add_whole(answer, chunk)
            case "content_block_start" if isinstance(chunk.get("content_block"), dict):
                block = chunk["content_block"]
                self._add_call(answer, block, chunk.get("index"), whole=False)
                self._add_thought(answer, block, chunk.get("index"))
                return answer.add_text(block["text"]) if isinstance(block.get("text"), str) else ""
            case "content_block_delta" if isinstance(chunk.get("delta"), dict):
                delta = chunk["delta"]
                answer.streamed = True
                if isinstance(delta.get("text"), str):
                    return answer.add_text(delta["text"])
                if isinstance(delta.get("partial_json"), str):
                    answer.add_call(index=chunk.get("index"), arguments=delta["partial_json"])
                self._add_thought(answer, delta, chunk.get("index"))
            case "message_delta":
                delta = chunk.get("delta")
                answer.finished(_finish(delta.get("stop_reason")) if isinstance(delta, dict) else None)
                self._add_usage(answer, chunk.get("usage"))
            case "message_stop":
                answer.ended = True
        return ""

    def _add_whole(self, answer: Assembled, message: dict[str, Any]) -> str:
        self._add_head(answer, message)
        answer.finished(_finish(message.get("stop_reason")))
        content = message.get("content")
        blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
        called = any(block.get("type") == "tool_use" for block in blocks) and answer.wants_calls()
        thought = not (answer.streamed and answer.fields.values)
        for index, block in enumerate(blocks):
            if called:
                self._add_call(answer, block, index, whole=True)
            if thought:
                self._add_thought(answer, block, index)
        return answer.add_whole("".join(block["text"] for block in blocks if isinstance(block.get("text"), str)))

    def _add_head(self, answer: Assembled, message: dict[str, Any]) -> None:
        answer.named(message.get("model"))
        self._add_usage(answer, message.get("usage"))

    def _add_call(self, answer: Assembled, block: dict[str, Any], index: object, *, whole: bool) -> None:
        if block.get("type") != "tool_use":
            return
        # A stream begins with an empty input and sends its text afterwards; some servers begin with all of it.
        answer.add_call(
            index=index,
            call_id=block.get("id"),
            name=block.get("name"),
            arguments=block.get("input") if whole else None,
            given=None if whole else block.get("input"),
        )

    def _add_thought(self, answer: Assembled, part: Mapping[str, Any], index: object) -> None:
        """Adds a block of a thought, or a piece of it. They go back before the calls of the answer."""
        if part.get("type") in ("thinking", "redacted_thinking"):
            answer.fields.add({opaque.BLOCKS: [{**part, "index": index}]})
        elif part.get("type") in ("thinking_delta", "signature_delta"):
            piece = {name: part[name] for name in ("thinking", "signature") if isinstance(part.get(name), str)}
            answer.fields.add({opaque.BLOCKS: [{**piece, "type": "thinking", "index": index}]})

    def _add_usage(self, answer: Assembled, raw: object) -> None:
        """Adds the tokens that the server counted. It counts cached tokens apart and reports the answer's last."""
        if not isinstance(raw, dict):
            return
        before = answer.usage or Usage()
        cached = token_count(raw.get("cache_read_input_tokens"))
        read = token_count(raw.get("input_tokens"))
        written = token_count(raw.get("output_tokens"))
        if read is None and written is None:
            return
        made = token_count(raw.get("cache_creation_input_tokens")) or 0
        answer.usage = Usage(
            input_tokens=before.input_tokens if read is None else read + (cached or 0) + made,
            output_tokens=before.output_tokens if written is None else written,
            cached_tokens=before.cached_tokens if cached is None else cached,
        )


def _finish(reason: object) -> object:
    names = {"end_turn": "stop", "stop_sequence": "stop", "tool_use": "tool_calls", "refusal": "content_filter"}
    return names.get(reason, reason) if isinstance(reason, str) else None


def _may_think(messages: Sequence[ChatMessage]) -> bool:
    """Returns whether each call since the person spoke has its thoughts: the API wants them back with the result."""
    for message in reversed(messages):
        if message.role == "user":
            break
        if message.tool_calls and not _thoughts(message):
            return False
    return True


def _thoughts(message: ChatMessage) -> list[dict[str, Any]]:
    blocks = message.opaque.message.get(opaque.BLOCKS, []) if message.opaque is not None else []
    return [{name: value for name, value in block.items() if name != "index"} for block in blocks]


def _conversation(messages: Sequence[ChatMessage], *, shown: bool, cached: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the messages as blocks. Tool results belong to the person, and messages of one role in a row are one."""
    wire: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "system":
            continue
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _blocks(message, shown=shown)
        if wire and wire[-1]["role"] == role:
            wire[-1]["content"] += blocks
        else:
            wire.append({"role": role, "content": blocks})
    if len(wire) > 1:
        wire[-2]["content"][-1] |= cached
    return wire


def _blocks(message: ChatMessage, *, shown: bool) -> list[dict[str, Any]]:
    if message.role == "tool":
        # An empty text is refused everywhere.
        content = message.content if message.content.strip() else "(empty)"
        return [{"type": "tool_result", "tool_use_id": message.tool_call_id, "content": content}]
    blocks = _thoughts(message)
    if message.content.strip():
        blocks.append({"type": "text", "text": message.content})
    for picture in message.pictures:
        if shown and message.role == "user":
            data = base64.b64encode(picture.data).decode("ascii")
            source = {"type": "base64", "media_type": picture.media_type, "data": data}
            blocks.append({"type": "image", "source": source})
        else:
            blocks.append({"type": "text", "text": UNSEEN})
    blocks += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": json_object(call.arguments) or {}}
        for call in message.tool_calls
    ]
    return blocks or [{"type": "text", "text": "(empty)"}]
