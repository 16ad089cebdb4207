"""Privacy: people learn what is kept, say what is not to be learned, and have all of theirs erased."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from agents.spec import SessionSpec
from channels.base import Place
from gateway.wording.texts import Texts
from languages import Language
from memory.chat.edits import Edits
from memory.chat.identities import Where, Who
from memory.context import Context
from memory.errors import NotWished
from memory.forgetting.choose import Selection
from memory.housekeeping import Keeping
from memory.learn import keep
from memory.learn.model import BackgroundModel, ModelAnswer, ModelRequest
from memory.people import privacy
from memory.service import Service
from memory.store.database import Transaction
from memory.store.entities import Named, Type
from memory.store.memories import Draft
from tests.kit.bench import Desk as Bench
from tests.kit.bench import Phone
from tests.kit.canaries import Canary, Spot, World
from tests.kit.fakes import NOON, Clock, ScriptedModel, calls
from tests.kit.forgetting import carried_out, files_of, held_by_backups, standing, traces
from tests.kit.minds import answered
from tests.kit.stores import AGENTS, counting, link, opened, rows, unlink
from tests.kit.talk import group, leave_chat, private, received, say, teach

PEOPLE = ("ada", "bob")


async def facts(memory: Service, context: Context) -> list[str]:
    return sorted(one.value for one in await memory.browse.memories(context, limit=100))


async def ask_to_keep(memory: Service, place: tuple[Where, Who], text: str) -> int:
    where, _ = place
    kept: list[int] = []

    def act(edits: Edits) -> tuple[()]:
        kept.append(len(edits.remember(text)))
        return ()

    inbox_id = await received(memory, where.session_key)
    await memory.requests.answer(await memory.identities.context(*place), inbox_id, act)
    return kept[0]


def draft(context: Context, **fields: object) -> Draft:
    """Something said of somebody in a group by who speaks there, unless `fields` say otherwise."""
    plain = Draft(
        kind="fact", owner_id=context.scope.writes_to, author_id=context.speaker.id, category="preference",
        key="likes", value="tea", importance=5, confidence=1.0, origin="extracted", learned_at=NOON,
        local_date="2026-11-21",
    )  # fmt: skip
    return replace(plain, **fields)  # type: ignore[arg-type]


async def kept(
    memory: Service,
    context: Context,
    one: Draft,
    *,
    source_ids: tuple[int, ...] = (),
    names: tuple[Named, ...] = (),
    now: int = NOON,
) -> bool:
    def act(tx: Transaction) -> bool:
        made = keep.keep(
            tx, context.scope, one, source_ids=source_ids, names=names, now=now, new_id=lambda: f"m_{counting()}"
        )
        return made is not None

    return await memory.database.write(act)


# Learning from what somebody says -------------------------------------------------------------------------------


async def test_who_is_out_is_not_learned_from_anywhere_and_nobody_else_is_touched(
    memory: Service, clock: Clock
) -> None:
    """In private and in groups, by whichever agent; what was known stays, and in between nothing is caught up on."""
    ada = await memory.identities.context(*private("ada"))
    await say(memory, private("ada"), "I live in Porto.", ref="1", clock=clock)
    await memory.learner.flush(ada.session.id, "test")
    await memory.privacy.learn_from(ada, False)
    for n, place in enumerate((private("ada"), private("ada", agent="other"), group("club", "ada"))):
        turn = await say(memory, place, "I like tea.", ref=f"2{n}", clock=clock)
        assert (await memory.turns.understood(turn)).proposals == ()
        await memory.learner.flush(turn.context.session.id, "test")
    bob = await teach(memory, group("club", "bob"), "I like rum.", ref="3", clock=clock)
    assert await facts(memory, ada) == ["Porto"]
    assert await facts(memory, bob.context) == ["rum"]
    assert not await memory.browse.search(ada, "tea", limit=5)
    await memory.privacy.learn_from(ada, True)
    turn = await teach(memory, private("ada"), "I like milk.", ref="4", clock=clock)
    assert await facts(memory, ada) == ["Porto", "milk"]


async def test_what_waits_unread_is_not_read_any_more(memory: Service, clock: Clock) -> None:
    """A message from a minute before is dropped, also where it was put down to be read; it can still be found."""
    ada = await say(memory, private("ada"), "I like tea.", ref="1", clock=clock)
    await say(memory, group("club", "ada"), "I like chess.", ref="2", clock=clock)
    bob = await say(memory, group("club", "bob"), "I like go.", ref="3", clock=clock)

    def put_down(edits: Edits) -> tuple[()]:
        edits.start_window()
        return ()

    inbox_id = await received(memory, "console:club:-")
    await memory.requests.answer(bob.context, inbox_id, put_down)
    await memory.privacy.learn_from(ada.context, False)
    for context in (ada.context, bob.context):
        await memory.learner.flush(context.session.id, "test")
    assert await facts(memory, ada.context) == []
    assert await facts(memory, bob.context) == ["go"]
    assert await memory.browse.search(ada.context, "tea", limit=5)


async def test_what_a_model_is_reading_when_somebody_goes_out_is_not_kept(tmp_path: Path, clock: Clock) -> None:
    """It has seen the words; what it makes of them comes too late."""
    opted: list[Context] = []

    async def complete(_ask: ModelRequest) -> ModelAnswer:
        await memory.privacy.learn_from(opted[0], False)
        found = [{"about": "self", "category": "place", "key": "home", "value": "Porto", "messages": [1]}]
        return answered({"facts": found})

    async with opened(tmp_path / "remora.db", clock, model=BackgroundModel(complete=complete)) as memory:
        turn = await say(memory, private("ada"), "Ten years of Porto, and no end in sight.", ref="1", clock=clock)
        opted.append(turn.context)
        await memory.learner.flush(turn.context.session.id, "test")
        assert await facts(memory, turn.context) == []


async def test_what_is_edited_after_going_out_is_not_learned_anew(memory: Service, clock: Clock) -> None:
    """The correction takes effect on what was known, and teaches nothing."""
    where, who = private("ada")
    turn = await teach(memory, (where, who), "I live in Porto.", ref="1", clock=clock)
    await memory.privacy.learn_from(turn.context, False)
    inbox_id = await received(memory, where.session_key)
    await memory.requests.amend(
        where, who, inbox_id, platform_ref="1", text="I live in Lyon.", compose=lambda text, _: text
    )
    await memory.learner.flush(turn.context.session.id, "test")
    assert await facts(memory, turn.context) == []


async def test_what_they_ask_for_themselves_is_kept_and_what_a_model_wants_kept_is_not(
    memory: Service, clock: Clock
) -> None:
    """/remember is their own word; a tool's call is not."""
    ada = await memory.identities.context(*private("ada"))
    await memory.privacy.learn_from(ada, False)
    assert await ask_to_keep(memory, private("ada"), "I like tea") == 1
    turn = await say(memory, private("ada"), "I like rum.", ref="1", clock=clock)
    result = await memory.turns.act(turn, 0, 0, "remember_fact", lambda edits: str(edits.remember("I like rum")))
    assert result == "[]"
    assert await facts(memory, ada) == ["tea"]
    assert not await kept(memory, ada, draft(ada, origin="imported", value="milk"))
    assert await kept(memory, ada, draft(ada, origin="derived", value="hot drinks"))


