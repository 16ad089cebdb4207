"""Measures the judgement of the agent without a model over written dialogues.

    python -m bench.offline FILE… [--json] [--show KIND] [--vectors]

Each line of a FILE is one dialogue in JSON: `says` (messages typed before), `new_session` (whether /new comes between),
`ask` (the last message), `kind` and `expect`. Each dialogue is played through the whole pipeline over a store of its
own. A reply to an "answerable" question is right if it holds one of `expect.any` and none of `expect.none`; a reply to
an "unanswerable" one or to "social" talk is wrong if it holds one of `expect.none`; one that tells with doubt what
comes nearest is not, but is counted (`unanswerable_unsure`). A "request" (forget, correct, end)
is acted on if afterwards no current memory of the person holds one of `expect.gone`, or one of `expect.never_stored`
that was not there before, and one holds each of `expect.now`. Where memory never held what was to go, because nothing
was learned from it, a request to forget must have offered the messages that hold it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog

from agents.offline.speech import speech
from channels.base import Capabilities, Channel, Inbound, Outbound
from gateway import app
from gateway.config.loading import Config, load
from gateway.reception.router import Router
from languages import LANGUAGES
from memory.chat.identities import Where, Who
from memory.service import Service
from memory.text.sentences import parts
from memory.text.simplified import simplified

_START = 1_790_000_000_000  # September 2026
_MINUTE = 60_000
_UNSURE = [speech(code, simplified, parts).texts["near"].split("{")[0] for code in LANGUAGES]


class _Screen(Channel):
    """Keeps what it is told to show."""

    id = "console"
    platform = "console"
    capabilities = Capabilities(burst_seconds=0)

    def __init__(self) -> None:
        self.shown: list[str] = []

    async def send(self, outbound: Outbound) -> str:
        self.shown.append(outbound.text)
        return str(outbound.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A dialogue after its last message: the reply, and the person's current memories before and after it."""

    replies: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class Talk:
    """One person at a terminal of a bot without a model. A minute goes by before each message."""

    router: Router
    memory: Service
    screen: _Screen
    clock: list[int]
    count: int = 0

    async def say(self, text: str) -> list[str]:
        """Says `text` and returns the replies."""
        self.count += 1
        self.clock[0] += _MINUTE
        shown = len(self.screen.shown)
        inbound = Inbound(
            channel="console", platform="console", bot_id="local", update_key=str(self.count), chat="me",
            chat_kind="private", author_id="me", author_name="", message_id=str(self.count), text=text,
            sent_at=self.clock[0],
        )  # fmt: skip
        await self.router.on_inbound(inbound)
        await self.router.settled(inbound.place)
        return self.screen.shown[shown:]

    async def is_asked(self) -> bool:
        """Returns whether a question to the person is open."""
        return await self.memory.questions.at(_HERE, _ME) is not None

    async def held(self, *, sure: bool = False) -> tuple[str, ...]:
        """Returns the person's current memories, or those that are told as `sure`."""
        context = await self.memory.identities.context(_HERE, _ME)
        rows = await self.memory.browse.memories(context, limit=1_000)
        return tuple(f"{one.key}: {one.value}" for one in rows if not (sure and one.unsure))


_ME = Who(platform="console", user_id="me", name="")
_HERE = Where(
    session_key="console:me:-", platform="console", chat="me", chat_kind="private", thread=None, agent="assistant"
)


def configuration(folder: Path, *, vectors: bool) -> Config:
    """Returns the settings of a new installation in `folder`, with a store that forgets its words at once."""
    settings = ["http: {enabled: false}", "limits: {burst_seconds: 0}"]
    if not vectors:
        settings.append("embedding: {provider: none}")
    (folder / "config.yaml").write_text("\n".join(settings) + "\n")
    return load(folder / "config.yaml", {}, folder)


@asynccontextmanager
async def talk(*, vectors: bool = False) -> AsyncIterator[Talk]:
    """Yields a talk over a new store."""
    screen, clock = _Screen(), [_START]

    def now() -> int:
        clock[0] += 1
        return clock[0]

    with tempfile.TemporaryDirectory() as folder:
        config = configuration(Path(folder), vectors=vectors)
        async with (
            app.opened(config, {"console": screen}, now=now) as parts,
            app.answering(config, {"console": screen}, parts, now=now) as router,
        ):
            memory = parts.roster.stores[config.default_agent].memory
            yield Talk(router=router, memory=memory, screen=screen, clock=clock)


