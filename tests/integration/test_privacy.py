"""What people may know of what is kept, what they want not to be learned, and that all of theirs goes when they say so."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from channels.base import Place
from memory.errors import NotWished
from memory.learn import keep
from memory.learn.ask import Ask, Mind, Told
from memory.service import Context, Desk, Draft, Selection, Service, Spent, Where, Who
from memory.store import looks
from memory.store.database import Transaction
from tests.canaries import AGENTS, Canary, Spot, World
from tests.conftest import group, private
from tests.fakes import NOON, Clock, ScriptedModel, calls
from tests.integration.test_delivery import Desk as Bench
from tests.integration.test_delivery import Phone
from tests.integration.test_leaving import counting, leave_chat, opened, rows, say

PEOPLE = ("ada", "bob")


async def facts(memory: Service, context: Context) -> list[str]:
    return sorted(one.value for one in await memory.memories(context, limit=100))


async def ask_to_keep(memory: Service, place: tuple[Where, Who], text: str) -> int:
    """What /remember does; how much was kept."""
    where, _ = place
    kept: list[int] = []

    def act(desk: Desk) -> tuple[()]:
        kept.append(len(desk.remember(text)))
        return ()

    inbox_id = await memory.mail.receive(
        platform="console", bot_id="local", update_key=counting(), session_key=where.session_key, payload="{}"
    )
    assert inbox_id is not None
    await memory.answer(await memory.context(*place), inbox_id, act)
    return kept[0]


def draft(context: Context, **fields: object) -> Draft:
    """Something said of somebody in a group by who speaks there, unless `fields` say otherwise."""
    plain = Draft(
        kind="fact", owner_id=context.scope.writes_to, author_id=context.speaker.id, category="preference",
        key="likes", value="tea", importance=5, confidence=1.0, origin="extracted", learned_at=NOON,
        local_date="2026-11-21",
    )  # fmt: skip
    return replace(plain, **fields)  # type: ignore[arg-type]


async def kept(memory: Service, context: Context, one: Draft, *, source_ids: tuple[int, ...] = ()) -> bool:
    def act(tx: Transaction) -> bool:
        made = keep.keep(tx, context.scope, one, source_ids=source_ids, now=NOON, new_id=lambda: f"m_{counting()}")
        return made is not None

    return await memory._database.write(act)


# Learning from what somebody says -------------------------------------------------------------------------------


async def test_who_is_out_is_not_learned_from_anywhere_and_nobody_else_is_touched(
    memory: Service, clock: Clock
) -> None:
    """In private and in groups, by whichever agent; what was known stays, and in between nothing is caught up on."""
    ada = await memory.context(*private("ada"))
    await say(memory, private("ada"), "I live in Porto.", "1", clock)
    await memory.flush(ada, "test")
    await memory.privacy.learn_from(ada, False)
    for n, place in enumerate((private("ada"), private("ada", agent="other"), group("club", "ada"))):
        turn = await say(memory, place, "I like tea.", f"2{n}", clock)
        assert memory.turns.propose(turn) == []
        await memory.flush(turn.context, "test")
    bob = await say(memory, group("club", "bob"), "I like rum.", "3", clock)
    await memory.flush(bob.context, "test")
    assert await facts(memory, ada) == ["Porto"]
    assert await facts(memory, bob.context) == ["rum"]
    assert not await memory.search(ada, "tea", limit=5)
    await memory.privacy.learn_from(ada, True)
    turn = await say(memory, private("ada"), "I like milk.", "4", clock)
    await memory.flush(turn.context, "test")
    assert await facts(memory, ada) == ["Porto", "milk"]


async def test_what_waits_unread_is_not_read_any_more(memory: Service, clock: Clock) -> None:
    """What was said a minute before is dropped, also where it was put down to be read; it can still be found."""
    ada = await say(memory, private("ada"), "I like tea.", "1", clock)
    await say(memory, group("club", "ada"), "I like chess.", "2", clock)
    bob = await say(memory, group("club", "bob"), "I like go.", "3", clock)

    def put_down(desk: Desk) -> tuple[()]:
        desk.start_window()
        return ()

    inbox_id = await memory.mail.receive(
        platform="console", bot_id="local", update_key="new", session_key="console:club:-", payload="{}"
    )
    assert inbox_id is not None
    await memory.answer(bob.context, inbox_id, put_down)
    await memory.privacy.learn_from(ada.context, False)
    for context in (ada.context, bob.context):
        await memory.flush(context, "test")
    assert await facts(memory, ada.context) == []
    assert await facts(memory, bob.context) == ["go"]
    assert await memory.search(ada.context, "tea", limit=5)


async def test_what_a_model_is_reading_when_somebody_goes_out_is_not_kept(tmp_path: Path, clock: Clock) -> None:
    """It has seen the words; what it makes of them comes too late."""
    opted: list[Context] = []

    async def complete(_ask: Ask) -> Told:
        await memory.privacy.learn_from(opted[0], False)
        found = [{"about": "self", "category": "place", "key": "home", "value": "Porto", "messages": [1]}]
        spent = Spent(model="plan", input_tokens=1, output_tokens=1, cached_tokens=0, estimated=False)
        return Told(text=json.dumps({"facts": found}), spent=spent)

    async with opened(tmp_path / "remora.db", clock, mind=Mind(complete=complete)) as memory:
        turn = await say(memory, private("ada"), "I live in Porto.", "1", clock)
        opted.append(turn.context)
        await memory.flush(turn.context, "test")
        assert await facts(memory, turn.context) == []


async def test_what_is_edited_after_going_out_is_not_learned_anew(memory: Service, clock: Clock) -> None:
    """The correction takes effect on what was known, and teaches nothing."""
    where, who = private("ada")
    turn = await say(memory, (where, who), "I live in Porto.", "1", clock)
    await memory.flush(turn.context, "test")
    await memory.privacy.learn_from(turn.context, False)
    inbox_id = await memory.mail.receive(
        platform="console", bot_id="local", update_key="edit", session_key=where.session_key, payload="{}"
    )
    assert inbox_id is not None
    await memory.amend(where, who, inbox_id, platform_ref="1", text="I live in Lyon.", compose=lambda text, _: text)
    await memory.flush(turn.context, "test")
    assert await facts(memory, turn.context) == []


async def test_what_they_ask_for_themselves_is_kept_and_what_a_model_wants_kept_is_not(
    memory: Service, clock: Clock
) -> None:
    """/remember is their own word; a tool's call is not."""
    ada = await memory.context(*private("ada"))
    await memory.privacy.learn_from(ada, False)
    assert await ask_to_keep(memory, private("ada"), "I like tea") == 1
    turn = await say(memory, private("ada"), "I like rum.", "1", clock)
    result = await memory.turns.act(turn, 0, 0, "remember_fact", lambda desk: str(desk.remember("I like rum")))
    assert result == "[]"
    assert await facts(memory, ada) == ["tea"]
    assert not await kept(memory, ada, draft(ada, origin="imported", value="milk"))
    assert await kept(memory, ada, draft(ada, origin="derived", value="hot drinks"))


