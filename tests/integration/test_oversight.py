"""Oversight: admins see people and groups of their channel alone, recorded, and no more than the operator lets them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway.pipeline.policy import Rules
from gateway.wording.texts import CATALOGUE
from memory.chat.edits import Edits
from memory.oversight import Overseer
from memory.people import privacy
from memory.people.privacy import AuditEntry
from memory.service import Service
from memory.store.questions import Question
from tests.kit.fakes import Clock
from tests.kit.pipeline import World, pipeline
from tests.kit.stores import rows
from tests.kit.talk import private, received

ADMIN, OTHER_ADMIN, BOB, CYD = "12345678", "87654321", "22222222", "33333333"
CLUB = "-1001234567"
FAR = "123456789012345678"
RULES = {
    "telegram": Rules(allow=frozenset({BOB, CYD}), admins=frozenset({ADMIN}), groups=frozenset({CLUB})),
    "telegram2": Rules(allow=frozenset({BOB}), admins=frozenset({OTHER_ADMIN}), groups=frozenset({CLUB})),
    "discord": Rules(allow=frozenset({FAR})),
}
TEXTS = CATALOGUE["en"]


@asynccontextmanager
async def world_of(folder: Path, *, admins_read: bool = True) -> AsyncIterator[World]:
    """Bob and Cyd have told something in private, Bob something in the group, and from another platform."""
    async with pipeline(folder, rules=RULES, admins_read=admins_read, agents=("assistant", "other")) as world:
        await world.say("/remember I like tea", author=BOB)
        await world.say("/remember I like chess", author=BOB, chat=CLUB)
        await world.say("/remember I like rum", author=CYD)
        await world.say("/remember I like whales", author=FAR, channel="discord")
        yield world


async def looked(world: World, reference: str, *, group: bool = False) -> list[tuple[str, int]]:
    kind = "chat" if group else "identity"
    (owner,) = await world.rows(
        "select o.id from owners o left join identities i on i.id = o.identity_id"
        " left join chat_aliases a on a.chat_id = o.chat_id where o.kind = ? and ? in (i.user_id, a.reference)",
        kind,
        reference,
    )
    found: list[AuditEntry] = await world.memory.database.read(lambda reader: privacy.looks(reader, owner, 10))
    assert all(look.admin_name == f"N{ADMIN}" and look.agent == "assistant" for look in found)
    return [(look.action, look.found) for look in found]


async def admin(world: World, command: str, **more: str) -> str:
    (answer,) = await world.say(f"/admin memory {command}", author=ADMIN, **more)
    return answer


async def test_an_admin_sees_what_a_person_told_here_and_the_person_sees_that(tmp_path: Path) -> None:
    """Of that person alone, and not what they said in a group; each look leaves its row, also one in vain."""
    async with world_of(tmp_path) as world:
        tea = (await world.ids())["tea"]
        listed = await admin(world, BOB)
        assert "tea" in listed and TEXTS["oversight.told"] in listed
        assert not any(word in listed for word in ("chess", "rum", "whales"))
        assert "tea" in await admin(world, f"{BOB} search what about tea")
        assert "likes" not in await admin(world, f"{BOB} search whales")
        shown = await admin(world, f"{BOB} show {tea}")
        assert "likes: tea" in shown
        assert await looked(world, BOB) == [("show", 1), ("search", 0), ("search", 1), ("list", 1)]
        assert await looked(world, CYD) == await looked(world, CLUB, group=True) == []


async def test_a_group_is_looked_at_as_a_whole(tmp_path: Path) -> None:
    """By its id; what its people told in private is not the group's."""
    async with world_of(tmp_path) as world:
        listed = await admin(world, f"{CLUB} list")
        assert "chess" in listed and "tea" not in listed
        assert await looked(world, CLUB, group=True) == [("list", 1)]


async def test_anothers_id_is_answered_like_an_unknown_one(tmp_path: Path) -> None:
    async with world_of(tmp_path) as world:
        ids = await world.ids()
        for action in ("show", "forget"):
            unknown = await admin(world, f"{BOB} {action} m_nobody")
            for value in ("rum", "chess", "whales"):
                answer = await admin(world, f"{BOB} {action} {ids[value]}")
                assert answer.replace(ids[value], "m_nobody") == unknown
        assert {found for _, found in await looked(world, BOB)} == {0}


@pytest.mark.parametrize("action", ["", " list", " search tea", " show m_nobody", " forget m_nobody"])
async def test_whoever_is_not_of_this_channel_is_answered_like_somebody_who_is_nowhere(
    tmp_path: Path, action: str
) -> None:
    """An admin of one bot must not learn who talks to another, nor on another platform; yet those see that one tried."""
    async with world_of(tmp_path) as world:
        nobody = await admin(world, f"99999999{action}")
        for who in (FAR, "3", ADMIN):
            assert (await admin(world, f"{who}{action}")).replace(who, "99999999") == nobody
        (other,) = await world.say(f"/admin memory {CYD}{action}", author=OTHER_ADMIN, channel="telegram2")
        assert other.replace(CYD, "99999999") == nobody
        assert (await world.rows("select count(*) from looks where found > 0")) == [(0,)]
        # Cyd and the admin are known to the store.
        assert (await world.rows("select count(*) from looks")) == [(2,)]


async def test_where_admins_read_nothing_they_count_and_forget(tmp_path: Path) -> None:
    """The operator's switch: not a word of it comes out, by no action."""
    async with world_of(tmp_path, admins_read=False) as world:
        tea = (await world.ids())["tea"]
        actions = ("list", "search tea", f"show {tea}", f"forget {tea}")
        said = [await admin(world, f"{BOB} {action}") for action in actions]
        assert not any("likes" in one or "tea" in one for one in said)
        assert "facts: 1" in said[0]
        assert said[1] == said[2] == TEXTS["oversight.withheld"].format(who=BOB)
        (done,) = await world.say("yes", author=ADMIN)
        assert "Memories: 1" in done and "tea" not in await world.ids()
        assert await looked(world, BOB) == [("forget", 1), ("forget", 0), ("show", 0), ("search", 0), ("list", 0)]


