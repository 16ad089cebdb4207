"""Speaks OpenAI's chat completions API, which most servers understand.

The wire format follows OpenAI's API reference ("Chat", "Streaming"); comments mark where other servers depart from it.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence, Set
from typing import Any, Final

from agents.llm import ChatMessage, Picture, Request, ToolSpec, Usage
from agents.providers.adapter import UNSEEN, Adapter
from agents.providers.answer import Assembled, token_count
from agents.providers.quirks import Quirk, most_tokens

#: The names of servers for the tokens of a request that their cache held: OpenAI's and Kimi's, DeepSeek's, Anthropic's.
_CACHED: Final = ("cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens")


class OpenAIProvider(Adapter):
    path = "/chat/completions"

    def body(self, request: Request, messages: Sequence[ChatMessage], quirks: Set[Quirk]) -> dict[str, Any]:
        """Returns the request as JSON, without None values and without fields that the server is known to refuse."""
        model = self._model
        body: dict[str, Any] = {
            "model": model.model,
            "messages": [_message(message, shown="pictures" not in quirks) for message in messages],
            "stream": "stream" not in quirks,
        }
        if body["stream"] and "stream_options" not in quirks:
            body["stream_options"] = {"include_usage": True}
        if request.tools:
            body["tools"] = [_tool(tool) for tool in request.tools]
        limit = model.max_tokens if request.max_tokens is None else request.max_tokens
        if limit is not None and "unlimited" not in quirks:
            limit = min(limit, most_tokens(quirks) or limit)
            body["max_completion_tokens" if "max_tokens" in quirks else "max_tokens"] = limit
        warmth = model.temperature if request.temperature is None else request.temperature
        if warmth is not None and "temperature" not in quirks and (warmth > 0 or "cold" not in quirks):
            body["temperature"] = warmth
        if model.top_p is not None and "top_p" not in quirks:
            body["top_p"] = model.top_p
        if request.json_mode and request.json_schema and "json_schema" not in quirks:
            strict = request.strict is not False
            schema = {"name": "answer", "schema": dict(request.json_schema), "strict": strict}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif request.json_mode and "response_format" not in quirks:
            body["response_format"] = {"type": "json_object"}
        if "effort" in quirks:
            body["reasoning_effort"] = "none"
        return body | model.extra_body

    def add(self, answer: Assembled, chunk: dict[str, Any]) -> str:
        answer.named(chunk.get("model"))
        usage = chunk.get("usage")
        if usage is None and isinstance(chunk.get("x_groq"), dict):  # Groq reports usage here
            usage = chunk["x_groq"].get("usage")
        if isinstance(usage, dict):
            answer.usage = _usage(usage) or answer.usage
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return ""
        if isinstance(choice.get("usage"), dict):  # Kimi reports usage here
            answer.usage = _usage(choice["usage"]) or answer.usage
        answer.finished(choice.get("finish_reason"))
        shown = ""
        if isinstance(delta := choice.get("delta"), dict):
            _add_calls(answer, delta)
            answer.fields.add(delta)
            text = _content_text(delta.get("content")) or _content_text(delta.get("refusal"))
            answer.streamed = answer.streamed or bool(text or answer.calls or answer.fields.values)
            shown = answer.add_text(text, last=answer.finish is not None)
        if isinstance(message := choice.get("message"), dict):
            # The whole of an answer that is not streamed. Some servers end a stream with it.
            if message.get("tool_calls") and answer.wants_calls():
                _add_calls(answer, message)
            if not (answer.streamed and answer.fields.values):
                answer.fields.add(message)
            text = _content_text(message.get("content")) or _content_text(message.get("refusal"))
            shown += answer.add_whole(text)
        return shown

    def is_answer(self, whole: Mapping[str, Any]) -> bool:
        return "choices" in whole or "error" in whole


def _add_calls(answer: Assembled, part: Mapping[str, Any]) -> None:
    fragments = part.get("tool_calls")
    for fragment in fragments if isinstance(fragments, list) else [fragments]:
        if isinstance(fragment, dict):
            function = fragment.get("function")
            function = function if isinstance(function, dict) else {}
            answer.add_call(
                index=fragment.get("index"),
                call_id=fragment.get("id"),
                name=function.get("name"),
                arguments=function.get("arguments"),
                fields=fragment,
            )


def _message(message: ChatMessage, *, shown: bool) -> dict[str, Any]:
    """Returns the message as JSON, with its pictures if `shown`, else with a text in place of each.

    Only a person's message can show pictures.
    """
    wire: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.pictures and shown and message.role == "user":
        words = [{"type": "text", "text": message.content}] if message.content else []
        wire["content"] = [*words, *(_part(picture) for picture in message.pictures)]
    elif message.pictures:
        wire["content"] = "\n".join([message.content, *(UNSEEN for _ in message.pictures)]).lstrip("\n")
    if message.tool_calls:
        wire["content"] = message.content or None
        wire["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    if message.opaque is not None:
        wire |= message.opaque.message
        for n, fields in enumerate(message.opaque.calls[: len(message.tool_calls)]):
            wire["tool_calls"][n] = {**fields, **wire["tool_calls"][n]}
    if message.tool_call_id is not None:
        wire["tool_call_id"] = message.tool_call_id
    return wire


def _part(picture: Picture) -> dict[str, Any]:
    data = base64.b64encode(picture.data).decode("ascii")
    return {"type": "image_url", "image_url": {"url": f"data:{picture.media_type};base64,{data}"}}


def _tool(tool: ToolSpec) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
    }


def _content_text(content: object) -> str:
    """Returns the text of a message's content: a string, or (Mistral) a list of parts, some of which are text."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = (part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text")
    return "".join(text for text in texts if isinstance(text, str))


def _usage(raw: Mapping[str, Any]) -> Usage | None:
    read, written = token_count(raw.get("prompt_tokens")), token_count(raw.get("completion_tokens"))
    if read is None or written is None:
        return None
    details = [raw.get("prompt_tokens_details"), raw.get("input_tokens_details"), raw]
    named = [token_count(part.get(name)) for part in details if isinstance(part, dict) for name in _CACHED]
    cached = max(filter(None, named), default=0)
    missed = token_count(raw.get("prompt_cache_miss_tokens"))
    made = token_count(raw.get("cache_creation_input_tokens")) or 0
    # Some count what their cache held in, as OpenAI does, others apart, as Anthropic does.
    whole = read + cached + made
    if read < cached or missed == read or token_count(raw.get("total_tokens")) == whole + written:
        read = whole
    return Usage(input_tokens=read, output_tokens=written, cached_tokens=cached)