# Learning of somebody from others -------------------------------------------------------------------------------


@pytest.mark.parametrize("origin", ["extracted", "told", "imported", "derived", "admin"])
async def test_nobody_else_tells_of_one_who_wants_none_of_it(memory: Service, clock: Clock, origin: str) -> None:
    """By identity, whoever brings it: a model, a person, an import or a job. Of themselves they may tell."""
    ada = await memory.context(*group("club", "ada"))
    bob = await memory.context(*group("club", "bob"))
    told = {"origin": origin, "subject_id": ada.speaker.id}
    assert await kept(memory, bob, draft(bob, value="rum", **told))
    await memory.privacy.learn_about(ada, False)
    assert not await kept(memory, bob, draft(bob, value="gin", **told))
    assert not await kept(memory, bob, draft(bob, author_id=None, value="gin", **told))
    assert await kept(memory, ada, draft(ada, value="tea", **told))
    assert await kept(memory, bob, draft(bob, value="gin", origin=origin, subject_id=bob.speaker.id))
    own = await memory.context(*private("ada"))
    assert await kept(memory, own, draft(own, author_id=None, value="milk", **told))
    await memory.privacy.learn_about(ada, True)
    assert await kept(memory, bob, draft(bob, value="gin", **told))


async def corrected(memory: Service, place: tuple[Where, Who], short_id: str, value: str) -> bool:
    """As typed behind /correct; whether it was done."""
    done: list[bool] = []

    def act(desk: Desk) -> tuple[()]:
        try:
            desk.correct(short_id, value)
        except NotWished:
            done.append(False)
        else:
            done.append(True)
        return ()

    inbox_id = await memory.mail.receive(
        platform="console", bot_id="local", update_key=counting(), session_key=place[0].session_key, payload="{}"
    )
    assert inbox_id is not None
    await memory.answer(await memory.context(*place), inbox_id, act)
    return done[0]


