"""Who may do what only admins may, and what only the person concerned: identities × commands, through the pipeline.

Each case is a message that a platform could bring, said to a running bot; wrong is a case after which anything is
changed that only somebody else may change, or in which something is said that only an admin is told.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from channels.base import Attachment
from gateway.commands.table import TABLE
from gateway.pipeline.policy import Rules
from gateway.wording.texts import CATALOGUE
from tests.kit.pipeline import World, pipeline

ADMIN, OTHER_ADMIN, FAR_ADMIN = "12345678", "87654321", "123456789012345678"
BOB, CYD, STRANGER = "22222222", "33333333", "44444444"
CLUB, SHUT = "-1001234567", "55555555"

RULES = {
    "telegram": Rules(allow=frozenset({BOB, CYD, SHUT}), admins=frozenset({ADMIN}), groups=frozenset({CLUB})),
    "telegram2": Rules(allow=frozenset({BOB, ADMIN}), admins=frozenset({OTHER_ADMIN}), groups=frozenset({CLUB})),
    "discord": Rules(allow=frozenset({BOB, ADMIN}), admins=frozenset({FAR_ADMIN}), groups=frozenset({"99"})),
}

#: One message for each command that only admins have, such that it would change or tell something. {memory} is Bob's.
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "allow": (f"/allow {STRANGER}", "/allow here", "/allow"),
    "block": (f"/block {BOB}",), "pair": ("/pair",), "dead": ("/dead", "/dead purge"),
    "admin": (f"/admin memory {BOB} list", f"/admin memory {BOB} show {{memory}}",
     f"/admin memory {BOB} forget {{memory}}"),
    "agents": ("/agents",), "jobs": ("/jobs", "/jobs run decay"), "backup": ("/backup",), "reload": ("/reload",),
}  # fmt: skip
#: The acts of the person concerned alone, with Bob's memories and the number of the question that Bob is asked.
PERSONAL = (
    "/forget {memory}", "/forget {said}", "/correct {memory} coffee", "/correct {said} draughts", "/memory show {memory}",
    "/memory history {memory}", "/memory pin {said}", "/memory edit {said} draughts", "/link {memory}", "yes", "是", "ok",
)  # fmt: skip
#: The rows that nobody here changes but admins, and the person concerned.
GUARDED = (
    "select channel, subject, reference, state from access order by 1, 2, 3",
    "select count(*) from pairings",
    "select short_id, value, archived_at, superseded_by, pinned, confirmed from memories order by id",
    "select count(*) from looks",
    "select count(*) from outbox where state = 'dead'",
    "select state, answer from questions where asker_id = (select id from identities where user_id = '22222222' and platform = 'telegram')",
    "select user_id, person_id from identities where platform = 'telegram' and user_id in ('22222222', '12345678')",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Somebody who is not an admin here, or whose message does not count as one's; laid over the message."""

    name: str
    author: str
    more: Mapping[str, Any] = field(default_factory=dict)
    channel: str = "telegram"