# Learning of somebody from others -------------------------------------------------------------------------------


@pytest.mark.parametrize("origin", ["extracted", "told", "imported", "derived", "admin"])
async def test_nobody_else_tells_of_one_who_wants_none_of_it(memory: Service, clock: Clock, origin: str) -> None:
    """By identity, whoever brings it: a model, a person, an import or a job. Of themselves they may tell."""
    ada = await memory.identities.context(*group("club", "ada"))
    bob = await memory.identities.context(*group("club", "bob"))
    told = {"origin": origin, "subject_id": ada.speaker.id}
    assert await kept(memory, bob, draft(bob, value="rum", **told))
    await memory.privacy.learn_about(ada, False)
    assert not await kept(memory, bob, draft(bob, value="gin", **told))
    assert not await kept(memory, bob, draft(bob, author_id=None, value="gin", **told))
    assert await kept(memory, ada, draft(ada, value="tea", **told))
    assert await kept(memory, bob, draft(bob, value="gin", origin=origin, subject_id=bob.speaker.id))
    own = await memory.identities.context(*private("ada"))
    assert await kept(memory, own, draft(own, author_id=None, value="milk", **told))
    await memory.privacy.learn_about(ada, True)
    assert await kept(memory, bob, draft(bob, value="gin", **told))