async def test_nobody_else_corrects_what_is_known_of_one_who_wants_none_of_it(memory: Service) -> None:
    """A correction tells something new; of themselves they may."""
    ada, bob = await memory.context(*group("club", "ada")), await memory.context(*group("club", "bob"))
    assert await kept(memory, bob, draft(bob, subject_id=ada.speaker.id, value="old things"))
    (row,) = await memory.memories(bob, limit=5)
    await memory.privacy.learn_about(ada, False)
    assert not await corrected(memory, group("club", "bob"), row.short_id, "being deep in debt")
    assert [one.value for one in await memory.memories(bob, limit=5)] == ["old things"]
    assert await corrected(memory, group("club", "ada"), row.short_id, "new things")


async def test_a_tool_corrects_nothing_for_one_who_is_out(memory: Service, clock: Clock) -> None:
    """What they type themselves holds; what a model makes of their words is learning."""
    ada = await memory.context(*private("ada"))
    assert await ask_to_keep(memory, private("ada"), "I like tea") == 1
    (row,) = [one for one in await memory.memories(ada, limit=5) if one.kind == "fact"]
    await memory.privacy.learn_from(ada, False)
    turn = await say(memory, private("ada"), "I like rum now.", "1", clock)
    with pytest.raises(NotWished):
        await memory.turns.act(turn, 0, 0, "correct_fact", lambda desk: str(desk.correct(row.short_id, "rum")))
    assert await facts(memory, ada) == ["tea"]
    assert await corrected(memory, private("ada"), row.short_id, "green tea")


async def test_a_tool_brings_nothing_back_that_was_forgotten_while_its_turn_ran(memory: Service, clock: Clock) -> None:
    """The model was given it before; said again in a later message it is kept."""
    assert await ask_to_keep(memory, private("ada"), "I like tea") == 1
    ada = await memory.context(*private("ada"))
    (tea,) = [one for one in await memory.memories(ada, limit=5) if one.kind == "fact"]
    turn = await say(memory, private("ada"), "What do you know of me?", "1", clock)
    clock.move(minutes=1)
    inbox_id = await memory.mail.receive(
        platform="console", bot_id="local", update_key=counting(), session_key=private("ada")[0].session_key,
        payload="{}",
    )  # fmt: skip
    assert inbox_id is not None
    await memory.forgetting.forget(ada, inbox_id, None, Selection(what="memories", memory_ids=(tea.id,)), "words")
    assert await ask_to_keep(memory, private("ada"), "I like rum") == 1
    (rum,) = [one for one in await memory.memories(ada, limit=5) if one.kind == "fact"]
    with pytest.raises(NotWished):
        await memory.turns.act(turn, 0, 0, "correct_fact", lambda desk: str(desk.correct(rum.short_id, "tea")))
    kept = await memory.turns.act(turn, 0, 1, "remember_fact", lambda desk: str(desk.remember("I like tea")))
    assert kept == "[]" and await facts(memory, ada) == ["rum"]
    clock.move(minutes=1)
    later = await say(memory, private("ada"), "I like tea after all.", "2", clock)
    await memory.turns.act(later, 0, 0, "remember_fact", lambda desk: str(desk.remember("I like tea")))
    assert sorted(await facts(memory, ada)) == ["rum", "tea"]


