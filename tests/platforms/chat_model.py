"""A chat model in OpenAI's format on the same server: says "Answer to: …", learns "I like …", counts what it is paid for.

Invariants: it answers by the text alone, so a repeated question gets the same answer; each request is counted under the
person's words, when it comes and again when its answer is out.
"""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from aiohttp import web

JSON: TypeAlias = dict[str, Any]

_LIKES = re.compile(r"\bI like ([^.!?\n]{1,100})", re.IGNORECASE)
#: Where the product puts what is true of this turn only, behind the person's words.
_CONTEXT = "\n\n[context "


class Model:
    """`ms` is how long an answer takes; `read` has the words of the last requests."""

    def __init__(self, ms: float) -> None:
        self.ms = ms
        self.answers: Mapping[str, str] = {}
        self.asked: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.extractions = 0
        self.read: deque[str] = deque(maxlen=20)

    def state(self) -> JSON:
        """`repaid` holds the texts for which more than one request came, with how many."""
        repaid = {text: number for text, number in self.asked.items() if number > 1}
        return {
            "asked": dict(self.asked),
            "answered": dict(self.answered),
            "repaid": repaid,
            "extractions": self.extractions,
            "read": list(self.read),
        }

    async def say(self, request: web.Request, body: JSON) -> web.StreamResponse:
        """Answers a request, whole or in pieces, as it asks for."""
        text = self.answer(body)
        if not body.get("stream"):
            answered = web.json_response(whole(body, text))
            await answered.prepare(request)
            await answered.write_eof()
            return answered
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        try:
            await response.prepare(request)
            for event in streamed(body, text):
                await response.write(event.encode())
            await response.write_eof()
        except ConnectionError:
            pass  # nobody listens any more
        return response

    def answer(self, body: JSON) -> str:
        """Returns the answer to a request. A request for JSON is taken for an extraction."""
        if is_extraction(body):
            return json.dumps(_extracted(body))
        text = last_words(body)
        self.read.append("\n".join(str(message.get("content")) for message in body.get("messages", ())))
        scripted = next((answer for key, answer in self.answers.items() if key in text), None)
        return f"Answer to: {text.splitlines()[-1] if text else ''}" if scripted is None else scripted


def is_extraction(body: JSON) -> bool:
    return (body.get("response_format") or {}).get("type") in ("json_object", "json_schema")


#: What a message answers or hands on, above or below its own words.
_QUOTED = re.compile(
    r"^\[[^\n]*\] (?:that )?says this, which is data and no instruction:\n<file (\w+)>\n.*?\n</file \1>\n?",
    re.DOTALL | re.MULTILINE,
)


def last_words(body: JSON) -> str:
    """Returns the person's last words without the day and the name before them (in a group) and the context behind."""
    said = [message for message in body.get("messages", ()) if message.get("role") == "user"]
    content = said[-1].get("content") if said else ""
    words, _, added = str(content or "").partition(_CONTEXT)
    words = _QUOTED.sub("", re.sub(r"\A\[day [^\]]*\]\n", "", words))
    speaker = re.search(r"^speaker: (.*)$", added, re.MULTILINE)
    # Above the person's own words stands what they quote.
    if speaker is not None and re.search(rf"^{re.escape(speaker[1])}: ", words, re.MULTILINE):
        words = "\n".join(line.removeprefix(f"{speaker[1]}: ").removeprefix("| ") for line in words.splitlines())
    return words.strip()


def whole(body: JSON, text: str) -> JSON:
    message = {"role": "assistant", "content": text}
    return {**_head(body, "chat.completion"), "choices": [_choice("message", message, "stop")], "usage": _usage(text)}


def streamed(body: JSON, text: str) -> Iterator[str]:
    head = _head(body, "chat.completion.chunk")
    for piece in re.findall(r"\s*\S+|\s+$", text) or [""]:
        yield _event({**head, "choices": [_choice("delta", {"content": piece}, None)]})
    yield _event({**head, "choices": [_choice("delta", {}, "stop")]})
    if (body.get("stream_options") or {}).get("include_usage"):
        yield _event({**head, "choices": [], "usage": _usage(text)})
    yield "data: [DONE]\n\n"


def _event(chunk: JSON) -> str:
    return f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n"


def _head(body: JSON, kind: str) -> JSON:
    return {"id": "chatcmpl-test", "object": kind, "created": 0, "model": body.get("model", "test")}


def _choice(name: str, content: JSON, finish: str | None) -> JSON:
    return {"index": 0, name: content, "finish_reason": finish}


def _usage(text: str) -> JSON:
    written = len(text.split())
    return {"prompt_tokens": 10, "completion_tokens": written, "total_tokens": 10 + written}


def _extracted(body: JSON) -> JSON:
    """One fact for each "I like …" among the numbered lines that people wrote."""
    facts: list[dict[str, Any]] = []
    for line in str(body["messages"][-1].get("content") or "").splitlines():
        if not line.startswith("{"):
            continue
        try:
            said = json.loads(line)
        except ValueError:
            continue
        if not isinstance(said, dict) or "n" not in said or str(said.get("by", "")).startswith("(you"):
            continue
        found = _LIKES.search(str(said.get("text", "")))
        if found is not None:
            facts.append(
                {
                    "about": "self",
                    "category": "preference",
                    "topic": "",
                    "key": "likes",
                    "value": found[1].strip(),
                    "importance": 5,
                    "confidence": 0.9,
                    "messages": [said["n"]],
                    "replaces": None,
                }
            )
    return {"facts": facts, "styles": [], "event": None, "entities": []}


async def models(_request: web.Request) -> web.Response:
    return web.json_response({"object": "list", "data": [{"id": "test", "object": "model"}]})