async def corrected(memory: Service, place: tuple[Where, Who], short_id: str, value: str) -> bool:
    done: list[bool] = []

    def act(edits: Edits) -> tuple[()]:
        try:
            edits.correct(short_id, value)
        except NotWished:
            done.append(False)
        else:
            done.append(True)
        return ()

    inbox_id = await received(memory, place[0].session_key)
    await memory.requests.answer(await memory.identities.context(*place), inbox_id, act)
    return done[-1]


async def test_nobody_else_corrects_what_is_known_of_one_who_wants_none_of_it(memory: Service) -> None:
    """A correction tells something new; of themselves they may."""
    ada, bob = (
        await memory.identities.context(*group("club", "ada")),
        await memory.identities.context(*group("club", "bob")),
    )
    assert await kept(memory, bob, draft(bob, subject_id=ada.speaker.id, value="old things"))
    (row,) = await memory.browse.memories(bob, limit=5)
    await memory.privacy.learn_about(ada, False)
    assert not await corrected(memory, group("club", "bob"), row.short_id, "being deep in debt")
    assert [one.value for one in await memory.browse.memories(bob, limit=5)] == ["old things"]
    assert await corrected(memory, group("club", "ada"), row.short_id, "new things")


async def test_a_tool_corrects_nothing_for_one_who_is_out(memory: Service, clock: Clock) -> None:
    """A correction that they type themselves holds; what a model makes of their words is learning."""
    ada = await memory.identities.context(*private("ada"))
    assert await ask_to_keep(memory, private("ada"), "I like tea") == 1
    (row,) = [one for one in await memory.browse.memories(ada, limit=5) if one.kind == "fact"]
    await memory.privacy.learn_from(ada, False)
    turn = await say(memory, private("ada"), "I like rum now.", ref="1", clock=clock)
    with pytest.raises(NotWished):
        await memory.turns.act(turn, 0, 0, "correct_fact", lambda edits: str(edits.correct(row.short_id, "rum")))
    assert await facts(memory, ada) == ["tea"]
    assert await corrected(memory, private("ada"), row.short_id, "green tea")


async def test_a_tool_brings_nothing_back_that_was_forgotten_while_its_turn_ran(memory: Service, clock: Clock) -> None:
    """The model was given it before; said again in a later message it is kept."""
    assert await ask_to_keep(memory, private("ada"), "I like tea") == 1
    ada = await memory.identities.context(*private("ada"))
    (tea,) = [one for one in await memory.browse.memories(ada, limit=5) if one.kind == "fact"]
    turn = await say(memory, private("ada"), "What do you know of me?", ref="1", clock=clock)
    clock.move(minutes=1)
    await carried_out(memory, ada, Selection(what="memories", memory_ids=(tea.id,)))
    assert await ask_to_keep(memory, private("ada"), "I like rum") == 1
    (rum,) = [one for one in await memory.browse.memories(ada, limit=5) if one.kind == "fact"]
    with pytest.raises(NotWished):
        await memory.turns.act(turn, 0, 0, "correct_fact", lambda edits: str(edits.correct(rum.short_id, "tea")))
    kept = await memory.turns.act(turn, 0, 1, "remember_fact", lambda edits: str(edits.remember("I like tea")))
    assert kept == "[]" and await facts(memory, ada) == ["rum"]
    clock.move(minutes=1)
    later = await say(memory, private("ada"), "I like tea after all.", ref="2", clock=clock)
    await memory.turns.act(later, 0, 0, "remember_fact", lambda edits: str(edits.remember("I like tea")))
    assert sorted(await facts(memory, ada)) == ["rum", "tea"]