async def test_in_their_group_they_are_known_by_the_name_the_platform_has(memory: Service, clock: Clock) -> None:
    """A model says "Ada", not a number. Where they never spoke it may be another Ada, and a part of a word is nobody."""
    where, who = group("club", "ada")
    ada = await say(memory, (where, replace(who, name="Ada Lovelace")), "Hello!", "1", clock)
    bob = await memory.context(*group("club", "bob"))
    elsewhere = await memory.context(*group("room", "bob"))
    alone = await memory.context(*private("bob"))
    await memory.privacy.learn_about(ada.context, False)
    for name in ("Ada", "ada", "ADA  LOVELACE"):
        assert not await kept(memory, bob, draft(bob, subject=name, value=name))
    for name in ("Lovelace", "Adam", "", "the dog"):
        assert await kept(memory, bob, draft(bob, subject=name, value=f"of {name}"))
    for context in (elsewhere, alone):
        assert await kept(memory, context, draft(context, subject="Ada"))


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
    path = world.service._database.path
    files = b"".join(one.read_bytes() for one in path.parent.glob(f"{path.name}*"))
    theirs = [canary for canary in world.canaries if canary.spot.person != "bob"]
    assert [one for one in theirs if one.word.encode() in files] == []
    assert all(one.word.encode() in files for one in world.canaries if _is_told_by(one, "bob"))
    again = (await world.service.context(*private("ada"))).speaker
    assert again.person_id != (await world.service.context(*private("ada's phone"))).speaker.person_id
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
    assert (await memory.erase_left()).memories
    assert await rows(memory, "select name from identities") == [("",)]
    assert (await memory.erase_left()).chats == 0


async def test_what_was_learned_stays_as_long_as_a_linked_account_is_there(memory: Service, clock: Clock) -> None:
    """Whoever moves to another platform links the accounts so that it stays; the words said in the chat go."""
    ada, phone = await memory.context(*private("ada")), await memory.context(*private("phone"))
    await say(memory, private("ada"), "I like tea.", "1", clock)
    await memory.flush(ada, "test")
    await memory.link(phone, ada)
    await leave_chat(memory, "ada")
    clock.move(days=31)
    erased = await memory.erase_left()
    assert erased.messages and not erased.memories
    assert await facts(memory, await memory.context(*private("phone"))) == ["tea"]
    await memory.unlink(await memory.context(*private("phone")))
    assert (await memory.erase_left()).memories
    assert await rows(memory, "select 1 from memories") == []


async def test_when_the_last_of_linked_accounts_has_left_all_goes(memory: Service, clock: Clock) -> None:
    """Nobody is left who could read it."""
    ada, phone = await memory.context(*private("ada")), await memory.context(*private("phone"))
    for name in ("ada", "phone"):
        turn = await say(memory, private(name), f"I like {name} tea.", "1", clock)
        await memory.flush(turn.context, "test")
    await memory.link(phone, ada)
    await leave_chat(memory, "ada")
    await leave_chat(memory, "phone")
    clock.move(days=31)
    await memory.erase_left()
    assert await rows(memory, "select 1 from memories") == []


# What people are told -------------------------------------------------------------------------------------------


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
        memory = talk.memories["remora.db"]
        ada = await memory.context(*private("ada"))
        bob = await memory.context(*private("bob"))
        club = await memory.context(*group("club", "ada"))

        def look(tx: Transaction) -> None:
            for owner_id, found in ((ada.scope.writes_to, 12), (club.scope.writes_to, 3)):
                looks.note(
                    tx, owner_id, admin_id=bob.speaker.id, agent_id=ada.session.agent_id, action="list", found=found,
                    now=clock(),
                )  # fmt: skip

        await memory._database.write(look)
        told = await talk.tell("/privacy")
        assert "1 in private, 1 in groups; groups: 1; files: 0; since: 21 Nov 2026" in told
        assert "facts 1" in told and "21 Nov 2026, bob: memories listed: 12" in told
        assert "Linked accounts: none." in told and "remora.db" not in told
        in_group = await talk.tell("/privacy", chat="club")
        assert "21 Nov 2026, bob: memories listed: 3" in in_group
        assert "12" not in in_group and "Linked" not in in_group
        assert "Usage: /privacy" in await talk.tell("/privacy please")


async def test_wishes_said_in_a_group_are_answered_in_private(talk: Talk) -> None:
    """That somebody wants none of it is nobody else's business."""
    async with talk.running():
        await talk.tell("hello")
        for command, said in (
            ("out", "I learn nothing from what you say"),
            ("about off", "I keep nothing about you"),
            ("about on", "may be remembered again"),
            ("in", "I learn from what you say again"),
        ):
            assert await talk.tell(f"/privacy {command}", chat="club") == "I have answered you in our private chat."
            assert said in talk.shown("ada")[-1]
            speaker = (await talk.memories["remora.db"].context(*private("ada"))).speaker
            assert speaker.learning == (command not in ("out", "about off", "about on"))
            assert speaker.about == (command != "about off")


