"""Two accounts become one person by a code that both confirm, and part again: codes, then the talk about them."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from channels.base import Outbound, Place
from memory.chat.edits import Edits
from memory.chat.turns import Said
from memory.context import Context
from memory.errors import NotFound
from memory.people import linking
from memory.people.codes import GUESSES, LIFETIME_MS, LOCKED_MS, TRIES
from memory.recall.recall import Budget
from memory.service import Service
from memory.store import chats, people, scopes
from memory.store.database import Transaction
from memory.store.sqlite.database import SqliteTransaction
from memory.store.sqlite.migrate import migrate, migrations
from tests.kit.bench import Desk as Bench
from tests.kit.bench import Phone
from tests.kit.fakes import MINUTE, NOON, Clock, ScriptedModel
from tests.kit.stores import link, unlink
from tests.kit.talk import group, private

CODE = "CDFG-2345"
PEOPLE = ("ada", "bob", "cyd")
CODES = ("CDFG-2345", "HJKM-6789", "PQRT-2222")


# Codes ----------------------------------------------------------------------------------------------------------


def store() -> tuple[sqlite3.Connection, Transaction]:
    """An empty store in memory in which three people have a private chat each: identities and sessions 1, 2, 3."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.row_factory = sqlite3.Row
    migrate(connection, migrations(), now=NOON)
    tx = SqliteTransaction(connection)
    agent_id = scopes.agent(tx, "assistant", now=NOON)
    for name in PEOPLE:
        people.speaker(tx, platform="console", user_id=name, name=name, now=NOON)
        chat_id = chats.chat(tx, platform="console", reference=name, kind="private", title="", now=NOON)
        chats.session(tx, key=f"console:{name}:-", chat_id=chat_id, thread=None, agent_id=agent_id, now=NOON)
    return connection, tx


steps = st.lists(
    st.tuples(
        st.sampled_from(["make", "give", "link", "unlink"]),
        st.integers(1, 3),
        st.integers(0, 2),
        st.sampled_from([0, 1, MINUTE, 4 * MINUTE, LIFETIME_MS - 1, LIFETIME_MS, LOCKED_MS]),
    ),
    max_size=30,
)


@settings(max_examples=150)
@given(steps=steps)
def test_a_code_is_for_one_link_within_its_time_and_three_guesses_are_all(
    steps: list[tuple[str, int, int, int]],
) -> None:
    """Whatever people do in whatever order, against a model in plain words."""
    connection, tx = store()
    now = NOON
    opened: dict[int, tuple[str, int]] = {}
    wrong: dict[int, tuple[int, int]] = {}
    person = {1: 1, 2: 2, 3: 3}
    with closing(connection):
        for what, who, n, pause in steps:
            now += pause
            if what == "make":
                if any(code == CODES[n] and maker != who for maker, (code, _) in opened.items()):
                    continue  # codes are random: two people never have the same
                assert linking.open_code(tx, who, who, CODES[n], now=now) == now + LIFETIME_MS
                opened = {maker: one for maker, one in opened.items() if one[1] > now}
                opened[who] = (CODES[n], now + LIFETIME_MS)
            elif what == "give":
                wrong = {one: (count, until) for one, (count, until) in wrong.items() if until > now}
                maker = next((maker for maker, (code, _) in opened.items() if code == CODES[n]), None)
                given = linking.take_code(tx, who, CODES[n], now=now)
                if wrong.get(who, (0, 0))[0] >= TRIES:
                    expected = "no_tries_left"
                elif maker is None:
                    wrong[who] = (wrong.get(who, (0, 0))[0] + 1, now + LOCKED_MS)
                    expected = "no_tries_left" if wrong[who][0] >= TRIES else "wrong"
                elif opened[maker][1] <= now:
                    opened = {one: code for one, code in opened.items() if code[1] > now}
                    expected = "expired"
                elif maker == who:
                    expected = "own"
                elif person[maker] == person[who]:
                    expected = "linked"
                else:
                    del opened[maker]
                    expected = "fits"
                    assert (given.identity_id, given.session_id) == (maker, maker)
                assert given.outcome == expected
            elif what == "link":
                other = n + 1
                people.link(tx, who, other)
                person = {one: person[who] if of == person[other] else of for one, of in person.items()}
            else:
                people.unlink(tx, who)
                person[who] = max(person.values()) + 1
            groups = {one: {each.id for each in people.accounts(tx, one)} for one in person}
            assert groups == {one: {each for each in person if person[each] == person[one]} for one in person}