async def test_in_their_group_they_are_known_by_the_name_the_platform_has(memory: Service, clock: Clock) -> None:
    """A model says "Ada", not a number. Where they never spoke it may be another Ada, and a part of a word is nobody."""
    where, who = group("club", "ada")
    ada = await say(memory, (where, replace(who, name="Ada Lovelace")), "Hello!", ref="1", clock=clock)
    bob = await memory.identities.context(*group("club", "bob"))
    elsewhere = await memory.identities.context(*group("room", "bob"))
    alone = await memory.identities.context(*private("bob"))
    await memory.privacy.learn_about(ada.context, False)
    clock.move(days=7)
    person = (Named(type="person", name="Ada"),)
    for name, names in (("Ada", ()), ("ada", person), ("ADA  LOVELACE", ())):
        assert not await kept(memory, bob, draft(bob, subject=name, value=name), names=names, now=clock())
    for name in ("Lovelace", "Adam", "", "the dog"):
        assert await kept(memory, bob, draft(bob, subject=name, value=f"of {name}"), now=clock())
    for context in (elsewhere, alone):
        assert await kept(memory, context, draft(context, subject="Ada"), now=clock())


async def renamed(memory: Service, clock: Clock, person: str, name: str) -> Context:
    where, who = group("club", person)
    return (await say(memory, (where, replace(who, name=name)), "Hello!", ref=counting(), clock=clock)).context


async def test_nobody_stops_what_is_told_by_taking_a_name_for_it(memory: Service, clock: Clock) -> None:
    """Neither of a thing nor of the one whose name it is; their own wish goes on holding under it."""
    ada = await renamed(memory, clock, "ada", "Ada")
    bob = await renamed(memory, clock, "bob", "Bob")
    await renamed(memory, clock, "eve", "Eve")
    clock.move(days=30)
    for name in ("Coffee lover", "Ada", "ADA"):
        eve = await renamed(memory, clock, "eve", name)
        await memory.privacy.learn_about(eve, False)
        for subject in ("Coffee", "coffee", "Ada"):
            told = draft(bob, subject=subject, value=f"{subject} for {name}")
            assert await kept(memory, bob, told, now=clock())
    await memory.privacy.learn_about(ada, False)
    assert not await kept(memory, bob, draft(bob, subject="Ada", value="gin"), now=clock())
    # By now both have borne it for a week: whom it means, nobody can say.
    clock.move(days=7)
    assert await kept(memory, bob, draft(bob, subject="Ada", value="gin"), now=clock())
    assert not await kept(memory, bob, draft(bob, subject_id=ada.speaker.id, value="rum"), now=clock())


async def test_a_name_that_was_given_up_binds_only_after_another_week(memory: Service, clock: Clock) -> None:
    """How it is written changes nothing; to have had it some time ago is not to have it."""
    bob = await renamed(memory, clock, "bob", "Bob")

    async def is_hers(name: str) -> bool:
        told = draft(bob, subject=name, value=counting())
        return not await kept(memory, bob, told, now=clock())

    for name, days, hers in (("Ada L", 7, True), ("ADA  L", 0, True), ("Eve", 1, False), ("Ada L", 6, False)):
        await memory.privacy.learn_about(await renamed(memory, clock, "ada", name), False)
        clock.move(days=days)
        assert await is_hers("Ada") == hers
    clock.move(days=1)
    assert await is_hers("Ada")


