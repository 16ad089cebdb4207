"""Measures what a prompt is made of, and whether it fits: turns through the whole pipeline at several true contexts.

    python -m bench.prompt [--json] [--turns N] [--contexts 2048 4096 ...] [--ratio R]

A person talks with an agent whose model is a server on loopback. The server refuses a request that is larger than its
context, counting `--ratio` tokens for each that Remora estimates, and finds facts when it is asked for them. Tokens in
the tables are Remora's estimates. "equal" is the share of a prompt's bytes, tools first, that begin as the prompt
before it did: what a vendor's prompt cache can reuse.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import random
import re
import statistics
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import structlog
from aiohttp import web

from agents.budget import count_tokens
from channels.base import Capabilities, Channel, Inbound, Outbound
from gateway import app
from gateway.config import loading
from memory.chat.identities import Where, Who
from tests.kit.served import SELDOM

CONTEXTS = (2_048, 4_096, 8_192, 128_000)
_START = 1_668_505_500_000  # 15 November 2022, 9:45 UTC
_MINUTE = 60_000
_READ_EVERY = 8  # turns between two readings for memories
_PER_MESSAGE = 4  # tokens of a message beyond its text, as servers' templates add them
_THINGS = ("sourdough", "night trains", "Kurosawa films", "oolong tea", "fountain pens", "brutalist libraries",
           "sea kayaking", "Fado records", "sharp cheddar", "paper maps", "wild garlic", "chess problems",
           "old radios", "cold swims", "botanical gardens", "crossword puzzles")  # fmt: skip
_NAMES = ("Ana", "Rui", "Marta", "Jonas", "Ivo", "Clara", "Teo", "Lena", "Paulo", "Ines")
_CITIES = ("Porto", "Ghent", "Turin", "Graz", "Malmo", "Brno", "Cork", "Nantes")
CHATTER = (
    "the tram was late again and everybody looked at their shoes while it rained",
    "what would you cook on a cold evening when there is only half a cabbage left",
    "we spent the whole afternoon talking about nothing in particular and it was lovely",
    "my desk is covered with letters that I should have answered weeks ago",
    "do you think people were calmer before there were telephones everywhere",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request that the server got: the tokens of its parts, and what tells whether its beginning was seen before."""

    kind: str
    refused: bool
    parts: Mapping[str, int]
    begins: bytes


@dataclass(slots=True, kw_only=True)
class Server:
    """A server with OpenAI's chat API that can read `context` tokens."""

    context: int
    ratio: float
    asked: list[Asked] = field(default_factory=list)
    chance: random.Random = field(default_factory=lambda: random.Random(11))

    async def chat(self, request: web.Request) -> web.Response:
        body = await request.json()
        kind = "read" if body.get("response_format") else "chat"
        parts = _parts(body, kind)
        tokens = int(sum(parts.values()) * self.ratio)
        wanted = body.get("max_tokens", 0)
        refused = tokens + wanted > self.context
        begins = json.dumps([body.get("tools"), body["messages"]], ensure_ascii=False).encode()
        self.asked.append(Asked(kind=kind, refused=refused, parts=parts, begins=begins))
        if refused:
            said = (
                f"This model's maximum context length is {self.context} tokens. However, you requested "
                f"{tokens + wanted} tokens ({tokens} in the messages, {wanted} in the completion)."
            )
            return web.json_response({"error": {"message": said, "code": "context_length_exceeded"}}, status=400)
        text = _found(body["messages"][-1]["content"]) if kind == "read" else self._answer()
        return web.json_response(
            {
                "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": tokens, "completion_tokens": count_tokens(text)},
            }
        )

    def _answer(self) -> str:
        return " ".join(self.chance.choice(CHATTER).capitalize() + "." for _ in range(self.chance.randint(1, 5)))


class Screen(Channel):
    """A channel that keeps what it is told to show."""

    id = "console"
    platform = "console"
    capabilities = Capabilities(burst_seconds=0)

    def __init__(self) -> None:
        self.notices = 0

    async def send(self, outbound: Outbound) -> str:
        self.notices += "language model" in outbound.text
        return "1"