async def test_an_admin_forgets_what_a_person_told_with_the_words(tmp_path: Path) -> None:
    """It asks first; what others hold stays as it is, and the person sees that it was done."""
    async with world_of(tmp_path) as world:
        tea = (await world.ids())["tea"]
        asked = await admin(world, f"{BOB} forget {tea}")
        assert tea in asked and "tea" in asked
        (kept,) = await world.say("no", author=ADMIN)
        assert kept == TEXTS["forget.kept"] and "tea" in await world.ids()
        asked_again = await world.hear(world.inbound(f"/admin memory {BOB} forget {tea}", author=ADMIN))
        (yes, _no) = asked_again[0].buttons
        (done,) = await world.say(author=ADMIN, pressed=yes.data)
        assert "Memories: 1" in done
        assert sorted(await world.ids()) == ["chess", "rum", "whales"]
        (over,) = await world.say(author=ADMIN, pressed=yes.data)
        assert over == TEXTS["answer.over"]
        assert await looked(world, BOB) == [("forget", 1), ("show", 1), ("show", 1)]


async def test_a_look_is_noted_once_and_only_if_something_was_done(memory: Service, clock: Clock) -> None:
    """The person reads what was done to them: nothing, where the question was over; once, however often it is tried."""
    ada, boss = private("ada"), private("boss")
    context = await memory.identities.context(*ada)
    admin_context = await memory.identities.context(*boss)
    desk_ids: list[int] = []

    def keep(edits: Edits) -> tuple[()]:
        desk_ids.extend(one.id for one in edits.remember("I like tea"))
        return ()

    async def asked() -> Question:
        found: list[Question] = []

        def act(overseer: Overseer) -> tuple[()]:
            found.append(overseer.ask("erase", {"memory": desk_ids[0]}, choices=("yes", "no"), preset="yes"))
            return ()

        await memory.oversight.answer(
            admin_context, await received(memory, boss[0].session_key), "ada", "show", act, channel="console"
        )
        return found[0]

    await memory.requests.answer(context, await received(memory, boss[0].session_key), keep)
    over = await asked()
    await memory.questions.cancel(over)
    assert (
        await memory.oversight.forget(
            admin_context, await received(memory, boss[0].session_key), over, "ada", desk_ids[0], channel="console"
        )
        is None
    )
    noted = "select found from looks where action = 'forget'"
    assert await rows(memory, noted) == []
    question, request = await asked(), await received(memory, boss[0].session_key)
    for _ in range(2):
        receipt = await memory.oversight.forget(admin_context, request, question, "ada", desk_ids[0], channel="console")
        assert receipt is not None and receipt.memories == 1
        clock.move(minutes=1)
    assert await rows(memory, noted) == [(1,)]


async def test_a_forwarded_yes_is_no_admins_word(tmp_path: Path) -> None:
    """A forwarded word was said by somebody, some time, to something else."""
    async with world_of(tmp_path) as world:
        tea = (await world.ids())["tea"]
        await admin(world, f"{BOB} forget {tea}")
        await world.say("yes", author=ADMIN, forwarded=True)
        assert "tea" in await world.ids()


async def test_nothing_of_it_is_said_in_a_group(tmp_path: Path) -> None:
    async with world_of(tmp_path) as world:
        assert await admin(world, f"{BOB} list", chat=CLUB) == TEXTS["oversight.private"]
        assert (await world.rows("select count(*) from looks")) == [(0,)]


@pytest.mark.parametrize(
    "arguments",
    ["", "memory", "memory bob", "memory @bob", "memory 022", "memory 1e3", f"memory {BOB} show", "x 1", f"{BOB}"],
)
async def test_what_is_not_understood_is_answered_with_how_it_is_written(tmp_path: Path, arguments: str) -> None:
    """People are named by their numbers, as their platform writes them, never by a name."""
    async with world_of(tmp_path) as world:
        (answer,) = await world.say(f"/admin {arguments}", author=ADMIN)
        assert "/admin memory" in answer and "tea" not in answer


async def test_a_long_list_is_leafed_through_by_the_admin_alone(tmp_path: Path) -> None:
    """The button holds the command as typed: pressed by somebody else it does what they may."""
    async with world_of(tmp_path) as world:
        for n in range(12):
            await world.say(f"/remember number {n} is lucky", author=BOB)
        (first,) = await world.hear(world.inbound(f"/admin memory {BOB} list", author=ADMIN))
        assert [button.label for button in first.buttons] == ["1/2", "›"]
        (second,) = await world.hear(world.inbound(author=ADMIN, pressed=first.buttons[-1].data, message_id="77"))
        assert second.edits == "77" and [button.label for button in second.buttons] == ["‹", "2/2"]
        ids = await world.ids()
        shown = first.text + second.text
        assert sum(shown.count(f"{ids[value]} ") for value in ids if "lucky" in value or value == "tea") == 13
        (found,) = await world.hear(world.inbound(f"/admin memory {BOB} search lucky", author=ADMIN))
        (more,) = await world.hear(world.inbound(author=ADMIN, pressed=found.buttons[-1].data, message_id="78"))
        assert more.edits == "78" and more.text.splitlines()[1] not in found.text
        (his,) = await world.say(author=BOB, pressed=first.buttons[-1].data)
        assert "lucky" not in his