@pytest.mark.sqlite("migrates an older file")
async def test_since_when_a_name_is_borne_is_told_from_what_was_said_under_it(tmp_path: Path, clock: Clock) -> None:
    """Of a store that did not note it: the earlier name is no older for having been hers once before."""
    path, wanted = tmp_path / "remora.db", {}
    async with opened(path, clock) as memory:
        for person, names in (("ada", ("Ada", "Eve", "Ada", "Ada")), ("bob", ("Bob", "Bob"))):
            for n, name in enumerate(names):
                clock.move(days=1)
                context = await renamed(memory, clock, person, name)
                if n == len(names) - 2:
                    wanted[context.speaker.id] = clock.at
        wanted[(await memory.identities.context(*private("cyd"))).speaker.id] = clock.at
    with closing(sqlite3.connect(path)) as connection, connection:
        for table, column in (
            ("identities", "named_at"), ("pairings", "tries"), ("link_codes", "tries"), ("forgotten", "key_id"),
            ("sessions", "chosen_agent_id"), ("sessions", "chosen_model"), ("sessions", "summary_after"),
            ("sessions", "task_found"), ("sessions", "muted_at"), ("agents", "entities"), ("memory_sources", "unsure"),
        ):  # fmt: skip
            connection.execute(f"alter table {table} drop column {column}")
        for index in (
            "outbox_reminder",
            "usage_identity",
            "usage_session",
            "questions_purpose",
            "extractions_parked",
            "messages_replies",
        ):
            connection.execute(f"drop index {index}")
        connection.execute("drop index memories_uncompared")
        connection.execute("alter table memories drop column compared_at")
        for column in ("follow_ups", "followed_up_on"):
            connection.execute(f"alter table people drop column {column}")
        connection.execute("alter table usage drop column identity_id")
        connection.execute("alter table outbox drop column reminder_id")
        connection.execute("alter table turns drop column portions")
        connection.execute("alter table recalls drop column tokens")
        connection.execute("drop index embedded_refused")
        connection.execute("alter table embedded drop column refused")
        gone = "forgotten_named vector_signs reminders comparisons api_keys web_codes web_sessions lanes duties replicas judgements"
        for table in (*gone.split(), "commits", "refusals"):
            connection.execute(f"drop table {table}")
        connection.execute("delete from migrations where version >= 8")
    async with opened(path, clock) as memory:
        for identity_id, named_at in await rows(memory, "select id, named_at from identities"):
            assert abs(wanted[int(str(identity_id))] - int(str(named_at))) < 100


async def test_a_word_that_is_somebodys_name_is_still_a_word(memory: Service, clock: Clock) -> None:
    """As whoever read the talk takes it, and where they don't say, as it is written."""
    rose = await renamed(memory, clock, "rose", "Rose")
    bob = await renamed(memory, clock, "bob", "Bob")
    await memory.privacy.learn_about(rose, False)
    clock.move(days=8)
    cases: tuple[tuple[str, tuple[Type, ...], bool], ...] = (
        ("rose", (), True), ("Rose", (), False), ("Rose", ("other",), True), ("rose", ("person",), False),
        ("Rose", ("other", "person"), False),
    )  # fmt: skip
    for subject, types, may in cases:
        names = tuple(Named(type=one, name="Rose") for one in types)
        told = draft(bob, subject=subject, value=counting())
        assert await kept(memory, bob, told, names=names, now=clock()) == may, (subject, types)


# Delete me ------------------------------------------------------------------------------------------------------


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """Everybody has told something of every kind everywhere."""
    made = await World.open(tmp_path / "remora.db", (*PEOPLE, "ada's phone"))
    for person in (*PEOPLE, "ada's phone"):
        for place in ("private", "room", "club"):
            spot = Spot(person=person, place=place, agent=AGENTS[0])
            await made.tell(spot, ("sel", "fri", "sty", "eve") if place == "private" else ("sel", "fri", "sty"))
            await made.have_kept(spot)
    yield made
    await made.close()


async def of_others(world: World, ids: tuple[int, ...]) -> dict[str, list[tuple[object, ...]]]:
    """All rows that people with other identities said, own or are the subject of, byte for byte."""
    marks = ", ".join(map(str, ids))
    owners = f"(select id from owners where kind = 'identity' and identity_id not in ({marks}))"
    wanted = {
        "identities": f"id not in ({marks})",
        "messages": f"(author_id not in ({marks}) or (author_id is null and owner_id in {owners}))",
        "memories": f"(author_id not in ({marks}) or owner_id in {owners})",
        "entities": f"owner_id in {owners}",
        "attachments": f"message_id in (select id from messages where author_id not in ({marks}))",
    }
    return {
        table: await rows(world.service, f"select * from {table} where {where} order by id")
        for table, where in wanted.items()
    }


