"""Commands as platforms show them: completions, forms, pages under buttons, over a real store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import count

import pytest

from agents.spec import AgentSpec
from channels.base import Button, Capabilities, Channel, Inbound, Outbound, Place
from channels.ids import NUMERIC
from gateway.actions.memory import FORGET
from gateway.commands import pages, table
from gateway.commands.call import Call
from gateway.pipeline.course import Agent
from gateway.pipeline.questions import buttons, holds_the_question
from gateway.pipeline.store import Roster
from gateway.wording.texts import Texts
from memory.chat.edits import Edits
from memory.context import Context
from memory.mailbox.outbox import OutboxRow, Part
from memory.service import Service
from tests.kit.fakes import Clock, ScriptedModel
from tests.kit.talk import group, private, received

numbers = count(1)
ENGLISH = Texts("en")


class Phone(Channel):
    """A channel of which only the abilities matter here."""

    id = "console"
    platform = "console"
    capabilities = Capabilities()

    def __init__(self, *, buttons: bool = True) -> None:
        self.capabilities = Capabilities(buttons=buttons)

    async def send(self, outbound: Outbound) -> str:
        return str(outbound.id)


def call(memory: Service, context: Context, inbox_id: int, inbound: Inbound, channel: Channel, arguments: str) -> Call:
    async def stop(_announce: Callable[[], Awaitable[None]]) -> bool:
        return False

    async def rerun(_turn_id: int) -> None:
        raise AssertionError("no turn is answered anew here")

    return Call(
        arguments=arguments,
        inbox_id=inbox_id,
        inbound=inbound,
        channel=channel,
        context=context,
        memory=memory,
        agent=Agent(spec=AgentSpec(name="assistant"), provider=ScriptedModel(), offline=False),
        texts=ENGLISH,
        access=memory.access,
        admin=False,
        administers=inbound.channel,
        account=inbound.author_id,
        stop=stop,
        new_code=lambda: "CDFG-2345",
        unhear=lambda: None,
        is_admin=lambda _user_id: False,
        ids=NUMERIC,
        wake=lambda _key: None,
        rerun=rerun,
        trusted=False,
        roster=Roster(agents={}, stores={}, route=lambda _inbound: "assistant", default="assistant"),
    )


async def says(
    memory: Service, context: Context, text: str = "", *, pressed: str | None = None, channel: Channel | None = None
) -> list[OutboxRow]:
    """Returns what is shown after a command, or after a press under the message 77; nothing if that turns no page."""
    number = str(next(numbers))
    place = Place.from_session_key(context.session.key)
    inbound = Inbound(
        channel=place.channel, platform="console", bot_id="local", update_key=number, chat=place.chat,
        chat_kind="private" if context.session.private else "group", author_id=context.speaker.name,
        author_name=context.speaker.name, message_id="77", text=text, sent_at=0, pressed=pressed,
    )  # fmt: skip
    inbox_id = await memory.mailbox.receive(
        platform="console", bot_id="local", update_key=number, session_key=place.session_key, payload=inbound.to_json()
    )
    assert inbox_id is not None
    name, arguments = table.parse(text) or ("", "")
    made = call(memory, context, inbox_id, inbound, channel or Phone(), arguments)
    question = await memory.questions.open_to(context)
    if pressed is None:
        command = table.find(name)
        assert command is not None
        await command.run(made)
    elif not await table.press(made, pressed) and question is not None:
        await table.answer(made, question, pressed.split(":")[2])
    shown = []
    while (row := await memory.mailbox.take(place.session_key)) is not None:
        await memory.mailbox.was_sent(row, "77")
        shown.append(row)
    return shown


async def remember(memory: Service, context: Context, *texts: str) -> None:
    for text in texts:
        await says(memory, context, f"/remember {text}")


async def ids(memory: Service, context: Context) -> dict[str, str]:
    return {one.value: one.short_id for one in await memory.browse.memories(context, limit=1_000)}


async def offered(
    memory: Service, context: Context, typed: str, name: str = "forget", option: str = "what", arguments: str = ""
) -> list[str]:
    return [one.value for one in await table.suggestions(memory, context, ENGLISH, name, option, typed, arguments)]


# Completions ----------------------------------------------------------------------------------------------------


async def test_an_id_is_completed_by_its_beginning_or_by_words(memory: Service, ada: Context, clock: Clock) -> None:
    """Nobody remembers m_7k2pq4, but everybody what they want gone; what was told last is most often meant."""
    for text in ("I like tea", "I live in Lisbon", "我喜欢登山"):
        await remember(memory, ada, text)
        clock.move(minutes=1)
    by_value = await ids(memory, ada)
    tea, lisbon, hills = by_value["tea"], by_value["Lisbon"], by_value["登山"]
    assert await offered(memory, ada, "") == [hills, lisbon, tea]
    assert await offered(memory, ada, "lisb") == await offered(memory, ada, lisbon.upper()) == [lisbon]
    assert await offered(memory, ada, lisbon[2:-1])  # without the m_, and not whole yet
    assert (await offered(memory, ada, "I like TEA"))[0] == tea
    assert (await offered(memory, ada, "喜欢登山"))[0] == hills
    assert await offered(memory, ada, "zebra") == []
    found = await table.suggestions(memory, ada, ENGLISH, "correct", "id", "tea")
    assert found[0].label == f"{tea} · likes: tea"


async def test_completions_are_few_and_short(memory: Service, ada: Context) -> None:
    """A platform refuses all of them for one that is too long."""
    await remember(memory, ada, *(f"number {n} is {'very ' * 60}long" for n in range(30)))
    found = await table.suggestions(memory, ada, ENGLISH, "forget", "what", "number")
    assert len(found) == 25
    assert all(len(one.label) <= 100 and one.label.startswith(one.value) for one in found)
    assert await table.suggestions(memory, ada, ENGLISH, "forget", "what", "number " * 50_000)


async def test_completions_come_from_what_this_person_may_act_on(memory: Service, ada: Context) -> None:
    """Nothing of another's private chats, ever; in a group all of its memory to look at, one's own to change."""
    bob = await memory.identities.context(*private("bob"))
    ada_there, bob_there = (
        await memory.identities.context(*group("club", "ada")),
        await memory.identities.context(*group("club", "bob")),
    )
    await remember(memory, ada, "I like tea")
    await remember(memory, ada_there, "I like chess")
    await remember(memory, bob_there, "I like go")
    there = await ids(memory, ada_there)
    chess, go = there["chess"], there["go"]
    tea = (await ids(memory, ada))["tea"]
    assert await offered(memory, bob, "") == [go]  # of himself, said in a group
    assert await offered(memory, bob, tea) == []
    assert set(await offered(memory, bob_there, "", "memory", "rest", "show")) == {chess, go}
    assert await offered(memory, bob_there, "", "memory", "rest", "pin") == [go]
    assert await offered(memory, bob_there, "") == [go]
    assert await offered(memory, ada_there, "", "correct", "id") == [chess]
    labels = {
        one.value: one.label
        for one in await table.suggestions(memory, bob_there, ENGLISH, "memory", "rest", "likes", "show")
    }
    assert labels == {chess: f"{chess} · ada: likes: chess", go: f"{go} · likes: go"}


@pytest.mark.parametrize(
    ("name", "option", "arguments"),
    [
        ("memory", "rest", "search te"), ("memory", "rest", "list"), ("memory", "rest", "off"), ("memory", "rest", ""),
        ("memory", "action", ""), ("profile", "value", "name"), ("correct", "value", ""), ("remember", "text", ""),
        ("memry", "id", ""), ("help", "id", ""),
    ],
)  # fmt: skip
async def test_only_ids_are_completed(memory: Service, ada: Context, name: str, option: str, arguments: str) -> None:
    """An id in the place of a word to search for would be in the way."""
    await remember(memory, ada, "I like tea")
    assert list(await table.suggestions(memory, ada, ENGLISH, name, option, "te", arguments)) == []


async def test_an_id_is_completed_however_much_there_is(memory: Service, ada: Context) -> None:
    """The memory that matters least is the one that somebody most often wants gone."""
    await remember(memory, ada, "the needle")
    needle = (await memory.browse.memories(ada, limit=1))[0]
    await memory.database.write(
        lambda tx: tx.run(
            "with recursive n(i) as (values (1) union all select i + 1 from n where i < 3000) insert into memories"
            " (short_id, kind, owner_id, author_id, subject_id, category, key, value, importance, confidence, origin,"
            " created_at, learned_at, local_date, valid_from, last_reinforced_at) select 'm_x' || i, kind, owner_id,"
            " author_id, subject_id, category, key, 'hay ' || i, 9, 1, 'told', 0, learned_at + i, local_date, 0, 0"
            " from memories cross join n where short_id = ?",
            (needle.short_id,),
        )
    )
    for typed in (needle.short_id, needle.short_id[2:], "needle"):
        assert (await offered(memory, ada, typed))[0] == needle.short_id
    assert await offered(memory, ada, "needl") == [needle.short_id]
    filled = await table.form(memory, ada, ENGLISH, "correct", needle.short_id)
    assert filled is not None and filled.value == "the needle"


async def test_parts_of_a_list_are_completed_with_how_much_is_in_them(memory: Service, ada: Context) -> None:
    await remember(memory, ada, "I like tea", "I like milk", "I'm allergic to nuts")
    found = await table.suggestions(memory, ada, ENGLISH, "memory", "rest", "", "list")
    assert [(one.value, one.label) for one in found] == [
        ("fact", "Facts (3)"), ("health", "health (1)"), ("preference", "preferences (2)"),
    ]  # fmt: skip
    assert await offered(memory, ada, "pref", "memory", "rest", "list") == ["preference"]
    chinese = await table.suggestions(memory, ada, Texts("zh"), "memory", "rest", "健", "list")
    assert [(one.value, one.label) for one in chinese] == [("health", "健康 (1)")]


async def test_timezones_are_completed_by_their_city(memory: Service, ada: Context) -> None:
    """Nobody knows on which continent the list has a place."""
    assert (await offered(memory, ada, "lisb", "profile", "value", "timezone"))[0] == "Europe/Lisbon"
    assert "Asia/Shanghai" in await offered(memory, ada, "asia/sha", "profile", "value", "timezone")
    assert len(await offered(memory, ada, "", "profile", "value", "timezone")) == 25
    assert await offered(memory, ada, "", "profile", "value", "language") == ["en", "zh", "de", "es", "fr", "ja"]


async def test_completions_and_forms_change_nothing(memory: Service, ada: Context) -> None:
    """They run at every key that is pressed, for a command that may never be sent."""
    await remember(memory, ada, "I like tea")
    tea = (await ids(memory, ada))["tea"]
    before = await memory.database.read(lambda reader: [tuple(row) for row in reader.all("select * from memories")])
    await offered(memory, ada, "tea")
    await table.form(memory, ada, ENGLISH, "correct", tea)
    after = await memory.database.read(lambda reader: [tuple(row) for row in reader.all("select * from memories")])
    assert before == after


# Forms ----------------------------------------------------------------------------------------------------------


async def test_a_command_without_its_text_opens_a_form(memory: Service, ada: Context) -> None:
    """To correct something, one wants to see and edit what stands there."""
    await remember(memory, ada, "I like tea", "y" * 2_048)
    by_value = await ids(memory, ada)
    tea, long = by_value["tea"], by_value["y" * 2_048]
    empty = await table.form(memory, ada, ENGLISH, "remember", " ")
    filled = await table.form(memory, ada, Texts("zh"), "correct", f" {tea} ")
    assert await table.form(memory, ada, Texts("zh"), "memory", f"edit {tea}") == filled
    assert empty is not None and empty.value == ""
    assert filled is not None and filled.value == "tea" and tea in filled.title
    for form in (empty, filled):
        assert 0 < len(form.title) <= 45 and 0 < len(form.label) <= 45 and form.limit == 2_000
    whole = await table.form(memory, ada, ENGLISH, "correct", long)
    assert whole is not None and len(whole.value) == whole.limit == 2_048


async def test_no_form_opens_where_the_command_itself_has_the_answer(memory: Service, ada: Context) -> None:
    """Whether an id is unknown or somebody else's can't be told from it."""
    bob_there = await memory.identities.context(*group("club", "bob"))
    ada_there = await memory.identities.context(*group("club", "ada"))
    bob = await memory.identities.context(*private("bob"))
    await remember(memory, bob, "I like beer")
    await remember(memory, bob_there, "I like go")
    beer, go = (await ids(memory, bob))["beer"], (await ids(memory, ada_there))["go"]
    for context, arguments in ((ada, "m_nothere"), (ada, beer), (ada_there, go), (bob, f"{beer} wine"), (bob, "")):
        assert await table.form(memory, context, ENGLISH, "correct", arguments) is None
        assert await table.form(memory, context, ENGLISH, "memory", f"edit {arguments}") is None
    assert await table.form(memory, ada, ENGLISH, "remember", "tea") is None
    assert await table.form(memory, ada, ENGLISH, "forget", "") is None
    await remember(memory, ada, "I like tea")
    tea = (await ids(memory, ada))["tea"]
    for arguments in ("", tea, f"show {tea}", f"pin {tea}"):
        assert await table.form(memory, ada, ENGLISH, "memory", arguments) is None


# Pages ----------------------------------------------------------------------------------------------------------


def labels(row: OutboxRow) -> list[str]:
    return [label for label, _ in row.buttons]


async def test_a_list_is_leafed_through_in_its_message(memory: Service, ada: Context) -> None:
    """Each memory stands on exactly one page; a page that is gone becomes the last there is."""
    await remember(memory, ada, *(f"number {n} is lucky" for n in range(23)))
    [first] = await says(memory, ada, "/memory")
    assert first.edits is None and labels(first) == ["1/3", "›"]
    seen, at, places = first.text, first, []
    for _ in range(2):
        [at] = await says(memory, ada, pressed=at.buttons[-1][1])
        seen += "\n" + at.text
        places.append((at.edits, labels(at)))
    assert places == [("77", ["‹", "2/3", "›"]), ("77", ["‹", "3/3"])]
    assert all(seen.count(f"{short_id} ") == 1 for short_id in (await ids(memory, ada)).values())
    assert [seen.count(f"number {n} is lucky") for n in range(23)] == [1] * 23
    [beyond] = await says(memory, ada, pressed="page:list:99999")
    assert beyond.text == at.text and labels(beyond) == ["‹", "3/3"]
    [again] = await says(memory, ada, pressed=at.buttons[-1][1])
    assert again.text == at.text


async def test_pages_are_messages_also_where_memories_are_long(memory: Service, ada: Context) -> None:
    """Two thousand letters are the least of what the platforms take at once."""
    await remember(memory, ada, *(f"number {n} is {'very ' * 200}long" for n in range(12)), f"My name is {'A' * 40}")
    for shown in (await says(memory, ada, "/memory list"), await says(memory, ada, "/memory search number")):
        assert len(shown) == 1 and len(shown[0].text) <= 2_000


async def test_where_nothing_can_be_pressed_the_next_page_is_told_in_words(memory: Service, ada: Context) -> None:
    """A terminal has no buttons; a list without more of it needs neither."""
    await remember(memory, ada, *(f"number {n} is lucky" for n in range(11)))
    typed = Phone(buttons=False)
    [shown] = await says(memory, ada, "/memory list", channel=typed)
    assert shown.buttons == () and shown.text.endswith("/memory list 2")
    [found] = await says(memory, ada, "/memory search lucky", channel=typed)
    assert found.buttons == () and found.text.endswith(ENGLISH("memory.more_found"))
    [last] = await says(memory, ada, "/memory list 2", channel=typed)
    assert "11 of 11" in last.text and "/memory list" not in last.text


@pytest.mark.parametrize("query", ["lucky", "lucky 数字", "数字幸运"])
async def test_what_was_found_is_leafed_through_too(memory: Service, ada: Context, query: str) -> None:
    """The words searched for come back with the button, in any script."""
    await remember(memory, ada, *(f"lucky 数字幸运 number {n}" for n in range(12)))
    [first] = await says(memory, ada, f"/memory search {query}")
    assert labels(first) == ["1/2", "›"]
    [second] = await says(memory, ada, pressed=first.buttons[-1][1])
    assert second.edits == "77" and labels(second) == ["‹", "2/2"]
    shown = first.text + second.text
    assert all(shown.count(f"{short_id} ") == 1 for short_id in (await ids(memory, ada)).values())
    assert "lucky" not in str(first.buttons) and query not in str(first.buttons)


async def test_a_search_too_long_for_a_button_has_one_page(memory: Service, ada: Context) -> None:
    await remember(memory, ada, *(f"lucky number {n}" for n in range(12)))
    [shown] = await says(memory, ada, "/memory search lucky " + "number " * 10)
    assert shown.buttons == () and shown.text.endswith(ENGLISH("memory.more_found"))


async def test_a_page_shows_what_the_one_who_pressed_may_read(memory: Service, ada: Context) -> None:
    """A button's data is known to everybody; what it shows depends on who presses it, and where."""
    await remember(memory, ada, *(f"secret {n}" for n in range(11)))
    ada_there, bob_there = (
        await memory.identities.context(*group("club", "ada")),
        await memory.identities.context(*group("club", "bob")),
    )
    bob = await memory.identities.context(*private("bob"))
    await remember(memory, ada_there, *(f"I like game {n}" for n in range(11)))
    [hers] = await says(memory, ada_there, pressed="page:list:1")
    [his] = await says(memory, bob_there, pressed="page:list:1")
    assert hers.text.count("you like game") == 10 and his.text.count("ada: likes: game") == 10
    [alone] = await says(memory, bob, pressed="page:list:1")
    [found] = await says(memory, bob, pressed="page:search:1:" + (pages._packed("secret") or ""))
    assert "secret" not in his.text + hers.text + alone.text and "secret 1" not in found.text
    assert alone.text.splitlines()[0] == ENGLISH("memory.none") and alone.edits == "77"


