"""Measures whether two things a person said that can't both hold are noticed, and two that can are left alone.

    python -m bench.pairs FILE [--json] [--show]
    python -m bench.pairs FILE --base-url URL --model NAME [--key-env VARIABLE]      also with this model

FILE is a YAML list of pairs: {"id", "language", "kind": conflict or compatible, "first", "second", "expect": supersede,
end, ask or keep}. Each pair is a person of their own, who says the first message, twenty other things, and three days
later the second message, to the whole bot. Then a night compares the facts. What comes of a pair is one of:

    superseded, ended    a fact of the first message holds no longer
    asked                the person will be asked which one holds
    kept                 both stand
    unread               the first message or the second brought no fact, and nothing changed

A conflict is right if it is superseded, ended or asked, a compatible pair if it is kept or unread. `patterns` is an
agent without a model. `read` is one whose scripted model takes every message for one fact, under a key that no other
fact has, and judges each pair that a night shows it as FILE does. So `read` measures all but a model's own judgement:
whether both facts are kept, whether they meet among the others, and whether the verdict is carried out. No randomness.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import re
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final

import structlog
import yaml
from aiohttp import web
from pydantic import BaseModel, ConfigDict, TypeAdapter

from bench.prompt import Screen, serving
from channels.base import Inbound
from gateway import app
from gateway.config import loading
from memory.jobs import compare
from memory.service import Service
from tests.kit.served import SELDOM

_START: Final = 1_780_300_800_000  # 1 June 2026, 8:00 UTC
_DAY: Final = 86_400_000
#: The messages that everybody sends between the two; each sentence becomes a fact when the scripted model reads it.
OTHER_THINGS: Final = (
    "I collect old train timetables.", "My aunt sends me postcards from Crete.", "Sundays are for jigsaw puzzles.",
    "I read detective novels in the bath.", "My bicycle has a squeaky saddle.", "I whistle when I wash up.",
    "Ich sammle Briefmarken aus Island.", "Mein Nachbar übt jeden Abend Trompete.", "Morgens gibt es Porridge.",
    "Colecciono imanes de nevera.", "Mi abuela hace la mejor tortilla.", "Los lunes voy a clase de cerámica.",
    "Je fais pousser des tomates sur le balcon.", "Ma voisine me prête ses romans.", "Le jeudi, je vais au marché.",
    "我喜欢在河边散步。", "我表哥会修自行车。", "周五晚上我常看老电影。",
    "私は古い地図を集めています。", "友達と毎月ボードゲームをします。",
)  # fmt: skip
#: The year, month or day that is added to a value that names it in words.
_DATED: Final = re.compile(r" \(\d{4}(?:-\d\d){0,2}\)")


class Pair(BaseModel):
    """Two messages of one person, and what is to come of them."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    language: str
    kind: str
    first: str
    second: str
    expect: str