async def test_deleting_me_leaves_nothing_of_mine_and_others_untouched(world: World) -> None:
    """Promise 3 for a whole person, with their linked accounts: no byte of theirs in the files, all of others' there."""
    await world.link("ada", "ada's phone")
    context = await world.context(Spot(person="ada", place="private", agent=AGENTS[0]))
    phone = await world.context(Spot(person="ada's phone", place="private", agent=AGENTS[0]))
    mine = (context.speaker.id, phone.speaker.id)
    await world.service.privacy.learn_about(context, False)
    before = await of_others(world, mine)
    inbox_id = await world.inbox(Spot(person="ada", place="private", agent=AGENTS[0]))
    receipt = await world.service.forgetting.forget(context, inbox_id, None, Selection(what="me"), "words")
    assert receipt is not None and receipt.scrubbed
    assert await of_others(world, mine) == before
    files = files_of(world.service.database.path)
    assert standing(files, [canary.word for canary in world.canaries if canary.spot.person != "bob"]) == []
    told = [one.word for one in world.canaries if _is_told_by(one, "bob")]
    assert standing(files, told) == told
    again = (await world.service.identities.context(*private("ada"))).speaker
    assert again.person_id != (await world.service.identities.context(*private("ada's phone"))).speaker.person_id
    assert (again.learning, again.about, again.language) == (True, False, None)


def _is_told_by(canary: Canary, person: str) -> bool:
    return canary.spot.person == person


# Leaving --------------------------------------------------------------------------------------------------------


async def test_who_only_gave_commands_where_chats_have_other_numbers_is_forgotten_when_they_leave(
    memory: Service, clock: Clock
) -> None:
    """A direct chat on Discord has a number of its own, and /remember leaves no message in history."""
    where, who = private("77")
    place = (where, replace(who, user_id="ada", name="Ada"))
    assert await ask_to_keep(memory, place, "I like tea") == 1
    await leave_chat(memory, "77")
    clock.move(days=31)
    assert (await memory.housekeeping.erase_left()).memories
    assert await rows(memory, "select name from identities") == [("",)]
    assert (await memory.housekeeping.erase_left()).chats == 0


async def test_what_was_learned_stays_as_long_as_a_linked_account_is_there(memory: Service, clock: Clock) -> None:
    """Whoever moves to another platform links the accounts so that it stays; the words said in the chat go."""
    ada, phone = await memory.identities.context(*private("ada")), await memory.identities.context(*private("phone"))
    await say(memory, private("ada"), "I like tea.", ref="1", clock=clock)
    await memory.learner.flush(ada.session.id, "test")
    await link(memory, phone, ada)
    await leave_chat(memory, "ada")
    clock.move(days=31)
    erased = await memory.housekeeping.erase_left()
    assert erased.messages and not erased.memories
    assert await facts(memory, await memory.identities.context(*private("phone"))) == ["tea"]
    await unlink(memory, await memory.identities.context(*private("phone")))
    assert (await memory.housekeeping.erase_left()).memories
    assert await rows(memory, "select 1 from memories") == []


async def test_when_the_last_of_linked_accounts_has_left_all_goes(memory: Service, clock: Clock) -> None:
    ada, phone = await memory.identities.context(*private("ada")), await memory.identities.context(*private("phone"))
    for name in ("ada", "phone"):
        await teach(memory, private(name), f"I like {name} tea.", ref="1", clock=clock)
    await link(memory, phone, ada)
    await leave_chat(memory, "ada")
    await leave_chat(memory, "phone")
    clock.move(days=31)
    await memory.housekeeping.erase_left()
    assert await rows(memory, "select 1 from memories") == []


# Answers --------------------------------------------------------------------------------------------------------


class Talk(Bench):
    """People on a platform whose private chats have their own ids."""

    def shown(self, chat: str) -> list[str]:
        return [one.text for one in self.screen.sent if one.place.chat == chat]

    async def tell(self, text: str, *, person: str = "ada", chat: str | None = None) -> str:
        await self.say(text, person=person, chat=chat)
        await self.router.settled(Place(channel="console", chat=person))
        return self.shown(chat or person)[-1]


@pytest.fixture
def talk(tmp_path: Path, clock: Clock) -> Talk:
    phone = Phone()
    phone.capabilities = replace(phone.capabilities, direct=True)
    return Talk(tmp_path, ScriptedModel(), phone, clock)