@asynccontextmanager
async def serving(chat: Callable[[web.Request], Awaitable[web.Response]]) -> AsyncIterator[str]:
    """Serves a model's answers on a free port; yields its base_url."""
    application = web.Application(client_max_size=64 * 1024 * 1024)
    application.router.add_post("/v1/chat/completions", chat)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield "http://{}:{}/v1".format(*runner.addresses[0][:2])
    finally:
        await runner.cleanup()


def sayings(turns: int) -> list[str]:
    """Returns what the person says: facts, chatter, now and then a long story, and a question."""
    chance = random.Random(7)
    said = []
    for n in range(turns):
        chatter = " ".join(chance.choice(CHATTER).capitalize() + "." for _ in range(60 if n % 12 == 7 else 2))
        match n % 4:
            case 0:
                fact = f"I like {_THINGS[n // 4 % len(_THINGS)]}."
            case 1:
                fact = f"My friend {chance.choice(_NAMES)} lives in {chance.choice(_CITIES)}."
            case 2:
                fact = f"I have a plan for {_CITIES[n // 4 % len(_CITIES)]}: to see it in {2023 + n % 9}."
            case _:
                fact = f"What did I say about {_THINGS[(n // 4 - 3) % len(_THINGS)]}?"
        said.append(f"{fact} {chatter}")
    return said


async def played(folder: Path, context: int, turns: int, ratio: float) -> Mapping[str, Any]:
    """Plays the turns at a context and returns the figures."""
    server, screen = Server(context=context, ratio=ratio), Screen()
    numbers, moment = count(1), [_START]

    def now() -> int:
        moment[0] += 1
        return moment[0]

    async with serving(server.chat) as base_url:
        config = configured(folder, base_url, context)
        async with (
            app.opened(config, {screen.id: screen}, now=now) as parts,
            app.answering(config, {screen.id: screen}, parts, now=now) as router,
        ):
            memory = next(iter(parts.roster.each_store)).memory
            for n, text in enumerate(sayings(turns)):
                inbound = inbound_of(text, next(numbers), now())
                await router.on_inbound(inbound)
                await router.settled(inbound.place)
                moment[0] += (18 * 60 if n % 12 == 11 else 3) * _MINUTE
                if n % _READ_EVERY == _READ_EVERY - 1:
                    await memory.learner.flush((await memory.identities.context(*whereabouts())).session.id, "bench")
            facts = (await memory.stats.stats(await memory.identities.context(*whereabouts()))).kinds.get("fact", 0)
    return {
        "context": context,
        "turns": turns,
        "turns without an answer": screen.notices,
        "facts": facts,
        "chat": _figures([one for one in server.asked if one.kind == "chat"]),
        "read": _figures([one for one in server.asked if one.kind == "read"]),
    }


def _figures(asked: Sequence[Asked]) -> Mapping[str, Any]:
    """Returns the median and the worst of each part, over the requests that were sent."""
    if not asked:
        return {"requests": 0}
    names = list(asked[0].parts)
    columns = {name: [one.parts[name] for one in asked] for name in names}
    columns["all"] = [sum(one.parts.values()) for one in asked]
    equal = [shared(first.begins, second.begins) for first, second in pairwise(asked)] or [0.0]
    return {
        "requests": len(asked),
        "refused": sum(one.refused for one in asked),
        "tokens": {name: [int(statistics.median(sizes)), max(sizes)] for name, sizes in columns.items()},
        "equal": [round(statistics.median(equal), 3), round(min(equal), 3)],
    }


def shared(first: bytes, second: bytes) -> float:
    same = next((n for n, (one, two) in enumerate(zip(first, second, strict=False)) if one != two), len(second))
    return same / len(second)