_SPELLINGS = [
    # nobody, and what programs write for nobody
    "", " ", "\t", "\u3000", "0", "00", "-0", "-1", "None", "null", "undefined", "NaN", "true", "False",
    # the admin's id in another spelling
    f"+{ADMIN}", f"-{ADMIN}", f"0{ADMIN}", f" {ADMIN}", f"{ADMIN} ", f"{ADMIN}\n", f"{ADMIN}\u200b", f"\ufeff{ADMIN}",
    f"{ADMIN}.0", f"{ADMIN}.", "12_345_678", "12,345,678", "1.2345678e7", "12345678e0", "0xbc614e", "１２３４５６７８",
    "١٢٣٤٥٦٧٨", "1234567８",
    # parts of it and more than it
    ADMIN[:-1], ADMIN[1:], ADMIN[3:6], ADMIN[0], ADMIN * 2, f"{ADMIN}9", f"9{ADMIN}", "8" * 400,
    # names, lists, patterns, other things of that number
    "admin", "@admin", "Ada", "*", ".*", "%", f"{ADMIN},{BOB}", f"telegram:{ADMIN}", f"<@{ADMIN}>", CLUB,
    CLUB.removeprefix("-"), "1087968824", "136817688", "777000",
]  # fmt: skip
IDENTITIES: tuple[Identity, ...] = (
    *(Identity(name=repr(one[:30]), author=one) for one in _SPELLINGS),
    *(
        Identity(name=f"in the group, {one[:30]!r}", author=one, more={"chat": CLUB})
        for one in ("", "0", "None", ADMIN[:-1], f"0{ADMIN}", f" {ADMIN}", "1087968824", "777000", CLUB, STRANGER, BOB)
    ),
    Identity(name="somebody let in", author=BOB),
    Identity(name="called by the admin's id", author=BOB, more={"author_name": ADMIN}),
    Identity(name="called as the admin", author=BOB, more={"author_name": f"N{ADMIN}"}),
    Identity(name="in a group called by the admin's id", author=BOB, more={"chat": CLUB, "chat_title": ADMIN}),
    Identity(name="in the admin's own chat", author=BOB, more={"chat": ADMIN, "chat_kind": "private"}),
    Identity(name="a reply to the admin", author=BOB, more={"chat": CLUB, "reply_to": "1"}),
    Identity(name="a caption", author=BOB, more={"attachments": (Attachment(kind="image", name="photo"),)}),
    Identity(name="the other bot's admin", author=OTHER_ADMIN),
    Identity(name="the other bot's admin in the group", author=OTHER_ADMIN, more={"chat": CLUB}),
    Identity(name="the admin at the other bot", author=ADMIN, channel="telegram2"),
    Identity(name="the admin at the other bot in the group", author=ADMIN, channel="telegram2", more={"chat": CLUB}),
    Identity(name="the admin's id on the other platform", author=ADMIN, channel="discord"),
    Identity(name="the other platform's admin", author=FAR_ADMIN),
    Identity(name="a webhook", author="", channel="discord", more={"chat": "99", "author_name": FAR_ADMIN}),
    Identity(name="the admin, forwarded", author=ADMIN, more={"forwarded": True}),
    Identity(name="the admin, forwarded in the group", author=ADMIN, more={"forwarded": True, "chat": CLUB}),
    Identity(name="the admin, edited", author=ADMIN, more={"edited": True, "message_id": "1"}),
    Identity(
        name="the admin, edited in the group", author=ADMIN, more={"edited": True, "message_id": "1", "chat": CLUB}
    ),
    Identity(name="the admin, not to the bot", author=ADMIN, more={"addressed": False, "chat": CLUB}),
    Identity(name="the admin, anonymously", author="", more={"chat": CLUB, "author_name": f"N{ADMIN}"}),
)


@asynccontextmanager
async def _prepared(folder: Path) -> AsyncIterator[tuple[World, dict[str, str]]]:
    """A bot with memories of Bob, a question to him, and a message that could not be delivered; with the ids of these.

    The memories are from his private chat and from the group, where he was asked the question, too.
    """
    async with pipeline(folder, rules=RULES) as world:
        await world.say("/remember I like tea", author=BOB)
        await world.say("/remember I like chess", author=BOB, chat=CLUB)
        ids = await world.ids()
        memory, said = ids["tea"], ids["chess"]
        world.walls["telegram"].shut.add(SHUT)
        await world.say("/help", author=SHUT)
        await world.say(f"/forget {said}", author=BOB, chat=CLUB)
        ((question,),) = await world.rows("select id from questions where state = 'open'")
        for who in (ADMIN, CYD):
            await world.say("hello", author=who)
            await world.say("hello", author=who, chat=CLUB)
        yield world, {"memory": memory, "said": said, "question": str(question)}


async def _guarded(world: World) -> list[list[tuple[Any, ...]]]:
    return [await world.rows(sql) for sql in GUARDED]


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, re.split(r"\{\w+\}", text))), re.DOTALL)


#: The groups of texts for admins alone, and the texts of these groups that others read.
_FOR_ADMINS = {"agents", "allow", "backup", "block", "dead", "grant", "oversight", "pair", "reload"}
_FOR_ALL = {"pair.welcome", "pair.wrong", "pair.locked", "dead.told"}
#: All that only admins are told.
_TOLD = [
    *(
        _pattern(text)
        for key, text in CATALOGUE["en"].items()
        if key.partition(".")[0] in _FOR_ADMINS and key not in _FOR_ALL
    ),
    *(_pattern(CATALOGUE["en"][f"jobs.{key}"]) for key in ("agent", "line", "asked", "unknown", "unknown_agent")),
]


def _is_told(answer: str) -> bool:
    return any(told.fullmatch(line) for line in answer.splitlines() for told in _TOLD)