def test_the_code_itself_is_nowhere_in_the_store() -> None:
    connection, tx = store()
    with closing(connection):
        linking.open_code(tx, 1, 1, CODE, now=NOON)
        assert CODE.encode() not in connection.serialize()
        maker = linking.maker(tx, CODE)
        assert maker is not None and (maker.account.id, maker.session_id) == (1, 1)


def test_a_newer_code_ends_the_older_one_of_the_same_account() -> None:
    connection, tx = store()
    with closing(connection):
        linking.open_code(tx, 1, 1, CODES[0], now=NOON)
        linking.open_code(tx, 1, 1, CODES[1], now=NOON)
        assert linking.take_code(tx, 2, CODES[0], now=NOON).outcome == "wrong"
        assert linking.take_code(tx, 2, CODES[1], now=NOON).outcome == "fits"


def test_a_right_code_does_not_buy_more_guesses() -> None:
    """A second account of one's own makes right codes as often as one likes."""
    connection, tx = store()
    with closing(connection):
        given = []
        for code in (CODES[1], CODES[1], CODES[0], CODES[1], CODES[1]):
            linking.open_code(tx, 1, 1, CODES[0], now=NOON)
            given.append(linking.take_code(tx, 2, code, now=NOON).outcome)
        assert given == ["wrong", "wrong", "fits", "no_tries_left", "no_tries_left"]


def test_many_who_guess_together_end_the_code_before_one_can_hit() -> None:
    """A bound on each of them is none on all: with bare words or with the command, over whatever time."""
    connection, tx = store()
    with closing(connection):
        linking.open_code(tx, 1, 1, CODES[0], now=NOON)
        for n in range(GUESSES):
            user = people.speaker(tx, platform="console", user_id=f"guesser {n // TRIES}", name="", now=NOON)
            if n % 2:
                assert not linking.is_code(tx, user.id, CODES[1], now=NOON + n)
            else:
                assert linking.take_code(tx, user.id, CODES[1], now=NOON + n).outcome in ("wrong", "no_tries_left")
            is_open = linking.maker(tx, CODES[0]) is not None
            assert is_open == (n + 1 < GUESSES)
        assert linking.take_code(tx, 2, CODES[0], now=NOON + 1_000).outcome == "wrong"


def test_bare_words_are_tries_only_while_there_is_something_to_guess_at() -> None:
    """Telephone numbers shut nobody off; who is shut off is told of no code whether it is right."""
    connection, tx = store()
    with closing(connection):
        assert not any(linking.is_code(tx, 2, CODES[1], now=NOON) for _ in range(TRIES))
        linking.open_code(tx, 1, 1, CODES[0], now=NOON)
        assert linking.is_code(tx, 2, CODES[0], now=NOON)
        assert not any(linking.is_code(tx, 2, CODES[1], now=NOON) for _ in range(TRIES))
        assert not linking.is_code(tx, 2, CODES[0], now=NOON)
        assert linking.take_code(tx, 2, CODES[0], now=NOON).outcome == "no_tries_left"
        assert linking.is_code(tx, 3, CODES[0], now=NOON)
        assert linking.is_code(tx, 2, CODES[0], now=NOON + LOCKED_MS)


# The talk about it ----------------------------------------------------------------------------------------------


class World(Bench):
    """People in private chats on one platform, each seen from their own chat."""

    def shown(self, person: str) -> list[Outbound]:
        return [one for one in self.screen.sent if one.place.chat == person]

    def last(self, person: str) -> str:
        return self.shown(person)[-1].text

    async def tell(self, text: str, person: str, *, others: tuple[str, ...] = PEOPLE) -> str:
        await self.say(text, person=person)
        for other in others:
            await self.router.settled(Place(channel="console", chat=other))
        return self.last(person)

    async def press_last(self, choice: str, person: str) -> str:
        message = self.shown(person)[-1]
        return await self.press_on(
            next(one.data for one in message.buttons if f":{choice}" in one.data), message, person
        )

    async def press_on(self, data: str, message: Outbound, person: str) -> str:
        pressed = replace(self.inbound("", person=person), pressed=data, message_id=str(message.id))
        await self.router.on_inbound(pressed)
        for other in PEOPLE:
            await self.router.settled(Place(channel="console", chat=other))
        return self.last(person)

    async def linked(self, maker: str, giver: str) -> None:
        await self.tell("/link", maker)
        await self.tell(f"/link {CODE}", giver)
        await self.tell("yes", giver)
        await self.press_last("yes", maker)

    async def seen(self, person: str) -> set[str]:
        memory = self.memories["remora.db"]
        return {
            one.value
            for one in await memory.browse.memories(await memory.identities.context(*private(person)), limit=100)
        }