@dataclass(slots=True)
class Scripted:
    """The model of `read`: a server with OpenAI's chat API. `shown` are the pairs that a night has shown it."""

    pairs: Mapping[tuple[str, str], str]
    shown: set[tuple[str, str]]

    async def chat(self, request: web.Request) -> web.Response:
        body = await request.json()
        instructions, material = body["messages"][0]["content"], body["messages"][-1]["content"]
        if instructions.startswith(compare.INSTRUCTIONS[:60]):
            text = self._judged(material)
        else:
            text = _read(material) if body.get("response_format") else "Noted."
        choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return web.json_response({"choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 1}})

    def _judged(self, material: str) -> str:
        verdicts = []
        for row in map(json.loads, material.splitlines()[1:]):
            pair = _plain(row["older"]["value"]), _plain(row["newer"]["value"])
            self.shown.add(pair)
            match self.pairs.get(pair, "keep"):
                case "supersede":
                    verdicts.append({"n": row["n"], "verdict": "replaces", "why": "changed"})
                case "end":
                    verdicts.append({"n": row["n"], "verdict": "replaces", "why": "ended"})
                case "ask":
                    verdicts.append({"n": row["n"], "verdict": "contradict"})
        return json.dumps({"pairs": verdicts})


def _read(material: str) -> str:
    """Answers what is to be remembered: every message, or each of the other things, as it is."""
    facts = []
    for line in material.partition("\nMESSAGES:\n")[2].splitlines():
        message = json.loads(line)
        for said in OTHER_THINGS if OTHER_THINGS[0] in message["text"] else (message["text"],):
            key = f"topic-{sum(said.encode())}"
            facts.append({"about": "self", "key": key, "value": said, "quote": said, "messages": [message["n"]]})
    return json.dumps({"facts": [one | {"category": "happening", "importance": 5, "confidence": 0.9} for one in facts]})


def _plain(value: str) -> str:
    return _DATED.sub("", value)


async def played(folder: Path, pairs: Sequence[Pair], models: str) -> dict[str, str]:
    """Plays all pairs with an agent of these `models`. Returns what came of each, by id."""
    (folder / "agents").mkdir()
    (folder / "agents" / "assistant.yaml").write_text(f"name: assistant\ntimezone: UTC\n{models}", "utf-8")
    path = folder / "config.yaml"
    path.write_text("limits: {person_messages_per_minute: 1800}\n", "utf-8")
    config = loading.load(path, {}, folder / "data", pace=SELDOM)
    screen = Screen()
    moment, numbers = [_START], count(1)

    def now() -> int:
        moment[0] += 1
        return moment[0]

    async with (
        app.opened(config, {screen.id: screen}, now=now) as parts,
        app.answering(config, {screen.id: screen}, parts, now=now) as router,
    ):
        memory = next(iter(parts.roster.each_store)).memory
        read = "provider: offline" not in models
        between = [" ".join(OTHER_THINGS)] if read else []
        for text in ("first", *between, "second"):
            for pair in pairs:
                said = _said(pair.id, getattr(pair, text, text), next(numbers), now())
                await router.on_inbound(said)
                await router.settled(said.place)
            await memory.learner.flush_all(memory.agents.ids["assistant"])
            moment[0] += 3 * _DAY
        await memory.indexed()
        for night in range(1, 10):
            run = await memory.jobs.run("assistant", "compare", f"2026-07-{night:02}")
            if run is None or not run.counts:
                break
            moment[0] += _DAY
        return {pair.id: await outcome(memory, pair) for pair in pairs}


async def outcome(memory: Service, pair: Pair) -> str:
    """Returns what came of a pair."""
    rows = await memory.database.read(
        lambda reader: reader.all(
            "select distinct m.id, said.text as said, m.valid_until, m.superseded_by, c.verdict,"
            " coalesce(c.why, '') as why from memories m join memory_sources s on s.memory_id = m.id"
            " join messages said on said.id = s.message_id left join comparisons c on c.older_id = m.id"
            " and c.verdict <> 'agree' where m.kind = 'fact' and said.text in (?, ?)"
            " and said.author_id in (select id from identities where user_id = ?)",
            (pair.first, pair.second, pair.id),
        )
    )
    first = [row for row in rows if row["said"] == pair.first]
    if any(row["verdict"] == "doubt" for row in rows):
        return "asked"
    over = [row for row in first if row["valid_until"] is not None]
    if over:
        return "superseded" if any(row["superseded_by"] and row["why"] != "ended" for row in over) else "ended"
    return "kept" if {row["said"] for row in rows} == {pair.first, pair.second} else "unread"


def _said(person: str, text: str, number: int, at: int) -> Inbound:
    return Inbound(
        channel="console", platform="console", bot_id="local", update_key=str(number), chat=person,
        chat_kind="private", author_id=person, author_name="Sam", message_id=str(number), text=text, sent_at=at,
    )  # fmt: skip


def is_right(pair: Pair, came: str) -> bool:
    """Returns whether what came of a pair is right."""
    return (came in ("superseded", "ended", "asked")) == (pair.kind == "conflict")


def figures(pairs: Sequence[Pair], came: Mapping[str, str]) -> dict[str, Any]:
    """Returns the share of pairs that are right, by kind and of all, and what came of them."""
    found: dict[str, Any] = {"right": round(sum(is_right(one, came[one.id]) for one in pairs) / len(pairs), 3)}
    for kind in ("conflict", "compatible"):
        some = [one for one in pairs if one.kind == kind]
        right = sum(is_right(one, came[one.id]) for one in some)
        found[kind] = {"right": round(right / max(1, len(some)), 3), **Counter(came[one.id] for one in some)}
    return found


async def measured(pairs: Sequence[Pair], model: str | None) -> dict[str, dict[str, str]]:
    """Returns what came of each pair, by the agent: without a model, with the scripted one, and with a real one."""
    found: dict[str, dict[str, str]] = {}
    server = Scripted({(one.first, one.second): one.expect for one in pairs}, set())
    async with serving(server.chat) as base_url:
        scripted = f"models: [{{provider: openai, model: m, base_url: '{base_url}', context: 32000}}]\n"
        agents = {"patterns": "models: [{provider: offline, model: offline}]\n", "read": scripted}
        for name, models in (agents | ({"model": model} if model else {})).items():
            with tempfile.TemporaryDirectory() as folder:
                found[name] = await played(Path(folder), pairs, models)
    return found


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--show", action="store_true", help="print each pair that is not right")
    parser.add_argument("--base-url", help="a server with OpenAI's chat API")
    parser.add_argument("--model", help="its model")
    parser.add_argument("--key-env", default="OPENAI_API_KEY", help="the environment variable that holds its key")
    wanted = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    pairs = TypeAdapter(list[Pair]).validate_python(yaml.safe_load(wanted.file.read_text("utf-8")))
    model = None
    if wanted.model:
        spec = {"provider": "openai", "model": wanted.model, "base_url": wanted.base_url, "temperature": 0}
        if key := os.environ.get(wanted.key_env):
            spec["key"] = key
        model = f"models: [{json.dumps(spec)}]\n"
    came = asyncio.run(measured(pairs, model))
    for name, each in came.items() if wanted.show else ():
        for pair in pairs:
            if not is_right(pair, each[pair.id]):
                print(name, pair.id, pair.language, pair.expect, each[pair.id], pair.first, pair.second, sep=" | ")
    found = {name: figures(pairs, each) for name, each in came.items()}
    if wanted.json:
        print(json.dumps({"right": found["read"]["right"], **found}))
        return
    for name, figure in found.items():
        print(f"{name}: " + ", ".join(f"{what} {value}" for what, value in figure.items()))


if __name__ == "__main__":
    main()