@pytest.mark.parametrize(
    "data",
    [
        "", "page", "page:", "page:list", "page:list:", "page:list:0", "page:list:-1", "page:list:1:x", "page:list:１",
        "page:list:1:", "page:list:1:tier4",
        "page:list:999999", "page:list:1\n", "page:search:1", "page:search:1:", "page:search:1: ", "page:search:1:~~~~~",
        "page:search:1:" + "x" * 51, "page:show:1", "answer:1:yes", "again:3", "now",
    ],
)  # fmt: skip
async def test_other_data_turns_no_page(memory: Service, ada: Context, data: str) -> None:
    """Data that comes back from a platform may be anything."""
    assert await says(memory, ada, pressed=data) == []


# Questions ------------------------------------------------------------------------------------------------------


async def test_the_answer_to_a_command_takes_its_questions_place(memory: Service, ada: Context) -> None:
    """The buttons are done with, and so are the words that were to be forgotten."""
    await remember(memory, ada, "I like tea")
    tea = (await ids(memory, ada))["tea"]
    [asked] = await says(memory, ada, f"/forget {tea}")
    assert labels(asked) == [ENGLISH(name) for name in ("words", "memory", "no")] and all(
        holds_the_question(data) for _, data in asked.buttons
    )
    [done] = await says(memory, ada, pressed=asked.buttons[0][1])
    assert done.edits == "77" and done.buttons == () and "tea" not in done.text
    assert await ids(memory, ada) == {}


async def test_an_answer_leaves_a_message_in_which_more_is_said(memory: Service, ada: Context) -> None:
    """A model's reply may end in a question; replacing it would take the reply away."""
    await remember(memory, ada, "I like tea")
    tea = (await memory.browse.memories(ada, limit=1))[0]
    asked: list[Button] = []
    number = await received(memory, ada.session.key)

    def ask(edits: Edits) -> list[Part]:
        question = edits.ask(FORGET, {"memory": tea.id}, choices=("yes", "no"), preset="yes")
        asked.extend(buttons(question, ENGLISH))
        return []

    await memory.requests.answer(ada, number, ask)
    [done] = await says(memory, ada, pressed=asked[1].data)
    assert done.edits is None and done.text == ENGLISH("forget.kept")