@pytest.fixture
async def world(tmp_path: Path, clock: Clock) -> AsyncIterator[World]:
    """Each has told one thing of themselves."""
    made = World(tmp_path, ScriptedModel(), Phone(), clock)
    async with made.running():
        for person, drink in zip(PEOPLE, ("tea", "rum", "milk"), strict=True):
            await made.say(f"/remember I like {drink}", person=person)
        yield made


async def test_both_say_yes_and_each_reads_what_either_told(world: World) -> None:
    """A code confirmed on both sides; until then nothing is shared."""
    assert CODE in await world.tell("/link", "ada")
    asked = await world.tell(f"/link {CODE.lower()}", "bob")
    assert "“Ada” on the terminal" in asked and await world.seen("bob") == {"rum"}
    assert "I have asked “Ada”" in await world.press_last("yes", "bob")
    assert "“Bob” on the terminal has sent the code you created" in world.last("ada")
    assert await world.seen("ada") == {"tea"}
    assert "Linked: " in await world.press_last("yes", "ada")
    assert "Linked: " in world.last("bob")
    assert await world.seen("ada") == await world.seen("bob") == {"tea", "rum"}
    assert await world.seen("cyd") == {"milk"}
    # The answer takes the question's place, and the question is over.
    assert world.shown("ada")[-1].edits is not None


@pytest.mark.parametrize(
    ("who", "word", "told"), [("bob", "no", "not linked"), ("bob", "不", "没有关联"), ("ada", "no", "not linked")]
)
async def test_whoever_says_no_ends_it_and_the_code_is_over(world: World, who: str, word: str, told: str) -> None:
    await world.tell("/link", "ada")
    await world.tell(f"/link {CODE}", "bob")
    if who == "ada":
        await world.tell("yes", "bob")
    assert told in await (world.tell(word, who) if who == "bob" else world.press_last(word, who))
    if who == "ada":
        assert "“Ada” on the terminal did not agree" in world.last("bob")
    assert await world.seen("ada") == {"tea"} and await world.seen("bob") == {"rum"}
    assert "wrong or no longer valid" in await world.tell(f"/link {CODE}", "bob")


async def test_an_ok_in_passing_is_neither_yes_nor_no(world: World) -> None:
    """The question stays open, and the very word is asked for."""
    await world.tell("/link", "ada")
    await world.tell(f"/link {CODE}", "bob")
    for word, told in (("ok", "the very word: yes / no"), ("好的", "请用原词回答：是 / 否")):
        assert told in await world.tell(word, "bob")
    assert "I have asked “Ada”" in await world.press_last("yes", "bob")


async def test_where_only_the_button_counts_it_is_asked_for(world: World) -> None:
    """A typed yes may be meant for something else, and whoever typed it would wait in vain."""
    world.screen.capabilities = replace(world.screen.capabilities, buttons=True)
    await world.tell("/link", "ada")
    await world.tell(f"/link {CODE}", "bob")
    await world.tell("yes", "bob")
    assert "Press yes or no" in world.last("ada") and "Answer" not in world.last("ada")


@pytest.mark.parametrize("said", [CODE, CODE.lower(), "CDFG 2345"])
async def test_a_code_sent_alone_is_given(world: World, said: str) -> None:
    await world.tell("/link", "ada")
    assert "You created that code here" in await world.tell(said, "ada")
    assert "“Ada” on the terminal created that code" in await world.tell(said, "bob")
    assert "I have asked “Ada”" in await world.tell("yes", "bob")