class Trial:
    """Says one thing after the other and notes what must not have come of it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.count = 0
        self.wrong: list[str] = []

    async def case(self, name: str, text: str, *, secret: str | None = None, **more: Any) -> list[str]:
        """Nothing that is guarded may change, nothing be told that only admins are told, nor the words `secret`."""
        before = await _guarded(self._world)
        answers = await self._world.say(text, **more)
        self.count += 1
        if await _guarded(self._world) != before:
            self.wrong.append(f"{name}: {text!r} changed something")
        for answer in answers:
            if _is_told(answer) or (secret is not None and secret in answer):
                self.wrong.append(f"{name}: {text!r} is answered {answer!r}")
        return answers


def test_every_command_of_admins_is_tried() -> None:
    """A new one must not be left out of the table below."""
    assert {command.name for command in TABLE if command.admin} <= set(COMMANDS)


async def test_nobody_but_the_named_admin_gets_what_admins_have(tmp_path: Path) -> None:
    """Nearly every hole of this kind of bot was an identity that matched by half, or an empty one that matched all."""
    known = {command.name for command in TABLE}
    async with _prepared(tmp_path) as (world, names):
        trial = Trial(world)
        commands = [text.format(**names) for name, texts in COMMANDS.items() if name in known for text in texts]
        for identity in IDENTITIES:
            for text in commands:
                more = {"author": identity.author, "channel": identity.channel, **identity.more}
                await trial.case(identity.name, text, secret="tea", **more)
        for text in commands:
            # By the admin's own button, by data that somebody has made up, in all spellings.
            for data in (
                f"run:{text}",
                text,
                f"answer:{names['question']}:yes",
                f"run:\n{text}",
                f"run:{text.upper()}",
            ):
                for where in ({}, {"chat": CLUB}, {"chat": ADMIN, "chat_kind": "private"}):
                    for author in (CYD, "", f"0{ADMIN}"):
                        await trial.case(
                            f"a press by {author!r}", "", secret="tea", author=author, pressed=data, **where
                        )
            name, _, rest = text[1:].partition(" ")
            for written in (
                f"\n{text}",
                f"/{name}@remora_bot {rest}",
                f"/{name.upper()} {rest}",
                f"/{name}\u00a0{rest}",
            ):
                await trial.case("somebody let in", written, secret="tea", author=CYD)
                await trial.case("somebody let in", written, secret="tea", author=CYD, chat=CLUB)
            alike = "/" + name.translate(str.maketrans("aoepc", "аоерс"))
            for written in (f"{alike} {rest}", f"／{name} {rest}", f"/ {name} {rest}", f".{text}", f"x {text}"):
                for author in (ADMIN, CYD):
                    await trial.case("letters that look alike", written, author=author)
        assert trial.count >= 1_000
        assert not trial.wrong, "\n".join(trial.wrong)


async def test_what_is_somebodys_own_is_theirs_alone(tmp_path: Path) -> None:
    """Also an admin's rights are no right to another's memory, links and answers."""
    async with _prepared(tmp_path) as (world, names):
        trial = Trial(world)
        others = [
            identity for identity in IDENTITIES if identity.author != BOB or "author_name" in identity.more
        ]  # fmt: skip
        people = [
            (one.name, {"author": one.author, "channel": one.channel, **one.more})
            for one in others
            if one.author != BOB
        ]
        people += [("the admin", {"author": ADMIN})]  # what was said in the group may go on an admin's word
        people += [("a friend", {"author": CYD}), ("a friend", {"author": CYD, "chat": CLUB})]
        for name, more in people:
            for text in PERSONAL:
                said = text.format(**names)
                await trial.case(name, said, secret="tea" if "{memory}" in text else None, **more)
            for data in (
                "answer:{question}:yes",
                "run:/forget {memory}",
                "run:/forget {said}",
                "answer:{question}:yes:alone",
            ):
                await trial.case(name, "", secret="tea", pressed=data.format(**names), **more)
        assert trial.count >= 1_000
        assert not trial.wrong, "\n".join(trial.wrong)


@pytest.mark.parametrize("name", [command.name for command in TABLE if command.admin])
async def test_the_named_admin_does_get_them(tmp_path: Path, name: str) -> None:
    """A lock that opens for nobody would pass every case above; and what is told is known to be an admin's."""
    async with _prepared(tmp_path) as (world, names):
        for text in COMMANDS[name]:
            answers = await world.say(text.format(**names), author=ADMIN)
            usage = _pattern(CATALOGUE["en"]["command.usage"])
            assert answers, text
            assert any(_is_told(one) or usage.match(one) for one in answers), answers