async def test_privacy_says_what_is_kept_and_who_looked(talk: Talk, clock: Clock) -> None:
    """In private all of one's own; an admin's look is named with its day."""
    async with talk.running():
        await talk.tell("hello")
        await talk.tell("hello there", chat="club")
        await talk.tell("/remember I like tea")
        memory = talk.memory
        ada = await memory.identities.context(*private("ada"))
        bob = await memory.identities.context(*private("bob"))
        club = await memory.identities.context(*group("club", "ada"))

        def look(tx: Transaction) -> None:
            for owner_id, found in ((ada.scope.writes_to, 12), (club.scope.writes_to, 3)):
                privacy.note_look(
                    tx, owner_id, admin_id=bob.speaker.id, agent_id=ada.session.agent_id, action="list", found=found,
                    now=clock(),
                )  # fmt: skip

        await memory.database.write(look)
        told = await talk.tell("/privacy")
        assert "1 in private, 1 in groups; groups: 1; files: 0; since: 21 Nov 2026" in told
        assert "facts 1" in told and "21 Nov 2026, bob: memories listed: 12" in told
        assert "Linked accounts: none." in told and "remora.db" not in told
        in_group = await talk.tell("/privacy", chat="club")
        assert "21 Nov 2026, bob: memories listed: 3" in in_group
        assert "12" not in in_group and "Linked" not in in_group
        assert "Usage: /privacy" in await talk.tell("/privacy please")


@pytest.mark.parametrize("language", ["en", "de", "zh"])
async def test_privacy_says_how_long_everything_is_kept(talk: Talk, language: Language) -> None:
    """By default, and where the operator and the agent's file say otherwise."""
    texts = Texts(language)
    async with talk.running():
        await talk.tell(f"/profile language {language}")
        told = (await talk.tell("/privacy")).splitlines()
        assert texts("privacy.until") in told and held_by_backups(language, days=14) in told
        assert texts("privacy.exports") in told and texts("privacy.left", days=30) in told
    talk.keeping = Keeping(transcript_days=90, left_chat_days=3, export_days=7)
    talk.spec = {"session": SessionSpec(idle_hours=12, at="04:30")}
    async with talk.running():
        told = (await talk.tell("/privacy")).splitlines()
    assert texts("privacy.until_days", days=90) in told and texts("privacy.until") not in told
    assert texts("privacy.exports_days", days=7) in told and texts("privacy.left", days=3) in told
    assert texts("privacy.anew_idle", hours=12) in told and texts("privacy.anew_at", time="04:30") in told


async def test_wishes_said_in_a_group_are_answered_in_private(talk: Talk) -> None:
    """That somebody wants none of it is nobody else's business."""
    async with talk.running():
        await talk.tell("hello")
        for command, said in (
            ("out", "I learn nothing from what you say"),
            ("about off", "I keep nothing that others say about you"),
            ("about on", "I may again remember"),
            ("in", "I learn from what you say again"),
        ):
            assert await talk.tell(f"/privacy {command}", chat="club") == "I have answered you in our private chat."
            assert said in talk.shown("ada")[-1]
            speaker = (await talk.memory.identities.context(*private("ada"))).speaker
            assert speaker.learning == (command not in ("out", "about off", "about on"))
            assert speaker.about == (command != "about off")


async def test_a_tool_keeps_nothing_for_one_who_is_out(talk: Talk) -> None:
    talk.model.answers = [calls(("remember_fact", json.dumps({"text": "likes tea"}))), "Done."]
    async with talk.running():
        await talk.tell("/privacy out")
        await talk.tell("I like tea")
        assert await talk.rows("select 1 from memories") == []