async def test_a_code_guessed_at_without_the_command_is_a_try(world: World) -> None:
    """Else it could be guessed at without end: what is no code is answered as talk, and so is then a right one."""
    await world.tell("/link", "ada")
    for guess in (*CODES[1:], "XXXX-XXXX"):
        assert await world.tell(guess, "bob") == "All right."
    assert await world.tell(CODE, "bob") == "All right."
    assert "Too many" in await world.tell(f"/link {CODE}", "bob")
    assert "“Ada” on the terminal created that code" in await world.tell(CODE, "cyd")


async def test_a_code_said_alone_in_a_group_is_over(world: World) -> None:
    """As behind the command: whoever reads along could give it first."""
    await world.tell("/link", "ada")
    await world.say(CODE, person="bob", chat="club")
    assert "no longer valid" in world.last("club")
    assert "wrong or no longer valid" in await world.tell(f"/link {CODE}", "bob")


@pytest.mark.parametrize("said", ["2345 6789", "7788 2233", "CDFGHJKM", CODE])
async def test_what_only_looks_like_a_code_is_ordinary_talk(world: World, said: str) -> None:
    """Somebody's telephone number must not be lost on a greeting."""
    assert await world.tell(said, "cyd") == "All right."
    await world.say(said, person="cyd", chat="club")
    assert world.last("club") == "All right."
    assert [said in request.messages[-1].content for request in world.model.requests] == [True, True]


async def test_a_question_that_is_over_links_nobody(world: World, clock: Clock) -> None:
    """Ten minutes later, or after something else was said, a yes is a word like any other."""
    await world.tell("/link", "ada")
    await world.tell(f"/link {CODE}", "bob")
    clock.move(minutes=10)
    assert await world.tell("yes", "bob") == "All right."
    await world.tell("/link", "ada")
    await world.tell(f"/link {CODE}", "bob")
    await world.tell("yes", "bob")
    assert "before" not in world.last("ada")
    clock.move(minutes=10)
    assert "no longer open" in await world.press_last("yes", "ada")
    assert await world.seen("ada") == {"tea"}


@pytest.mark.parametrize("unanswered", ["bob", "ada"])
@pytest.mark.parametrize("asks", ["/link", f"/link {CODE}", "/link XXXX-XXXX"])
async def test_who_began_a_link_is_told_that_it_came_to_nothing(
    world: World, clock: Clock, unanswered: str, asks: str
) -> None:
    """Once, and nobody else: whoever waits for a yes would else wait for ever."""
    lapsed = "Your last link request expired because it was not answered in time.\n"
    await world.tell("/link", "ada")
    await world.tell(f"/link {CODE}", "bob")
    if unanswered == "ada":
        await world.tell("yes", "bob")
    assert not (await world.tell("/link XXXX-XXXX", "bob")).startswith(lapsed)
    clock.move(minutes=10)
    assert "time" not in await world.tell("/link", "cyd")
    assert not (await world.tell("/link", "ada")).startswith(lapsed)
    if asks == f"/link {CODE}":
        await world.tell("/link", "cyd")
    told = await world.tell(asks, "bob")
    assert told.startswith(lapsed) and len(told) > len(lapsed) + 20
    assert not (await world.tell(asks, "bob")).startswith(lapsed)
    assert [text for one in world.screen.sent for text in one.text.splitlines() if text in lapsed] == [lapsed.strip()]


async def test_a_link_that_came_to_nothing_days_ago_is_not_told_of(world: World, clock: Clock) -> None:
    lapsed = "was not answered in time"
    await world.tell("/link", "ada")
    await world.tell(f"/link {CODE}", "bob")
    await world.tell("no", "bob")
    clock.move(minutes=10)
    assert lapsed not in await world.tell("/link", "bob")
    await world.tell(f"/link {CODE}", "ada")
    clock.move(days=2)
    for person in ("ada", "bob", "ada"):
        assert lapsed not in await world.tell("/link", person)


async def test_every_code_that_does_not_fit_has_its_own_words(world: World, clock: Clock) -> None:
    assert "is not a code" in await world.tell("/link hello there", "bob")
    await world.tell("/link", "ada")
    assert "You created that code here" in await world.tell(f"/link {CODE}", "ada")
    clock.move(minutes=10)
    assert "has expired" in await world.tell(f"/link {CODE}", "bob")
    await world.linked("ada", "bob")
    await world.tell("/link", "ada")
    assert "already linked" in await world.tell(f"/link {CODE}", "bob")
    for _ in range(2):
        assert "wrong or no longer valid" in await world.tell("/link XXXX-XXXX", "cyd")
    assert "Too many" in await world.tell("/link XXXX-XXXX", "cyd")
    assert "Too many" in await world.tell(f"/link {CODE}", "cyd")
    clock.move(minutes=61)
    assert "has expired" in await world.tell(f"/link {CODE}", "cyd")


