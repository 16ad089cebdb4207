"""Fifty turns with servers that insist: on turns that alternate, on no system role, on no tools, on known fields only.

Each refuses in the words and with the status of the real one. Meanwhile what was said is read for facts, older messages
are summed up, a tool is called, and two turns fail. Nothing is refused once a server's quirks are learned.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from agents.budget import count_tokens
from agents.providers.quirks import Quirk
from channels.base import Inbound
from gateway import app
from gateway.config.loading import Config, load
from gateway.config.settings import WorkPace
from memory.chat import summary
from memory.chat.identities import Where, Who
from memory.service import Service
from tests.kit.bench import Screen
from tests.kit.fakes import Clock
from tests.kit.loopback import Answer, Asked, serving
from tests.kit.stores import rows

TURNS = 50
CONTEXT = 4_096
#: Turns that the server fails for a reason of its own, and one in which the model calls a tool if it has any.
FAILS, CALLS = (15, 31), 8
BUSY = (
    "The quick answer is that it depends on the weather, on the wind and on how much time there is until the evening. "
)

Body = dict[str, Any]


def alternation(body: Body) -> Answer | None:
    """vLLM with Mistral's template."""
    spoken = [one for one in body["messages"] if one["role"] in ("user", "assistant") and not one.get("tool_calls")]
    spoken = [one["role"] for one in spoken]
    if spoken == ["user", "assistant"] * (len(spoken) // 2) + ["user"] * (len(spoken) % 2):
        return None
    said = "After the optional system message, conversation roles must alternate user/assistant/user/assistant/..."
    return Answer(status=400, body={"object": "error", "message": said, "type": "BadRequestError", "code": 400})


def no_system(body: Body) -> Answer | None:
    """llama.cpp's server with Gemma's template, which knows no tools either."""
    roles = [one["role"] for one in body["messages"]]
    if roles[0] == "system":
        said = "Jinja Exception: System role not supported"
    elif roles != ["user", "assistant"] * (len(roles) // 2) + ["user"] * (len(roles) % 2):
        said = "Jinja Exception: Conversation roles must alternate user/assistant/user/assistant/..."
    elif "tools" in body:
        said = "tools param requires --jinja flag"
    else:
        return None
    return Answer(status=500, body={"error": {"code": 500, "message": said, "type": "server_error"}})


def no_tools(body: Body) -> Answer | None:
    """Ollama."""
    if "tools" not in body and all(one["role"] != "tool" and "tool_calls" not in one for one in body["messages"]):
        return None
    said = "registry.ollama.ai/library/gemma2:2b does not support tools"
    return Answer(status=400, body={"error": {"message": said, "type": "api_error", "param": None, "code": None}})


def known_fields(body: Body) -> Answer | None:
    """A server on FastAPI that knows neither the usage of streams nor JSON mode."""
    unknown = [name for name in ("stream_options", "response_format") if name in body]
    if not unknown:
        return None
    wrong = {"type": "extra_forbidden", "loc": ["body", unknown[0]], "msg": "Extra inputs are not permitted"}
    return Answer(status=422, body={"detail": [wrong]})


class Server:
    """A model behind rules. Keeps what it refused by its rules, and counts what it was asked by kind."""

    def __init__(self, refuses: Callable[[Body], Answer | None]) -> None:
        self.refuses = refuses
        self.refused: list[str] = []
        self.asked = {"chat": 0, "read": 0, "sum up": 0}
        self.called = False

    async def __call__(self, asked: Asked) -> Answer:
        body = asked.body
        if (answer := self.refuses(body)) is not None:
            self.refused.append(json.dumps(answer.body))
            return answer
        words = "\n".join(one["content"] or "" for one in body["messages"])
        tokens = count_tokens(words)
        if tokens + body.get("max_tokens", 0) > CONTEXT:
            self.refused.append("too long")
            return Answer(status=400, body={"error": {"message": f"maximum context length is {CONTEXT} tokens"}})
        if summary.INSTRUCTIONS[:60] in words:
            self.asked["sum up"] += 1
            return _said(json.dumps({"facts": ["Ada went sailing."], "task": "sailing"}), tokens)
        if "KNOWN FACTS (what" in words:
            self.asked["read"] += 1
            return _said(_facts(words), tokens)
        self.asked["chat"] += 1
        return self._answered(body, tokens)

    def _answered(self, body: Body, tokens: int) -> Answer:
        newest = body["messages"][-1]["content"]
        turn = max(map(int, re.findall(r"Turn (\d+)\.", newest)), default=-1)
        if turn in FAILS:
            return Answer(status=400, body={"error": {"message": "The request was flagged by the operator's filter."}})
        if turn == CALLS and body.get("tools") and not self.called:
            self.called = True
            call = {"name": "remember_fact", "arguments": json.dumps({"text": "I have a dinghy"})}
            called = [{"id": "call_1", "type": "function", "function": call}]
            message = {"role": "assistant", "content": None, "tool_calls": called}
            return Answer(body={"choices": [{"message": message, "finish_reason": "tool_calls"}]})
        return _said(f"Answer. {BUSY * (turn % 3)}", tokens)


def _said(text: str, tokens: int) -> Answer:
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": tokens, "completion_tokens": count_tokens(text)}
    return Answer(body={"choices": [choice], "usage": usage})


def _facts(words: str) -> str:
    """Answers what is to be remembered: the harbour of every turn that names one."""
    said = [json.loads(line) for line in words.partition("\nMESSAGES:\n")[2].splitlines() if line.startswith("{")]
    facts = [
        {"about": "self", "category": "happening", "key": f"trip-{found[1]}", "value": f"sailed to {found[1]}",
         "messages": [one["n"]], "importance": 5, "confidence": 0.9}
        for one in said
        if (found := re.search(r"I sailed to (Harbour\d+)\.", one["text"]))
    ]  # fmt: skip
    return json.dumps({"facts": facts})


def configured(folder: Path, address: str) -> Config:
    (folder / "agents").mkdir()
    (folder / "agents" / "assistant.yaml").write_text(
        "name: assistant\nmodels:\n"
        f"  - {{provider: openai, model: m, base_url: '{address}/v1', context: {CONTEXT}, max_tokens: 256}}\n"
    )
    (folder / "config.yaml").write_text(
        "data_dir: data\nembedding: {provider: none}\nlimits: {person_messages_per_minute: 1800}\n"
    )
    pace = WorkPace(exit_seconds=0, quiet_seconds=3600, extract_messages=12)
    return load(folder / "config.yaml", {}, folder, pace=pace)


async def talked(folder: Path, server: Server, clock: Clock) -> tuple[Screen, Sequence[Sequence[Any]], Sequence[str]]:
    """Holds the fifty turns. Returns the screen, the history by role and text, and the facts."""
    screen = Screen()
    async with serving(server) as address:
        config = configured(folder, address)
        async with (
            app.opened(config, {screen.id: screen}, now=clock) as parts,
            app.answering(config, {screen.id: screen}, parts, now=clock) as router,
        ):
            memory = next(iter(parts.roster.each_store)).memory
            for turn in range(TURNS):
                text = f"Turn {turn}. I sailed to Harbour{turn}. {BUSY * (turn % 4)}"
                text += "Please remember that I have a dinghy." * (turn == CALLS)
                said = Inbound(
                    channel=screen.id, platform="console", bot_id="local", update_key=str(turn), chat="ada",
                    chat_kind="private", author_id="ada", author_name="Ada", message_id=str(turn), text=text,
                    sent_at=clock(),
                )  # fmt: skip
                await router.on_inbound(said)
                await router.settled(said.place)
                await memory.compaction.settled()
                clock.move(minutes=3)
            await memory.learner.flush((await memory.identities.context(*_ada())).session.id, "test")
            return screen, *await _kept(memory)


async def _kept(memory: Service) -> tuple[Sequence[Sequence[Any]], Sequence[str]]:
    history = await rows(memory, "select role, text from messages where role in ('user', 'assistant') order by id")
    facts = await rows(memory, "select value from memories where kind = 'fact'")
    return history, [value for (value,) in facts]


def _ada() -> tuple[Where, Who]:
    where = Where(
        session_key="console:ada:-", platform="console", chat="ada", chat_kind="private", thread=None, agent="assistant"
    )
    return where, Who(platform="console", user_id="ada", name="Ada")


@pytest.mark.parametrize(
    ("refuses", "quirks"),
    [
        (alternation, set()),
        (no_system, {"system", "tools"}),
        (no_tools, {"tools"}),
        (known_fields, {"stream_options", "json_schema", "response_format"}),
    ],
)
async def test_a_strict_server_refuses_nothing_once_it_is_known(
    tmp_path: Path, clock: Clock, refuses: Callable[[Body], Answer | None], quirks: set[Quirk]
) -> None:
    server = Server(refuses)
    screen, history, facts = await talked(tmp_path, server, clock)
    # Each is refused once; a background call that gave way to a person before it could read its refusal asks again.
    # A schema and JSON alone are refused in the same words.
    assert len(set(server.refused)) == len(quirks - {"json_schema"}) and len(server.refused) <= len(quirks) + 1, (
        server.refused
    )
    known = json.loads((tmp_path / "data" / "models.json").read_text()) if quirks else {"": {}}
    assert set(next(iter(known.values()))) == quirks
    assert server.asked["chat"] >= TURNS - len(FAILS) and server.asked["read"] >= 4 and server.asked["sum up"] >= 2
    # Every message stands in history and has its answer, except where the server itself had failed.
    asked = [text.split(".")[0] for role, text in history if role == "user"]
    assert asked == [f"Turn {turn}" for turn in range(TURNS)]
    assert sum(text.startswith("Answer.") for text in screen.texts) == TURNS - len(FAILS)
    missing = {f"sailed to Harbour{turn}" for turn in range(TURNS)} - set(facts)
    assert not missing
    assert server.called == any("dinghy" in fact for fact in facts) == ("tools" not in quirks)