def _parts(body: Mapping[str, Any], kind: str) -> dict[str, int]:
    """Returns the tokens of a request by what they are spent on."""
    system, *others = [message["content"] or "" for message in body["messages"]]
    parts = {"system": count_tokens(system) + _PER_MESSAGE * len(body["messages"])}
    if kind == "read":
        known, _, rest = others[-1].partition("\n\n")
        return parts | {"known": count_tokens(known), "messages": count_tokens(rest)}
    tools = [json.dumps(tool, ensure_ascii=False) for tool in body.get("tools", ())]
    newest, _, tail = others[-1].partition("\n\n[context ")
    head, _, recalled = tail.partition("remembered, as it bears")
    head, _, newer = head.partition("learned since")
    snapshot = next((text for text in others[:1] if text.startswith("[memory ")), "")
    history = [text for text in others[:-1] if text != snapshot]
    return parts | {
        "tools": sum(map(count_tokens, tools)),
        "snapshot": count_tokens(snapshot),
        "history": sum(map(count_tokens, history)),
        "newest": count_tokens(newest),
        "tail": count_tokens(head),
        "newer": count_tokens(newer),
        "recalled": count_tokens(recalled),
    }


def _found(material: str) -> str:
    """Returns the facts in the messages of an extraction, as a model would answer."""
    facts = []
    for line in material.partition("\nMESSAGES:\n")[2].splitlines():
        message = json.loads(line)
        if found := re.search(r"My friend (\w+) (keeps an? [\w ]+ in \w+)\.", message["text"]):
            facts.append({"about": found[1], "key": "note", "value": found[2], "messages": [message["n"]]})
        for key, pattern in (("likes", r"I like ([^.]+)\."), ("plan", r"I have a plan for ([^.]+)\.")):
            if found := re.match(pattern, message["text"]):
                facts.append({"about": "self", "key": key, "value": found[1], "messages": [message["n"]]})
        if found := re.match(r"My friend (\w+) lives in (\w+)\.", message["text"]):
            facts.append({"about": found[1], "key": "home", "value": found[2], "messages": [message["n"]]})
    return json.dumps(
        {"facts": [{"category": "preference", "importance": 5, "confidence": 0.9} | one for one in facts]}
    )


def whereabouts() -> tuple[Where, Who]:
    where = Where(
        session_key="console:ada:-",
        platform="console",
        chat="ada",
        chat_kind="private",
        thread=None,
        agent="assistant",
    )
    return where, Who(platform="console", user_id="ada", name="Ada")


def inbound_of(text: str, number: int, at: int) -> Inbound:
    return Inbound(
        channel="console", platform="console", bot_id="local", update_key=str(number), chat="ada",
        chat_kind="private", author_id="ada", author_name="Ada", message_id=str(number), text=text, sent_at=at,
    )  # fmt: skip


def configured(folder: Path, base_url: str, context: int) -> loading.Config:
    (folder / "agents").mkdir()
    (folder / "agents" / "assistant.yaml").write_text(
        f"name: assistant\ntimezone: UTC\nmodels: [{{provider: openai, model: m, base_url: '{base_url}',"
        f" context: {context}}}]\n",
        "utf-8",
    )
    path = folder / "config.yaml"
    path.write_text("limits: {person_messages_per_minute: 1800}\nembedding: {provider: none}\n", "utf-8")
    return loading.load(path, {}, folder / "data", pace=SELDOM)


def _table(figures: Mapping[str, Any]) -> str:
    unanswered, facts = figures["turns without an answer"], figures["facts"]
    lines = [f"context {figures['context']}: {figures['turns']} turns, {unanswered} without an answer, {facts} facts"]
    for kind in ("chat", "read"):
        found = figures[kind]
        if not found["requests"]:
            continue
        equal = "equal {:.0%} (worst {:.0%})".format(*found["equal"])
        lines.append(f"  {kind}: {found['requests']} requests, {found['refused']} refused, {equal}")
        lines += [f"    {name:9} {median:6} {worst:6}" for name, (median, worst) in found["tokens"].items()]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=60)
    parser.add_argument("--contexts", type=int, nargs="+", default=CONTEXTS)
    parser.add_argument("--ratio", type=float, default=1.0, help="true tokens for each estimated one")
    parser.add_argument("--json", action="store_true")
    wanted = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    for context in wanted.contexts:
        with tempfile.TemporaryDirectory() as folder:
            figures = asyncio.run(played(Path(folder), context, wanted.turns, wanted.ratio))
        print(json.dumps(figures) if wanted.json else _table(figures), flush=True)


if __name__ == "__main__":
    main()