async def test_a_code_said_in_a_group_is_over(world: World) -> None:
    await world.tell("/link", "ada")
    await world.say(f"/link {CODE}", person="bob", chat="club")
    assert "no longer valid" in world.last("club")
    assert "wrong or no longer valid" in await world.tell(f"/link {CODE}", "bob")
    await world.say("/link", person="ada", chat="club")
    await world.say("/unlink", person="ada", chat="club")
    assert [one.text for one in world.shown("club")[1:]] == [
        "Your linked accounts are only for you to see. Ask me in our private chat."
    ] * 2


@pytest.mark.parametrize("when", ["before the code", "before the yes", "the giver"])
async def test_nobody_is_linked_with_one_who_was_shut_out(world: World, when: str) -> None:
    door = world.memories["remora.db"].access
    await world.tell("/link", "ada")
    if when == "before the code":
        await door.block("console", "person", "ada", by="9")
        assert "wrong or no longer valid" in await world.tell(f"/link {CODE}", "bob")
        return
    await world.tell(f"/link {CODE}", "bob")
    if when == "before the yes":
        await door.block("console", "person", "ada", by="9")
        assert "can't reach" in await world.tell("yes", "bob")
    else:
        await world.tell("yes", "bob")
        await door.block("console", "person", "bob", by="9")
        assert "can't reach" in await world.press_last("yes", "ada")
    assert await world.seen("bob") == {"rum"}


async def test_a_third_account_joins_and_any_one_leaves(world: World) -> None:
    """All three read each other; who is taken out reads only what was told there, and all are told."""
    await world.linked("ada", "bob")
    await world.tell("/link", "cyd")
    asked = await world.tell(f"/link {CODE}", "bob")
    assert all(f"“{name}” on the terminal" in asked for name in ("Ada", "Bob", "Cyd"))
    await world.tell("yes", "bob")
    await world.press_last("yes", "cyd")
    assert await world.seen("ada") == {"tea", "rum", "milk"}
    assert "1. “Ada” on the terminal (this one)\n2. “Bob”" in await world.tell("/unlink 7", "ada")
    assert "Unlink “Bob” on the terminal?" in await world.tell("/unlink 2", "ada")
    assert "“Bob” on the terminal is no longer linked" in await world.press_last("yes", "ada")
    assert "was unlinked from the others" in world.last("bob") and "no longer linked" in world.last("cyd")
    assert await world.seen("bob") == {"rum"} and await world.seen("cyd") == {"tea", "milk"}
    assert "Unlink “Cyd” on the terminal?" in await world.tell("/unlink", "cyd")
    assert await world.tell("no", "cyd") == "Nothing changes."
    await world.tell("/unlink", "cyd")
    assert "no longer linked" in await world.tell("yes", "cyd")
    assert "not linked with any other" in await world.tell("/unlink", "cyd")


async def test_nobody_is_linked_with_a_third_who_came_in_between_the_two_answers(world: World) -> None:
    """Ada has said yes to Bob, and not to whom Bob has linked with since; nor Bob to a third of hers."""
    await world.tell("/link", "ada")
    await world.tell(f"/link {CODE}", "bob")
    await world.tell("yes", "bob")
    question = world.shown("ada")[-1]
    await world.linked("cyd", "bob")
    await world.press_on(question.buttons[0].data, question, "ada")
    assert "Start again with /link" in world.last("ada") and "Start again with /link" in world.last("bob")
    assert await world.seen("ada") == {"tea"} and await world.seen("bob") == {"rum", "milk"}


async def test_having_all_erased_buys_no_more_guesses(world: World) -> None:
    for _ in range(3):
        await world.tell("/link XXXX-XXXX", "cyd")
    await world.say("/privacy delete", person="cyd")
    await world.say("yes", person="cyd")
    assert await world.seen("cyd") == set()
    assert "Too many" in await world.tell("/link XXXX-XXXX", "cyd")