async def test_all_of_mine_goes_on_the_word_yes_alone(talk: Talk) -> None:
    """It can't be undone: an "ok" in passing is neither a yes nor a no, and an opt-out outlives it."""
    async with talk.running():
        await talk.tell("I like Quaxolia")
        await talk.tell("/remember I like Quaxolia")
        await talk.tell("/privacy out")
        asked = await talk.tell("/privacy delete", chat="club")
        assert "I have answered you" in asked and "/privacy delete in our private chat" in talk.shown("ada")[-1]
        assert "Erase everything?" in await talk.tell("/privacy delete")
        assert await talk.tell("no") == "I erased nothing."
        asked = await talk.tell("/privacy delete")
        for word in ("ok", "Sure!", "y"):
            assert await talk.tell(word) == "For this I need the very word: yes / no"
        for word in ("好的", "是的"):
            assert await talk.tell(word) == "这件事请用原词回答：是 / 否"
        assert talk.screen.sent[-1].buttons
        assert await talk.rows("select 1 from memories where value like '%Quaxolia%'")
        assert "1 messages" in asked and "1 memories" in asked
        told = await talk.tell("yes")
        assert "Erased: 1 of your messages" in told and "You stay opted out of learning." in told
        assert await talk.rows("select 1 from memories") == []
        assert await talk.rows("select 1 from messages where text <> ''") == []
        assert traces(talk.folder / "remora.db", ["Quaxolia"]) == {}
        assert not (await talk.memory.identities.context(*private("ada"))).speaker.learning


async def test_who_was_cut_off_between_erasing_and_receipt_is_told_and_begins_anew(talk: Talk, clock: Clock) -> None:
    """Links and settings go in the transaction that erases, and the receipt is the one of /privacy."""
    async with talk.running():
        await talk.tell("I like Quaxolia")
        await talk.tell("/profile timezone Europe/Lisbon")
        await talk.tell("/profile language zh")
        memory = talk.memory
        ada, phone = (
            await memory.identities.context(*private("ada")),
            await memory.identities.context(*private("phone")),
        )
        await link(memory, ada, phone)
        await talk.tell("/privacy delete")
        where, who = private("ada")
        question = await memory.questions.at(where, who)
        said = talk.inbound("yes")
        inbox_id = await received(memory, said.place.session_key, said.to_json())
        assert question is not None
        ada = await memory.identities.context(where, who)
        assert await memory.forgetting.forget(ada, inbox_id, question, Selection(what="me"), "words")
    async with talk.running() as router:
        await router.settled(said.place)
        assert (
            talk.shown("ada")[-1].startswith("Erased: 1 of your messages")
            and "start from scratch" in talk.shown("ada")[-1]
        )
        memory = talk.memory
        ada, phone = (
            await memory.identities.context(*private("ada")),
            await memory.identities.context(*private("phone")),
        )
        assert ada.speaker.person_id != phone.speaker.person_id
        assert (ada.speaker.language, ada.speaker.timezone) == (None, None)


async def test_every_look_of_an_admin_can_be_seen(talk: Talk, clock: Clock) -> None:
    """However many there were since, and each with its place in the whole."""
    async with talk.running():
        await talk.tell("hello")
        await talk.tell("hello there", chat="club")
        memory = talk.memory
        ada, bob = await memory.identities.context(*private("ada")), await memory.identities.context(*private("bob"))

        def look(tx: Transaction) -> None:
            for found in range(100, 123):
                privacy.note_look(
                    tx, ada.scope.writes_to, admin_id=bob.speaker.id, agent_id=ada.session.agent_id, action="list",
                    found=found, now=clock() + found,
                )  # fmt: skip

        await memory.database.write(look)
        told = await talk.tell("/privacy")
        assert "Admin access (23)" in told and "and 13 earlier: /privacy looks 2" in told
        pages = [await talk.tell(f"/privacy looks {page}".strip()) for page in ("", 2, 3)]
        assert re.findall(r": (\d+)$", "\n".join(pages), re.MULTILINE) == [str(n) for n in range(122, 99, -1)]
        assert "earlier" not in pages[2]
        assert [button.label for button in talk.screen.sent[-1].buttons] == ["‹", "3/3"]
        assert await talk.tell("/privacy looks 99999") == "There is no page 99999. There are 3 pages."
        assert await talk.tell("/privacy looks", chat="club") == "Admin access: none."
        for typed in ("looks 0", "looks x", "looks 1 2"):
            assert "Usage: /privacy" in await talk.tell(f"/privacy {typed}")