async def test_a_tool_keeps_nothing_for_one_who_is_out(talk: Talk) -> None:
    """However willing the model is."""
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
        assert "I have answered you" in asked and "in our private chat: /privacy delete there" in talk.shown("ada")[-1]
        assert "Erase all of it?" in await talk.tell("/privacy delete")
        assert await talk.tell("no") == "Nothing is erased."
        asked = await talk.tell("/privacy delete")
        for word in ("ok", "Sure!", "y", "好的", "是的"):
            assert await talk.tell(word) == "For this I need the very word: yes / no"
        assert talk.screen.sent[-1].buttons
        assert await talk.rows("select 1 from memories where value like '%Quaxolia%'")
        assert "1 messages" in asked and "1 memories" in asked
        told = await talk.tell("yes")
        assert "Erased: 1 messages of yours" in told and "What you wanted not to be learned stays so." in told
        assert await talk.rows("select 1 from memories") == []
        assert await talk.rows("select 1 from messages where text <> ''") == []
        assert b"Quaxolia" not in (talk.folder / "remora.db").read_bytes()
        assert not (await talk.memories["remora.db"].context(*private("ada"))).speaker.learning


async def test_who_was_cut_off_between_erasing_and_receipt_is_told_and_begins_anew(talk: Talk, clock: Clock) -> None:
    """Links and settings go in the transaction that erases, and the receipt is the one of /privacy."""
    async with talk.running():
        await talk.tell("I like Quaxolia")
        await talk.tell("/profile timezone Europe/Lisbon")
        await talk.tell("/profile language zh")
        memory = talk.memories["remora.db"]
        ada, phone = await memory.context(*private("ada")), await memory.context(*private("phone"))
        await memory.link(ada, phone)
        await talk.tell("/privacy delete")
        where, who = private("ada")
        question = await memory.question(where, who)
        said = talk.inbound("yes")
        inbox_id = await memory.mail.receive(
            platform="console", bot_id="local", update_key="cut", session_key=said.place.session_key,
            payload=said.to_json(),
        )  # fmt: skip
        assert inbox_id is not None and question is not None
        ada = await memory.context(where, who)
        assert await memory.forgetting.forget(ada, inbox_id, question, Selection(what="me"), "words")
    async with talk.running() as router:
        await router.settled(said.place)
        assert talk.shown("ada")[-1].startswith("Erased: 1 messages of yours") and "begin anew" in talk.shown("ada")[-1]
        memory = talk.memories["remora.db"]
        ada, phone = await memory.context(*private("ada")), await memory.context(*private("phone"))
        assert ada.speaker.person_id != phone.speaker.person_id
        assert (ada.speaker.language, ada.speaker.timezone) == (None, None)


async def test_every_look_of_an_admin_can_be_seen(talk: Talk, clock: Clock) -> None:
    """However many there were since, and each with its place in the whole."""
    async with talk.running():
        await talk.tell("hello")
        await talk.tell("hello there", chat="club")
        memory = talk.memories["remora.db"]
        ada, bob = await memory.context(*private("ada")), await memory.context(*private("bob"))

        def look(tx: Transaction) -> None:
            for found in range(100, 123):
                looks.note(
                    tx, ada.scope.writes_to, admin_id=bob.speaker.id, agent_id=ada.session.agent_id, action="list",
                    found=found, now=clock() + found,
                )  # fmt: skip

        await memory._database.write(look)
        told = await talk.tell("/privacy")
        assert "Looks of admins (23)" in told and "and 13 earlier: /privacy looks 2" in told
        pages = [await talk.tell(f"/privacy looks {page}".strip()) for page in ("", 2, 3)]
        assert re.findall(r": (\d+)$", "\n".join(pages), re.MULTILINE) == [str(n) for n in range(122, 99, -1)]
        assert "earlier" not in pages[2] and await talk.tell("/privacy looks 99999") == pages[2]
        assert [button.label for button in talk.screen.sent[-1].buttons] == ["‹", "3/3"]
        assert await talk.tell("/privacy looks", chat="club") == "Looks of admins: none."
        for typed in ("looks 0", "looks x", "looks 1 2"):
            assert "Usage: /privacy" in await talk.tell(f"/privacy {typed}")