@pytest.mark.parametrize("how", ["taken out", "all erased"])
async def test_a_question_about_a_link_is_over_when_one_side_leaves(world: World, how: str) -> None:
    """Who has just parted from an account, or had everything erased, is not linked by a yes to what was asked before."""
    await world.linked("bob", "cyd")
    await world.tell("/link", "ada")
    await world.tell(f"/link {CODE}", "bob")
    await world.tell("yes", "bob")
    if how == "taken out":
        await world.say("/unlink", person="cyd")
        await world.say("yes", person="cyd")
    else:
        await world.say("/privacy delete", person="bob")
        await world.say("yes", person="bob")
    question = next(one for one in reversed(world.shown("ada")) if one.buttons)
    assert "no longer open" in await world.press_on(question.buttons[0].data, question, "ada")
    assert await world.seen("ada") == {"tea"}


async def test_what_everybody_is_told_when_an_answer_comes_twice(world: World) -> None:
    """A press that is delivered after the question was answered changes nothing."""
    await world.tell("/link", "ada")
    await world.tell(f"/link {CODE}", "bob")
    await world.tell("yes", "bob")
    question = world.shown("ada")[-1]
    for _ in range(2):
        pressed = replace(world.inbound("", person="ada"), pressed=question.buttons[0].data)
        await world.router.on_inbound(pressed)
        await world.router.settled(pressed.place)
    assert "no longer open" in world.last("ada")
    assert len([one for one in world.shown("bob") if "Linked: " in one.text]) == 1


async def test_what_runs_while_an_account_is_taken_out_neither_reads_nor_changes_the_others_memory(
    memory: Service, ada: Context
) -> None:
    """A turn may take a minute, and its tools act with what it began with."""
    bob = await memory.identities.context(*private("bob"))
    await _keep(memory, ada, "I like tea")
    await link(memory, ada, bob)
    where, who = private("bob")
    inbox_id = await _inbox(memory, where.session_key)
    said = Said(inbox_id=inbox_id, text="What?", tokens=1, said_at=NOON, platform_ref=None, reply_to=None, learn=True)
    turn = await memory.turns.begin(where, who, [said])
    (tea,) = await memory.browse.memories(turn.context, limit=5)
    assert await memory.browse.search(turn.context, "tea", limit=5)
    await unlink(memory, bob)
    assert not await memory.browse.search(turn.context, "tea", limit=5)
    view = await memory.turns.look(turn, Budget(), window_tokens=1_000, window_messages=5)
    assert "tea" not in repr(view)
    with pytest.raises(NotFound):
        await memory.turns.act(turn, 0, 0, "forget_fact", lambda edits: edits.may_forget(tea.short_id).short_id)
    with pytest.raises(NotFound):
        await memory.turns.act(turn, 0, 1, "correct_fact", lambda edits: edits.correct(tea.short_id, "rum")[1].short_id)
    assert [one.value for one in await memory.browse.memories(ada, limit=5)] == ["tea"]


_NUMBERS = count()


async def _keep(memory: Service, context: Context, text: str) -> None:
    def act(edits: Edits) -> tuple[()]:
        edits.remember(text)
        return ()

    await memory.requests.answer(context, await _inbox(memory, context.session.key), act)


async def _inbox(memory: Service, session_key: str) -> int:
    inbox_id = await memory.mailbox.receive(
        platform="console", bot_id="local", update_key=f"{session_key} {next(_NUMBERS)}",
        session_key=session_key, payload="{}",
    )  # fmt: skip
    assert inbox_id is not None
    return inbox_id


async def test_wishes_of_either_hold_for_both_and_stay_with_each_after_they_part(memory: Service, ada: Context) -> None:
    """Who wanted nothing learned must not be learned from because of a link, nor after it."""
    bob = await memory.identities.context(*private("bob"))
    await memory.privacy.learn_from(bob, False)
    await memory.privacy.learn_about(ada, False)
    await link(memory, ada, bob)
    for name in ("ada", "bob"):
        speaker = (await memory.identities.context(*private(name))).speaker
        assert (speaker.learning, speaker.about) == (False, False)
    await unlink(memory, bob)
    for name in ("ada", "bob"):
        speaker = (await memory.identities.context(*group("club", name))).speaker
        assert (speaker.learning, speaker.about) == (False, False)