async def play(dialogue: dict[str, Any], *, vectors: bool = False) -> Played:
    """Plays one dialogue over a new store."""
    async with talk(vectors=vectors) as person:
        for text in dialogue["says"]:
            await person.say(text)
        if dialogue["new_session"]:
            await person.say("/new")
        if vectors:
            await person.memory.indexed()
        before = await person.held()
        replies = await person.say(dialogue["ask"])
        if dialogue["kind"] == "request" and replies and await person.is_asked():
            replies += await person.say("yes")
        return Played(replies=tuple(replies), before=before, after=await person.held())


def judged(dialogue: dict[str, Any], played: Played) -> bool:
    """Returns whether the bot did right, as this module says."""
    expect, reply = dialogue["expect"], "\n".join(played.replies).casefold()
    if dialogue["kind"] == "unanswerable" and is_unsure(played):
        return True
    if dialogue["kind"] != "request":
        wrong = _holds(reply, expect.get("none", []))
        return not wrong and (not expect.get("any") or _holds(reply, expect["any"]))
    before, after = ("\n".join(each).casefold() for each in (played.before, played.after))
    added = "\n".join(sorted(set(played.after) - set(played.before))).casefold()
    if _holds(after, expect.get("gone", [])) or _holds(added, expect.get("never_stored", [])):
        return False
    if not all(one.casefold() in after for one in expect.get("now", [])):
        return False
    nothing_held = not _holds(before, expect.get("gone", []))
    return not (expect.get("act") == "forget" and nothing_held and len(played.replies) < 2)


def is_unsure(played: Played) -> bool:
    """Returns whether the reply tells with doubt what comes nearest."""
    return any(near in reply for reply in played.replies for near in _UNSURE)


def _holds(text: str, values: Sequence[str]) -> bool:
    return any(value.casefold() in text for value in values)


def dialogues(files: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """Yields the dialogues of the files in order."""
    for file in files:
        for line in file.read_text("utf-8").splitlines():
            if line.strip():
                yield {"file": file.stem, **json.loads(line)}


async def measure(files: Sequence[Path], *, show: str, vectors: bool) -> dict[str, dict[str, float]]:
    """Returns, by file and kind, the share of dialogues done right and their number; shows the others on the way."""
    right, total, unsure = Counter[tuple[str, str]](), Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for dialogue in dialogues(files):
        key = (dialogue["file"], dialogue["kind"])
        played = await play(dialogue, vectors=vectors)
        good = judged(dialogue, played)
        total[key] += 1
        right[key] += good
        unsure[key] += is_unsure(played)
        if show in (dialogue["kind"], "all", dialogue["id"]) and (not good or show == dialogue["id"]):
            print(f"--- {dialogue['id']} {json.dumps(dialogue['expect'], ensure_ascii=False)}")
            print("\n".join(f"    {text}" for text in dialogue["says"]), "/new" if dialogue["new_session"] else "")
            print(f"  > {dialogue['ask']}\n  < " + "\n    ".join(played.replies))
            if dialogue["kind"] == "request":
                print(f"    before {played.before}\n    after  {played.after}")
    found: dict[str, dict[str, float]] = {}
    for (file, kind), count in sorted(total.items()):
        found.setdefault(file, {})[kind] = round(right[file, kind] / count, 3)
        found[file][f"{kind}_unsure"] = round(unsure[file, kind] / count, 3)
        found[file][f"{kind}_count"] = count
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--show", default="", help="a kind, an id or all: print the dialogues that went wrong")
    parser.add_argument("--vectors", action="store_true", help="search by meaning, too, as a new installation does")
    options = parser.parse_args()
    structlog.configure(
        processors=[structlog.processors.format_exc_info, structlog.processors.KeyValueRenderer()],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    found = asyncio.run(measure(options.files, show=options.show, vectors=options.vectors))
    if options.json:
        print(json.dumps(found))
        return
    for file, kinds in found.items():
        shares = (
            f"{kind} {share:.3f} of {kinds[kind + '_count']:g}" for kind, share in kinds.items() if "_" not in kind
        )
        print(f"{file}: {', '.join(shares)}")


if __name__ == "__main__":
    main()
