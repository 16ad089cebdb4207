"""Measures a conversation that never ends: is what was told at its beginning still at hand at its end, does it fit?

    python -m bench.long [--json] [--messages N] [--contexts 4096 8192 32768] [--planted N]

A person and an agent exchange `--messages` messages through the whole pipeline. The agent's model is a server on
loopback that refuses what is larger than its context, finds facts and sums up when it is asked to (`bench.prompt`). It
keeps only what its instructions and the material hold. Facts are planted in the first hundred messages. At the end each
of them is asked for. Nothing but a compaction has anything read for memories.

"found" is the share of the planted facts that stand in the request that asks for them, be it in its summary, in its
known facts or in what is recalled. "over_window" counts requests that the server refused. "shared_prefix" is the
median share of a request's bytes, tools first, that begin as the chat's request before it did: what a vendor's prompt
cache can reuse. "shared_before_tail" is the same without the last message, which holds what is recalled for this turn
alone. "again" counts compactions right after another one.
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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, pairwise
from pathlib import Path
from typing import Any, Final

import structlog
from aiohttp import web

from agents.budget import count_tokens
from bench import prompt
from bench.prompt import Screen
from gateway import app
from gateway.reception.router import Router
from memory.chat import summary
from memory.service import Service

CONTEXTS: Final = (4_096, 8_192, 32_768)
_START: Final = 1_668_505_500_000  # 15 November 2022, 9:45 UTC
_MINUTE: Final = 60_000
#: Messages among which the facts are planted.
_BEGINNING: Final = 100
_FIRST: Final = ("Mira", "Jonas", "Ivo", "Clara", "Teo", "Lena", "Paulo", "Ines", "Noor", "Sven", "Yuki", "Omar")
_THINGS: Final = (
    "accordion", "sailing boat", "greenhouse", "violin", "motorbike", "bakery", "telescope", "beehive", "loom", "kayak",
    "printing press", "pottery wheel",
)  # fmt: skip
_PLACES: Final = (
    "Porto",
    "Ghent",
    "Turin",
    "Graz",
    "Malmo",
    "Brno",
    "Cork",
    "Nantes",
    "Bergen",
    "Split",
    "Vaasa",
    "Lugo",
)
#: The sentences that the scripted model keeps when it sums up a conversation, in the form in which people say them.
_TOLD: Final = re.compile(r"My friend (\w+) keeps? an? ([\w ]+) in (\w+)\.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A fact told at the beginning, and the question for it at the end. `parts` are looked for on one line."""

    told: str
    asked: str
    parts: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class Server(prompt.Server):
    """The server of `bench.prompt`, which also sums up. `chats` are the requests that answer somebody, as bytes."""

    compactions: int = 0
    chats: list[tuple[bytes, int]] = field(default_factory=list)

    async def chat(self, request: web.Request) -> web.Response:
        body = await request.json()
        messages = body["messages"]
        if messages[0]["content"].startswith(summary.INSTRUCTIONS[:60]):
            return self._summed_up(body)
        if not body.get("response_format"):
            begins = json.dumps([body.get("tools"), messages], ensure_ascii=False).encode()
            tail = json.dumps(messages[-1], ensure_ascii=False).encode()
            self.chats.append((begins, len(tail)))
        return await prompt.Server.chat(self, request)

    def _summed_up(self, body: Mapping[str, Any]) -> web.Response:
        """Answers as a model would that carries over what it was given and adds what it reads, the newest first."""
        self.compactions += 1
        material = body["messages"][1]["content"]
        tokens = sum(count_tokens(message["content"]) for message in body["messages"])
        refused = tokens + body.get("max_tokens", 0) > self.context
        self.asked.append(prompt.Asked(kind="sum up", refused=refused, parts={"all": tokens}, begins=b""))
        if refused:
            said = f"This model's maximum context length is {self.context} tokens."
            return web.json_response({"error": {"message": said, "code": "context_length_exceeded"}}, status=400)
        before, _, messages = material.partition("\nMESSAGES:\n")
        facts = [found[0] for found in _TOLD.finditer(messages)][::-1]
        facts += [line[2:] for line in before.splitlines() if line.startswith("- ")]
        answer = {
            "facts": list(dict.fromkeys(facts))[:12],
            "decisions": [],
            "open": [],
            "files": [],
            "task": "small talk",
        }
        return web.json_response(
            {
                "choices": [{"message": {"role": "assistant", "content": json.dumps(answer)}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": tokens, "completion_tokens": count_tokens(json.dumps(answer))},
            }
        )


def planted(number: int) -> list[Planted]:
    """Returns facts of which no two share a friend and a thing."""
    chance = random.Random(5)
    facts = []
    for n in range(number):
        name = f"{_FIRST[n % len(_FIRST)]}{'' if n < len(_FIRST) else 'abcdefgh'[n // len(_FIRST) - 1]}"
        thing, place = _THINGS[(n * 5 + n // len(_FIRST)) % len(_THINGS)], chance.choice(_PLACES)
        article = "an" if thing[0] in "aeiou" else "a"
        told = f"My friend {name} keeps {article} {thing} in {place}."
        facts.append(
            Planted(told=told, asked=f"Where does my friend {name} keep the {thing}?", parts=(name, thing, place))
        )
    return facts


def sayings(turns: int, facts: Sequence[Planted]) -> list[str]:
    """Returns what the person says: the facts among the first hundred messages, and chatter of many lengths."""
    chance = random.Random(7)
    every = max(1, (_BEGINNING // 2) // max(1, len(facts)))
    said = []
    for n in range(turns):
        sentences = 40 if n % 40 == 39 else chance.choice((1, 1, 2, 3, 6))
        chatter = " ".join(f"{chance.choice(prompt.CHATTER).capitalize()}, day {n}." for _ in range(sentences))
        told = facts[n // every].told if n % every == 0 and n // every < len(facts) else ""
        said.append(f"{told} {chatter}".strip())
    return said


async def played(folder: Path, context: int, messages: int, plants: int) -> Mapping[str, Any]:
    """Plays the conversation at a context and returns the figures."""
    server, screen = Server(context=context, ratio=1.0), Screen()
    facts = planted(plants)
    numbers, moment = count(1), [_START]

    def now() -> int:
        moment[0] += 1
        return moment[0]

    async def say(router: Router, memory: Service, text: str) -> None:
        inbound = prompt.inbound_of(text, next(numbers), now())
        await router.on_inbound(inbound)
        await router.settled(inbound.place)
        await memory.compaction.settled()

    compacted_at: list[int] = []
    async with prompt.serving(server.chat) as base_url:
        config = prompt.configured(folder, base_url, context)
        async with (
            app.opened(config, {screen.id: screen}, now=now) as parts,
            app.answering(config, {screen.id: screen}, parts, now=now) as router,
        ):
            memory = next(iter(parts.roster.each_store)).memory
            for n, text in enumerate(sayings(messages // 2, facts)):
                before = server.compactions
                await say(router, memory, text)
                compacted_at += [n] * (server.compactions - before)
                moment[0] += (18 * 60 if n % 12 == 11 else 3) * _MINUTE
            found = []
            talked = len(server.chats)
            for fact in facts:
                await say(router, memory, fact.asked)
                found.append(_holds(server.chats[-1][0].decode(), fact))
            kept = (await memory.identities.context(*prompt.whereabouts())).session.summary or ""
    return {
        "context": context,
        "messages": messages,
        "planted": len(facts),
        "found": round(sum(found) / len(found), 3),
        "in_summary": round(sum(all(part in kept for part in fact.parts) for fact in facts) / len(facts), 3),
        "over_window": sum(one.refused for one in server.asked),
        "without_answer": screen.notices,
        "compactions": server.compactions,
        "again": sum(later - earlier <= 1 for earlier, later in pairwise(compacted_at)),
        **_shared(server.chats[:talked]),
    }


def _holds(request: str, fact: Planted) -> bool:
    """Returns whether a request tells a fact: all parts of it in one line, other than that of the question."""
    lines = re.split(r"\\n|\", \"|\"}, {\"", request)
    return any(all(part in line for part in fact.parts) for line in lines if fact.asked not in line)


def _shared(chats: Sequence[tuple[bytes, int]]) -> Mapping[str, float]:
    whole, before_tail = [], []
    for (first, _), (second, tail) in pairwise(chats):
        same = prompt.shared(first, second) * len(second)
        whole.append(same / len(second))
        before_tail.append(min(1.0, same / max(1, len(second) - tail)))
    return {
        "shared_prefix": round(statistics.median(whole), 3),
        "shared_mean": round(statistics.fmean(whole), 3),
        "shared_before_tail": round(statistics.median(before_tail), 3),
    }


def worst(figures: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Returns the worst of the figures that are to be kept."""
    return {
        "found": min(one["found"] for one in figures),
        "over_window": max(one["over_window"] for one in figures),
        "shared_prefix": min(one["shared_prefix"] for one in figures),
        "again": max(one["again"] for one in figures),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=2_000)
    parser.add_argument("--planted", type=int, default=40)
    parser.add_argument("--contexts", type=int, nargs="+", default=CONTEXTS)
    parser.add_argument("--json", action="store_true")
    wanted = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    figures = []
    for context in wanted.contexts:
        with tempfile.TemporaryDirectory() as folder:
            figures.append(asyncio.run(played(Path(folder), context, wanted.messages, wanted.planted)))
        if not wanted.json:
            print(", ".join(f"{name} {value}" for name, value in figures[-1].items()), flush=True)
    if wanted.json:
        print(json.dumps({**worst(figures), "windows": figures}))
    else:
        print("worst:", ", ".join(f"{name} {value}" for name, value in worst(figures).items()))


if __name__ == "__main__":
    main()
