"""Memory as people see it: what each /memory, /why and /profile shows and changes, through the router."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from agents.llm import Completion, ModelUnavailable, Usage
from channels.base import Outbound, Place
from gateway.commands.memory import usage_of
from gateway.pipeline import toolbox
from gateway.pipeline.policy import Rules
from gateway.wording.texts import CATALOGUE, Texts
from languages import Language
from memory.score import FACTORS, SUMMANDS
from memory.store.memories import Memory
from tests.kit.bench import _ID, Handset, Talk
from tests.kit.fakes import Clock, says
from tests.kit.forgetting import forgotten_alone
from tests.kit.talk import group

COMMANDS = Path(toolbox.__file__).parents[1] / "commands"
LANGUAGES: tuple[Language, ...] = ("en", "zh")


@pytest.fixture
def talk(tmp_path: Path, clock: Clock) -> Talk:
    return Talk(tmp_path, Handset(), clock)


async def speaks(talk: Talk, language: Language, *people: str) -> Texts:
    for person in people or ("ada",):
        await talk.ask(f"/profile language {language}", person=person)
    return Texts(language)


# Lists ----------------------------------------------------------------------------------------------------------


async def plant(talk: Talk, **categories: str) -> None:
    for value, category in categories.items():
        short_id = await talk.kept(f"the {value} matter")
        await talk.memory.database.write(
            lambda tx: tx.run("update memories set category = ? where short_id = ?", (category, short_id))  # noqa: B023
        )


async def test_a_list_is_grouped_and_says_how_much_there_is_of_each(talk: Talk) -> None:
    """Fifty lines in the order of their weight are nothing to find one's way in."""
    async with talk.running():
        await plant(talk, tea="preference", nuts="health", milk="preference", rent="plan")
        shown = (await talk.ask("/memory")).splitlines()
    assert shown[0] == "What I remember (4 of 4):"
    heads = [line for line in shown if line.startswith("Facts")]
    assert heads == ["Facts · health (1)", "Facts · preferences (2)", "Facts · plans (1)"]
    assert "tea" in "".join(shown[shown.index(heads[1]) : shown.index(heads[2])])
    assert shown[-1].startswith("Learning is on here")


@pytest.mark.parametrize(
    ("asked", "language", "found"),
    [
        ("facts", "en", {"tea", "nuts", "milk"}), ("fact", "zh", {"tea", "nuts", "milk"}),
        ("tier 2", "en", {"tea", "nuts", "milk"}), ("tier2", "en", {"tea", "nuts", "milk"}),
        ("第二层", "zh", {"tea", "nuts", "milk"}), ("事实", "en", {"tea", "nuts", "milk"}), ("health", "en", {"nuts"}),
        ("Preferences", "en", {"tea", "milk"}), ("preference 1", "zh", {"tea", "milk"}), ("喜好", "zh", {"tea", "milk"}),
        ("events", "en", set()), ("tier 3", "zh", set()), ("work", "en", set()), ("1", "en", {"tea", "nuts", "milk"}),
    ],
)  # fmt: skip
async def test_a_list_can_be_asked_for_by_tier_kind_and_category(
    talk: Talk, asked: str, language: Language, found: set[str]
) -> None:
    """In the words of either language: people mix them."""
    async with talk.running():
        texts = await speaks(talk, language)
        await plant(talk, tea="preference", nuts="health", milk="preference")
        shown = await talk.ask(f"/memory list {asked}")
    assert {word for word in ("tea", "nuts", "milk") if word in shown} == found
    assert found or shown == texts("memory.none_of_these")


async def test_the_profile_is_a_tier_of_its_own(talk: Talk) -> None:
    """It is made of the others, so it would stand in a list twice."""
    async with talk.running():
        texts = Texts("en")
        await talk.kept("My name is Ada")
        everything, alone = await talk.ask("/memory list"), await talk.ask("/memory list tier 1")
    assert texts("kinds.profile") not in everything
    assert texts("memory.group", kind=texts("kinds.profile"), count=1) in alone.splitlines()
    assert texts("memory.head", shown=1, total=1) in alone


async def test_a_part_that_there_is_not_is_answered_with_those_that_are_there(talk: Talk) -> None:
    async with talk.running():
        empty = await talk.ask("/memory list nonsense")
        await plant(talk, tea="preference")
        shown = await talk.ask("/memory list nonsense")
    assert empty.endswith("These exist: nothing yet.")
    assert shown.endswith("These exist: Facts, preferences.")


async def test_a_part_is_leafed_through_as_a_part(talk: Talk) -> None:
    """The second page of the preferences is not the second page of everything."""
    async with talk.running():
        await plant(talk, **{f"tea{n}": "preference" for n in range(12)}, nuts="health")
        first = await talk.ask("/memory list preferences")
        second = await talk.press(talk.phone.last.buttons[-1].data)
    assert first.count("tea") == 10 and second.count("tea") == 2 and "nuts" not in first + second


# One memory -----------------------------------------------------------------------------------------------------


async def test_a_memory_is_shown_with_strength_and_where_it_comes_from(talk: Talk) -> None:
    """Promise 6: the words it was learned from, and the way to them."""
    async with talk.running():
        texts = Texts("en")
        await talk.ask("I like tea")
        await talk.memory.learner.flush((await talk.context("ada")).session.id, "test")
        (tea,) = [m for m in await listed(talk) if m.value == "tea"]
        talk.clock.move(days=365)
        shown = await talk.ask(f"/memory show {tea.short_id}")
    said = next(line for line in shown.splitlines() if "phone.example" in line)
    assert texts("memory.weight", percent=50, fades="", importance=tea.importance, marks="") in shown.splitlines()
    assert "“I like tea” https://phone.example/ada/" in said
    labels = [button.label for button in talk.phone.last.buttons]
    assert labels == [texts(f"memory.button.{name}") for name in ("pin", "confirm", "forget")]


async def listed(talk: Talk, person: str = "ada") -> list[Memory]:
    return await talk.memory.browse.memories(await talk.context(person), limit=100)


async def test_pinning_and_confirming_are_told_shown_and_kept(talk: Talk) -> None:
    """Pinned leads and never fades; both can be typed."""
    async with talk.running():
        texts = Texts("en")
        weak, strong = await talk.kept("the weak one"), await talk.kept("the strong one")
        await talk.memory.database.write(lambda tx: tx.run("update memories set category = 'temp', importance = 5"))
        said = await talk.ask(f"/memory pin {weak}")
        talk.clock.move(days=300)
        first = next(line for line in (await talk.ask("/memory list")).splitlines() if weak in line or strong in line)
        alone = await talk.ask(f"/memory show {weak}")
        confirmed = await talk.ask(f"/memory confirm {strong}")
        unpinned = await talk.ask(f"/memory unpin {weak}")
        faded = await talk.ask(f"/memory show {weak}")
        row = await talk.row(strong)
    assert weak in said and said.startswith(CATALOGUE["en"]["memory.pin.done"].partition("{")[0])
    assert weak in first and texts("memory.mark.pinned") in first
    marks = texts("memory.mark.pinned")
    lasts = texts("memory.lasts")
    assert texts("memory.weight", percent=100, fades=lasts, importance=5, marks=marks) in alone.splitlines()
    assert strong in confirmed and row["confirmed"] == 1 and row["pinned"] == 0
    assert weak in unpinned and texts("memory.weight", percent=0, fades="", importance=5, marks="") in faded


async def test_a_pinned_memory_leads_the_known_facts_at_the_next_turn(talk: Talk) -> None:
    async with talk.running():
        await talk.kept("the first thing")
        second = await talk.kept("the second thing")
        await talk.memory.database.write(
            lambda tx: tx.run("update memories set importance = 1 where short_id = ?", (second,))
        )
        await talk.ask("hm")
        before = talk.model.requests[-1].messages[1].content
        await talk.ask(f"/memory pin {second}")
        await talk.ask("hm")
        after = talk.model.requests[-1].messages[1].content
    assert before.index("the first thing") < before.index("the second thing")
    assert after.index("the second thing") < after.index("the first thing")


async def test_the_buttons_under_a_memory_do_what_they_say_in_its_message(talk: Talk) -> None:
    """Pressed, the message shows the memory as it is now; to forget it one is asked in a message of its own."""
    async with talk.running():
        tea = await talk.kept("I like tea")
        await talk.ask(f"/memory show {tea}")
        shown = str(talk.phone.last.id)
        pinned = await talk.press(talk.phone.button("Pin").data)
        places = [talk.phone.last.edits]
        assert "Pinned:" in pinned and ", pinned" in pinned
        assert [button.label for button in talk.phone.last.buttons] == ["Unpin", "That's right", "Forget"]
        right = await talk.press(talk.phone.button("That's right").data)
        assert "Confirmed:" in right
        assert [button.label for button in talk.phone.last.buttons] == ["Unpin", "Forget"]
        await talk.press(talk.phone.button("Forget").data)
        places.append(talk.phone.last.edits)
        assert places == [shown, None] and tea in talk.phone.last.text
        row = await talk.row(tea)
    assert (row["pinned"], row["confirmed"]) == (1, 1)


async def test_an_edit_keeps_the_old_version_and_shows_it(talk: Talk) -> None:
    async with talk.running():
        texts = Texts("en")
        tea = await talk.kept("I like tea")
        said = await talk.ask(f"/memory edit {tea} green tea")
        (new,) = await listed(talk)
        alone, history = await talk.ask(f"/memory show {tea}"), await talk.ask(f"/memory history {new.short_id}")
    assert new.value == "green tea" and new.short_id in said and tea in said
    assert texts("memory.history") in alone.splitlines() and texts("memory.history") in history.splitlines()
    assert all(one in history for one in (tea, new.short_id, "green tea"))


async def test_an_old_version_can_be_looked_at_and_nothing_else(talk: Talk) -> None:
    """The version that holds now has another id."""
    async with talk.running():
        tea = await talk.kept("I like tea")
        await talk.ask(f"/memory edit {tea} green tea")
        for action in ("pin", "unpin", "confirm"):
            assert await talk.ask(f"/memory {action} {tea}") == Texts("en")("correct.replaced", id=tea)
        await talk.ask(f"/memory show {tea}")
    assert [button.label for button in talk.phone.last.buttons] == ["Versions"]


#: All that takes an id, with what may stand behind it.
WITH_IDS = (
    "/memory show {id}", "/memory history {id}", "/memory pin {id}", "/memory unpin {id}", "/memory confirm {id}",
    "/memory tag {id} work", "/memory untag {id} work", "/memory edit {id} something else", "/correct {id} something else",
)  # fmt: skip


@pytest.mark.parametrize("command", WITH_IDS)
async def test_anothers_id_is_answered_exactly_like_an_unknown_one(talk: Talk, command: str) -> None:
    async with talk.running():
        secret = await talk.kept("my secret is safe", person="ada")
        ours = await talk.kept("our secret is safe", person="ada", chat="club")
        before = [await talk.row(short_id) for short_id in (secret, ours)]
        for theirs, chat in ((secret, None), (secret, "club"), (ours, None)):
            for do in (talk.ask, talk.press):
                run = "" if do == talk.ask else "run:"
                told = await do(run + command.format(id=theirs), person="bob", chat=chat)
                buttons = talk.phone.last.buttons
                unknown = await do(run + command.format(id="m_nosuch"), person="bob", chat=chat)
                assert told.replace(theirs, "m_nosuch") == unknown and "secret" not in told
                assert buttons == talk.phone.last.buttons == ()
        after = [await talk.row(short_id) for short_id in (secret, ours)]
    assert before == after


@pytest.mark.parametrize("action", ["pin", "unpin", "confirm"])
async def test_in_a_group_only_ones_own_is_changed(talk: Talk, action: str) -> None:
    """Everybody there sees it; whoever said it, or is meant, decides."""
    async with talk.running():
        chess = await talk.kept("I like chess", person="ada", chat="club")
        before = await talk.row(chess)
        told = await talk.ask(f"/memory {action} {chess}", person="bob", chat="club")
        assert told == Texts("en")("memory.not_yours", id=chess) and await talk.row(chess) == before
        await talk.ask(f"/memory show {chess}", person="bob", chat="club")
        assert talk.phone.last.buttons == () and "chess" in talk.phone.last.text
        assert chess in await talk.ask(f"/memory {action} {chess}", person="ada", chat="club")


async def test_a_message_of_a_group_is_linked_where_its_author_asks(talk: Talk) -> None:
    """In their own private chat a statement of theirs leads to the group; others' words are not shown there."""
    async with talk.running():
        await talk.ask("I like chess", person="ada", chat="club")
        context = await talk.memory.identities.context(*group("club", "ada"))
        await talk.memory.learner.flush(context.session.id, "test")
        (chess,) = [m for m in await talk.memory.browse.memories(context, limit=9) if m.value == "chess"]
        in_private = await talk.ask(f"/memory show {chess.short_id}", person="ada")
        by_bob = await talk.ask(f"/memory show {chess.short_id}", person="bob", chat="club")
    assert "From your message of" in in_private and "https://phone.example/club/" in in_private
    assert "From Ada's message of" in by_bob and "https://phone.example/club/" in by_bob


@pytest.mark.parametrize("moved", [False, True])
async def test_a_message_of_before_its_group_moved_has_no_link(talk: Talk, moved: bool) -> None:
    """A supergroup counts its messages anew: the old number would lead to what somebody else has said."""
    chat = "supers" if moved else "club"
    talk.phone.capabilities = replace(talk.phone.capabilities, direct=True)
    async with talk.running():
        await talk.ask("hello")
        await talk.ask("I like chess", chat="club")
        await talk.ask("the boat in the harbour is a blue one", chat="club")
        talk.clock.move(minutes=1)
        if moved:
            await talk.router.on_moved("console", "club", "supers")
        await talk.ask("I like rum", chat=chat)
        context = await talk.memory.identities.context(*group(chat, "ada"))
        await talk.memory.learner.flush(context.session.id, "test")
        found = {memory.value: memory.short_id for memory in await talk.memory.browse.memories(context, limit=9)}
        await talk.ask("/new", chat=chat)
        chess = await talk.ask(f"/memory show {found['chess']}", chat=chat)
        rum = await talk.ask(f"/memory show {found['rum']}", chat=chat)
        await talk.ask("which boat in the harbour is blue?", chat=chat)
        why = await talk.ask("/why", chat=chat)
    assert f"https://phone.example/{chat}/" in rum and "From your message" in chess and "boat" in why
    assert ("https://phone.example/" in chess) is not moved
    boat = next(line for line in why.splitlines() if "boat" in line)
    assert ("https://phone.example/" in boat) is not moved


# Learning -------------------------------------------------------------------------------------------------------


async def test_what_is_said_while_learning_is_off_is_never_learned(talk: Talk) -> None:
    """Not even once it is on again; what is asked to be kept is kept, as the text says."""
    async with talk.running():
        texts = Texts("en")
        context = await talk.context("ada")
        assert await talk.ask("/memory off") == texts("learning.off.private")
        await talk.ask("I live in Lisbon")
        assert texts("learning.is_off") in await talk.ask("/memory status")
        await talk.kept("I like tea")
        assert await talk.ask("/memory on") == texts("learning.on.private")
        await talk.ask("I work as a nurse")
        await talk.memory.learner.flush(context.session.id, "test")
        assert sorted(memory.value for memory in await listed(talk)) == ["nurse", "tea"]
        found = await talk.memory.browse.search(context, "Lisbon", limit=9)
    assert not [hit for hit in found if "Lisbon" in hit.text]


async def test_in_a_group_an_admin_switches_learning_for_all(talk: Talk) -> None:
    """And nobody else; a member is told what they can do for themselves."""
    talk.rules = Rules(open_to_all=True, admins=frozenset({"7"}))
    async with talk.running():
        texts = Texts("en")
        there = await talk.memory.identities.context(*group("club", "bob"))
        assert await talk.ask("/memory off", person="bob", chat="club") == texts("learning.admins")
        assert (await talk.memory.identities.context(*group("club", "bob"))).session.learning
        assert await talk.ask("/memory off", person="7", chat="club") == texts("learning.off.group")
        await talk.ask("I live in Porto", person="bob", chat="club")
        await talk.ask("I live in Lisbon", person="bob")
        private = await talk.context("bob")
        for context in (there, private):
            await talk.memory.learner.flush(context.session.id, "test")
        assert await talk.memory.browse.memories(there, limit=9) == []
        assert [memory.value for memory in await listed(talk, "bob")] == ["Lisbon"]


async def test_the_status_is_that_of_this_chat(talk: Talk) -> None:
    """Messages that wait for others are none of one's business, and hide what waits for oneself."""
    talk.model.answers = [paid("Hm."), paid("Hm."), paid("Hm.")]
    async with talk.running():
        await talk.ask("I live in Lisbon", person="bob")
        assert "unread messages" not in await talk.ask("/memory status", person="ada")
        await talk.ask("I live in Porto", person="ada")
        shown = await talk.ask("/memory status", person="ada")
        everywhere = (await talk.memory.stats.status(await talk.context("ada"))).tokens_in
    assert "unread messages: 1" in shown.splitlines()
    assert "1500 tokens today, cost 0.0250" in shown.splitlines()
    assert everywhere == 1_000


async def test_a_failure_to_read_is_told_where_it_happened(talk: Talk) -> None:
    """Who wonders why nothing is remembered finds the reason."""
    async with talk.running():
        await talk.ask("I live in Lisbon", person="ada")

        async def fails(code: str, state: str) -> None:
            await talk.memory.database.write(
                lambda tx: tx.run(
                    "insert into extractions (session_id, first_id, last_id, reason, state, attempts, not_before,"
                    " error, created_at) select session_id, id, id, 'test', ?, 1, ?, ?, 0 from messages limit 1",
                    (state, talk.clock(), code),
                )
            )

        await fails("model_failed", "pending")
        waiting = await talk.ask("/memory status")
        await fails("KeyError", "parked")
        parked = (await talk.ask("/memory list")).splitlines()[-1]
        other = await talk.ask("/memory status", person="bob")
    assert "last failure: the model could not be reached; next try 21 Nov 2026 12:00" in waiting.splitlines()
    assert "last failure: something went wrong on my side; batches given up: 1" in parked
    assert "failure" not in other


# All of it ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", LANGUAGES)
async def test_all_of_it_comes_as_files(tmp_path: Path, clock: Clock, language: Language) -> None:
    """One for people, one for programs; one's own in private, the group's in a group, nobody else's anywhere."""
    talk = Talk(tmp_path, Handset(file_bytes=1_000_000), clock)
    talk.phone.capabilities = replace(talk.phone.capabilities, direct=True)
    async with talk.running():
        texts = await speaks(talk, language, "ada", "bob")
        await talk.ask("I like tea")
        await talk.memory.learner.flush((await talk.context("ada")).session.id, "test")
        await talk.ask("it rains here")
        await talk.kept("I like beer", person="bob")
        await talk.kept("the club meets on Mondays", person="bob", chat="club")
        said = await talk.ask("/memory export")
        page, data = files(talk.phone)
        everything = await talk.ask(f"/memory export {'transcript' if language == 'en' else '全部'}")
        _, all_said = files(talk.phone)
        await talk.ask("/memory export", chat="club")
        await talk.router.settled(Place(channel="console", chat="ada"))
        assert [one.text for one in talk.phone.sent if one.place.chat == "club"][-1] == texts("private.sent")
        shared, _ = files(talk.phone)
        assert {one.place.chat for one in talk.phone.sent if one.file is not None} == {"ada"}
        assert await talk.ask("/memory export nonsense") == texts("command.usage", usage=usage_of("export"))
    assert said.startswith(texts("export.done", memories=1, messages=1)) and "tea" in page
    assert json.loads(data) and "tea" in data and "rains" not in data
    assert everything.startswith(texts("export.all", memories=1, messages=4)) and "rains" in all_said
    assert "beer" not in page + data + all_said + shared and "Mondays" not in page + data + all_said
    assert "Mondays" in shared and "tea" not in shared


async def test_what_a_whole_group_has_said_is_for_an_admin_to_take_out(tmp_path: Path, clock: Clock) -> None:
    """Whoever joined yesterday did not hear it; an admin gets it alone, and in private all have their own."""
    talk = Talk(tmp_path, Handset(file_bytes=1_000_000), clock)
    talk.phone.capabilities = replace(talk.phone.capabilities, hidden=True)
    talk.rules = Rules(open_to_all=True, admins=frozenset({"7"}))
    async with talk.running():
        texts = Texts("en")
        await talk.ask("the club meets on Mondays", person="bob", chat="club")

        async def slash(text: str, person: str) -> Outbound:
            inbound = replace(talk.inbound(text, person=person, chat="club"), ticket="t")
            await talk.router.on_inbound(inbound)
            await talk.router.settled(inbound.place)
            return talk.phone.last

        assert (await slash("/memory export transcript", "ada")).text == texts("export.admins")
        assert not [one for one in talk.phone.sent if one.file is not None]
        last = await slash("/memory export transcript", "7")
        assert last.file is not None and b"Mondays" in last.file.data and last.ticket == "t"
        shown = len(talk.phone.sent)
        assert await talk.ask("/memory export", chat="club") == texts("private.hidden")
        assert len(talk.phone.sent) == shown + 1
        assert (await talk.ask("/memory export transcript")).startswith(texts("export.all", memories=0, messages=0))


def files(phone: Handset) -> tuple[str, str]:
    page, data = [one.file for one in phone.sent if one.file is not None][-2:]
    assert page is not None and data is not None and (page.name, data.name) == ("remora.md", "remora.json")
    return page.data.decode(), data.data.decode()


@pytest.mark.parametrize(("file_bytes", "told"), [(0, "export.no_files"), (50, "export.too_large")])
async def test_where_no_file_can_be_shown_it_is_said_how_else(
    tmp_path: Path, clock: Clock, file_bytes: int, told: str
) -> None:
    """Silence would look as if there were nothing."""
    talk = Talk(tmp_path, Handset(file_bytes=file_bytes), clock)
    async with talk.running():
        await talk.kept("I like tea")
        assert await talk.ask("/memory export") == Texts("en")(told)
    assert talk.phone.last.file is None


NO_SUCH = (
    "There is no memory with the id m_nosuch here. /memory list shows the ids, and /memory search finds memories by"
    " words."
)
NO_CODE = (
    "“discord” is not a code; a code looks like CDFG-2345. /link alone makes one, which you then send me from your"
    " other account."
)


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("/memory edit", "Usage: /memory edit <id> <new text>\n/memory list shows the ids."),
        ("/memory show", "Usage: /memory show <id>\n/memory list shows the ids."),
        ("/memory undo", "Usage: /memory undo <number>\n/memory runs shows the numbers."),
        ("/memory 99", "There is no page 99. There is only one page."),
        ("/why m_nosuch", NO_SUCH),
        ("/link discord", NO_CODE),
        ("/privacy off", "Usage: /privacy [out|in|about off|about on|followups on [hours]|followups off|looks [page]|delete]\nExamples:\n{example.privacy}"),
        ("/memory export nonsense", "Usage: /memory export [transcript]"),
        ("/memory serch tea", "/memory has no “serch”. Did you mean /memory search? /help memory lists all it can do."),
        ("/memory list 99", "There is no page 99. There is only one page."),
        ("/memory list facts 7", "There is no page 7. There is only one page."),
        ("/correct", "Usage: /correct <id> <new text>\n/memory list shows the ids."),
        ("/correct m_nosuch", NO_SUCH),
        ("/help memory edit", "/memory edit <id> <new text> – correct a memory"),
        ("/help /CORRECT", "/correct <id> <new text> – {help.correct}\nExamples:\n  /correct m_7k2pq4 walnuts"),
        ("/help jobs", "There is no command /jobs. /help lists all commands."),
        ("/help admin", "There is no command /admin. /help lists all commands."),
        ("/help wyh", "There is no command /wyh. Did you mean /why? /help lists all commands."),
        ("/help memry", "There is no command /memry. Did you mean /memory? /help lists all commands."),
    ],
)  # fmt: skip
async def test_a_mistake_is_answered_with_what_was_meant(talk: Talk, typed: str, answer: str) -> None:
    """And not with everything that the command can do."""
    async with talk.running():
        await talk.kept("I like tea")
        examples = Texts("en")("example.privacy").replace("\n", "\n  ")
        wanted = answer.replace("{help.correct}", Texts("en")("help.correct"))
        assert await talk.ask(typed) == wanted.replace("{example.privacy}", f"  {examples}")


async def test_a_correction_without_its_text_asks_for_it(talk: Talk) -> None:
    async with talk.running():
        short_id = await talk.kept("I like tea")
        for command in ("/correct", "/memory edit"):
            asked = f"What should {short_id} say? Now it says: tea\nType: {command} {short_id} <new text>"
            assert await talk.ask(f"{command} {short_id}") == asked


# Why ------------------------------------------------------------------------------------------------------------


def paid(text: str) -> Completion:
    return replace(says(text), usage=Usage(input_tokens=1_000, output_tokens=500, cached_tokens=100, cost=0.025))


async def test_why_tells_profile_known_facts_finds_and_cost(talk: Talk) -> None:
    """Promise 6, in words: what entered the reply, how it was found, what it took."""
    talk.model.answers = [paid("Hm."), paid("The blue one.")]
    async with talk.running():
        texts = Texts("en")
        await talk.ask("Remember that locker 300 is blue")
        await talk.memory.learner.flush((await talk.context("ada")).session.id, "test")
        await talk.ask("/profile manner Be kind.")
        for n in range(60):
            await talk.kept(f"locker {n} is red")
        await talk.ask("/new")
        await talk.ask("what colour is locker 300?")
        shown = (await talk.ask("/why all")).splitlines()
    assert shown[0] == texts("why.head", at=texts.moment(talk.clock()))
    groups = [shown.index(texts(f"why.{name}")) for name in ("profile", "known", "found")]
    assert groups == sorted(groups)
    assert any("Be kind." in line for line in shown[groups[0] : groups[1]])
    assert len(shown[groups[1] : groups[2]]) == 14 and "  " + texts("why.more", count=38) in shown
    blue = next(line for line in shown[groups[2] :] if "locker 300 is blue" in line)
    assert texts("part.words") in blue and texts("why.score", score="", parts="").strip() in blue
    assert any("https://phone.example/ada/" in line for line in shown[groups[2] :])
    cost = texts(
        "why.cost", model="scripted/model", about="", tokens_in=1_000, tokens_out=500,
        cached=texts("why.cached", count=100), cost=texts("cost.also", cost="0.0250"),
    )  # fmt: skip
    assert shown[-1] == cost


async def test_why_is_short_and_shows_the_rest_when_asked(talk: Talk) -> None:
    """The memories that mattered most, when they were told, and how to see everything."""
    talk.model.answers = ["Hm."]
    async with talk.running():
        texts = Texts("en")
        for n in range(60):
            await talk.kept(f"locker {n} is red")
        await talk.ask("what colour is locker 30?")
        shown = (await talk.ask("/why")).splitlines()
        everything = (await talk.ask("/why all")).splitlines()
        assert (await talk.ask("/memory why all")).splitlines() == everything
    assert len(shown) == 5 and shown[0] == everything[0]
    assert texts("memory.came.told", date=texts.date(talk.clock())) in shown[1]
    assert "locker 30 is red" in shown[1]
    assert "/why all" in shown[4] and texts("why.score", score="", parts="").strip() not in "\n".join(shown)
    assert len(everything) > 10


async def test_why_of_an_earlier_reply_is_asked_by_answering_it(talk: Talk) -> None:
    """Or by answering the message it was for. Another chat's ids mean nothing here."""
    async with talk.running():
        await talk.ask("I like tea")
        first, said = str(talk.phone.last.id), str(int(talk.inbound("x").update_key) - 1)
        await talk.memory.learner.flush((await talk.context("ada")).session.id, "test")
        talk.clock.move(minutes=10)
        await talk.ask("what do I like?")
        second = str(talk.phone.last.id)
        assert "tea" in await talk.ask("/why")
        assert "tea" in await talk.ask("/why", reply_to=second)
        for earlier in (first, said):
            shown = await talk.ask("/why", reply_to=earlier)
            assert shown.startswith("My reply of 21 Nov 2026 12:00 used nothing from memory")
        nothing = await talk.ask("/why", reply_to=str(talk.phone.last.id))
        assert nothing == Texts("en")("why.no_answer")
        assert await talk.ask("/why", reply_to=second, person="bob") == Texts("en")("why.no_answer")
        assert await talk.ask("/why", person="bob") == Texts("en")("why.none")


async def test_why_in_a_group_is_answered_there_and_shows_only_what_is_the_groups(talk: Talk) -> None:
    """Else the private chat would hold another member's words, and nobody in the group learns what was used."""
    talk.phone.capabilities = replace(talk.phone.capabilities, direct=True)
    async with talk.running():
        await talk.ask("my own boat is a green one")
        await talk.ask("the boat in the harbour is a blue one", chat="club", person="bob")
        await talk.ask("/new", chat="club")
        await talk.ask("which boat in the harbour is blue?", chat="club")
        for typed in ("/why", "/why all", "/memory why"):
            shown = await talk.ask(typed, chat="club")
            assert "boat in the harbour" in shown and "green" not in shown and "tokens in" not in shown
    assert not [one for one in talk.phone.sent if one.place.chat == "ada" and "harbour" in one.text]


async def test_why_says_that_the_reply_was_a_failure(talk: Talk) -> None:
    talk.model.answers = [ModelUnavailable("gone")]
    async with talk.running():
        await talk.ask("hello")
        shown = await talk.ask("/memory why")
    assert shown.startswith("My reply of 21 Nov 2026 12:00 was only an error notice")
    assert "model_unavailable" in shown


async def test_why_shows_nothing_that_was_forgotten(talk: Talk) -> None:
    """Recall records hold ids; what they named is gone."""
    async with talk.running():
        short_id = await talk.kept("I like tea")
        await talk.ask("hm")
        assert "tea" in await talk.ask("/why")
        row = await talk.row(short_id)
        context = await talk.context("ada")
        await forgotten_alone(talk.memory, context, int(str(row["id"])))
        shown = await talk.ask("/why all")
    assert "tea" not in shown and Texts("en")("why.forgotten") in shown


async def test_why_marks_what_is_outdated_and_names_what_holds_now(talk: Talk) -> None:
    """However often it was put right since; what replaced it may be gone."""
    async with talk.running():
        texts = Texts("en")
        tea = await talk.kept("I like tea")
        await talk.ask("hm")
        before = await why_of(talk, tea)
        talk.clock.move(days=1)
        for value in ("green tea", "white tea"):
            await talk.ask(f"/correct {(await listed(talk))[0].short_id} {value}")
        (white,) = await listed(talk)
        until = texts.date(talk.clock())
        after = await why_of(talk, tea)
        await talk.memory.database.write(lambda tx: tx.run("update memories set superseded_by = null"))
        alone = await why_of(talk, tea)
    assert texts("why.outdated", until="").split()[0] not in before
    assert texts("why.replaced", until=until, id=white.short_id) in after
    assert texts("why.outdated", until=until) in alone and white.short_id not in alone


async def why_of(talk: Talk, short_id: str) -> str:
    return next(line for line in (await talk.ask("/why all")).splitlines() if short_id in line)


def test_every_part_of_a_score_has_a_word() -> None:
    """A new signal without one would be left out of the reason, or be an error on the page."""
    for language in CATALOGUE:
        assert [name for name in (*SUMMANDS, *FACTORS) if f"part.{name}" not in CATALOGUE[language]] == []


async def test_a_part_that_another_version_stored_is_left_out(talk: Talk) -> None:
    """Rows outlive the search that made them; one unknown name must not hide the whole reason."""
    async with talk.running():
        for n in range(60):
            await talk.kept(f"locker {n} is red")
        await talk.ask("/new")
        await talk.ask("what colour is locker 30?")
        odd = json.dumps({"nearness": 0.07, "words": 0.4, "late": None, "recency": "1.1", "agent": 0.6})
        await talk.memory.database.write(lambda tx: tx.run("update recalls set parts = ?", (odd,)))
        shown = await talk.ask("/why all")
    assert "(words 0.40, × 0.60 for my own words)" in shown


# Profile --------------------------------------------------------------------------------------------------------


async def test_a_profile_names_the_memories_it_is_made_of(talk: Talk) -> None:
    """To put a slot right one corrects what it is made of."""
    async with talk.running():
        tea = await talk.kept("I like tea")
        shown = (await talk.ask("/profile")).splitlines()
    assert f"likes: tea (from {tea})" in shown
    assert shown[-1] == "Language: the one you write in. Timezone: UTC, my own, because you have not set one."


async def test_language_and_timezone_are_settings_that_last(talk: Talk) -> None:
    """Over a restart, on every platform of the person, and no memory says so."""
    async with talk.running():
        said = await talk.ask("/profile timezone berlin")
        assert said == "Your timezone is now Europe/Berlin. It is 21 Nov 2026 13:00 there."
        assert await talk.ask("/profile language 中文") == Texts("zh")("profile.language.done")
    async with talk.running():
        shown = (await talk.ask("/profile")).splitlines()
        assert shown[-1] == "语言：中文。时区：Europe/Berlin。"
        assert await listed(talk) == []
        assert await talk.ask("/profile timezone auto") == Texts("zh")("profile.timezone.auto", timezone="UTC")
        await talk.ask("/profile language auto")
        assert (await talk.ask("/profile")).endswith(
            "Language: the one you write in. Timezone: UTC, my own, because you have not set one."
        )


@pytest.mark.parametrize(
    "typed", ["timezone Mars/Phobos", "timezone ../etc", "timezone Europe", "language tlh", "language " + "x" * 500]
)
async def test_what_can_t_be_set_is_said_with_what_can(talk: Talk, typed: str) -> None:
    async with talk.running():
        before = (await talk.context("ada")).speaker
        said = await talk.ask(f"/profile {typed}")
        assert (await talk.context("ada")).speaker == before
    assert ("zh" in said) if "language" in typed else ("/" in said)
    assert len(said) < 300


async def test_a_near_timezone_is_named(talk: Talk) -> None:
    async with talk.running():
        assert "Did you mean Asia/Shanghai" in await talk.ask("/profile timezone Asia/Shanhai")


async def test_a_name_is_remembered_like_any_other_statement(talk: Talk) -> None:
    async with talk.running():
        said = await talk.ask("/profile name Ada Lovelace")
        await talk.ask("/profile name Countess")
        assert said.startswith("Saved (m_") and "Ada Lovelace" in said
        assert [memory.value for memory in await listed(talk)] == ["Countess"]
        assert "name: Countess" in await talk.ask("/profile")


async def test_a_profile_is_not_shown_in_a_group(talk: Talk) -> None:
    async with talk.running():
        await talk.kept("I like tea")
        for typed in ("/profile", "/profile timezone Europe/Berlin"):
            assert await talk.ask(typed, chat="club") == Texts("en")("profile.private")
        assert (await talk.context("ada")).speaker.timezone is None


# Searches -------------------------------------------------------------------------------------------------------


async def test_what_was_found_by_its_time_is_no_near_miss(talk: Talk) -> None:
    """Nor are the messages of that day left out, which have none of the words."""
    async with talk.running():
        await talk.kept("I live in Lisbon")
        await talk.ask("the boat in the harbour is a blue one")
        talk.clock.move(days=1)
        shown = await talk.ask("/memory search yesterday")
    assert shown.startswith("Found:\n") and "Lisbon" in shown and "boat" in shown


# Receipts -------------------------------------------------------------------------------------------------------

_NOTE = {"en": "to remember", "zh": "要记住"}


async def test_receipts_of_a_note_say_its_bare_words(talk: Talk) -> None:
    """ "Saved: to remember: the bin is green" reads as if it were still to be done."""
    async with talk.running():
        texts = Texts("en")
        said = await talk.ask("/remember the bin is green")
        (bin_,) = await listed(talk)
        told = [await talk.ask(f"/memory {action} {bin_.short_id}") for action in ("pin", "unpin", "confirm")]
        corrected = await talk.ask(f"/correct {bin_.short_id} the bin is brown")
        two = await talk.ask("/remember I like tea. I live in Lisbon")
    assert said == texts("remember.done", id=bin_.short_id, said="the bin is green")
    for key, text in zip(("pin", "unpin", "confirm"), told, strict=True):
        assert text == texts(f"memory.{key}.done", id=bin_.short_id, said="the bin is green")
    assert "the bin is brown" in corrected and "the bin is green" in corrected
    assert _NOTE["en"] not in "".join([said, *told, corrected])
    assert len(two.splitlines()) == 2 and all(_ID.search(line) for line in two.splitlines())


#: Texts that say of a memory that it is kept, and where they are said: inside the transaction that holds the row.
SAVED = {"remember.done": "gateway.commands.memory.keep, of the rows that Desk.remember has returned"}
#: Texts that say so of a message: it is in the inbox, or in history, before anything is said.
MESSAGE_KEPT = re.compile(r"(?:error|stop|allowance\.over)\.")


def test_saved_is_said_only_where_a_row_is() -> None:
    """A new text with such a word has to say here what it stands on."""
    claims = re.compile(r"\b(?:saved|noted|i(?:'ll| will) remember)\b|已保存|已记住|记下了", re.IGNORECASE)
    found = {
        key.removeprefix("on_page.")
        for language in CATALOGUE
        for key, text in CATALOGUE[language].items()
        if claims.search(text) and not MESSAGE_KEPT.match(key)
    }
    assert found == set(SAVED)
    for key in SAVED:
        assert [path.name for path in COMMANDS.rglob("*.py") if f'"{key}"' in path.read_text("utf-8")] == ["memory.py"]
    # To a model it is said by one tool, of rows that are committed with the tool's own result.
    assert Path(toolbox.__file__).read_text("utf-8").count('"Saved: ') == 1


async def test_nothing_is_said_to_be_saved_that_is_not(talk: Talk) -> None:
    """Junk is refused in so many words, and there is no row."""
    async with talk.running():
        assert await talk.ask("/remember ...") == Texts("en")("remember.nothing")
        assert await talk.ask("/profile name 17") == Texts("en")("remember.nothing")
        assert await listed(talk) == []


async def test_what_a_person_tags_is_found_by_its_tag_and_by_its_key(talk: Talk) -> None:
    """In any case; the tag stays through a correction, and goes when it is taken away."""
    async with talk.running():
        texts = Texts("en")
        tea, bike = await talk.kept("I like tea"), await talk.kept("the bike is green")
        tagged = await talk.ask(f"/memory tag {tea} Work #Deep-Focus")
        by_tag, by_key = await talk.ask("/memory search TAG:work"), await talk.ask("/memory list key:Likes")
        await talk.ask(f"/memory edit {tea} green tea")
        corrected = await talk.ask("/memory list tag:deep-focus")
        [new] = [row for row in await listed(talk) if row.value == "green tea"]
        untagged = await talk.ask(f"/memory untag {new.short_id} work")
        nothing = await talk.ask("/memory search tag:play")
        unknown = await talk.ask("/memory search key:lkes")
        many = await talk.ask(f"/memory tag {bike} " + " ".join(f"t{n}" for n in range(9)))
        none = await talk.row(bike)
    assert "#work #deep-focus" in tagged
    assert tea in by_tag and "#work" in by_tag and bike not in by_tag and tea in by_key and bike not in by_key
    assert new.short_id in corrected and new.tags == ("work", "deep-focus")
    assert "#deep-focus" in untagged and "#work" not in untagged
    known = texts("filter.known_tags", known="deep-focus")
    assert nothing == texts("filter.no_label", name="tag", value="play", known=known)
    assert unknown == texts(
        "filter.no_label", name="key", value="lkes", known=texts("filter.known_keys", known="likes, note")
    )
    assert many == texts("memory.tag.full", id=bike, most=8) and none["tags"] == "[]"


@pytest.mark.parametrize("query", ["locker key: blue door", "locker clave: blue door", "tag:locker blue door"])
async def test_key_and_tag_before_a_colon_are_words_unless_they_name_one(talk: Talk, query: str) -> None:
    async with talk.running():
        short_id = await talk.kept("the locker key hangs behind the blue door")
        found, asked = await talk.ask(f"/memory search {query}"), await talk.ask(f"/forget {query}")
    assert short_id in found and "blue door" in asked


async def test_where_there_are_no_keys_the_answer_says_so_and_names_the_filter_as_it_was_typed(talk: Talk) -> None:
    async with talk.running():
        answer = await talk.ask("/memory list clé:maison")
    texts = Texts("en")
    assert answer == texts("filter.no_label", name="clé", value="maison", known=texts("filter.no_keys"))


async def test_a_value_that_replaces_another_of_its_key_takes_its_tags_over(talk: Talk) -> None:
    async with talk.running():
        lisbon = await talk.kept("I live in Lisbon")
        await talk.ask(f"/memory tag {lisbon} base")
        porto = await talk.kept("I live in Porto")
        tagged, asked = await talk.ask("/memory search tag:base"), await talk.ask("/forget tag:base")
        await talk.ask("no")
        await talk.ask(f"/memory untag {porto} base")
        untagged, nothing = await talk.ask("/memory search tag:base"), await talk.ask("/forget tag:base")
    texts = Texts("en")
    assert porto in tagged and "#base" in tagged and "Porto" in asked
    assert untagged == nothing == texts("filter.no_label", name="tag", value="base", known=texts("filter.no_tags"))


async def test_in_a_group_nobody_sees_the_tags_of_others(talk: Talk) -> None:
    async with talk.running():
        saved = await talk.ask("/remember the bike is blue", chat="garden")
        [short_id] = _ID.findall(saved)
        tagged = await talk.ask(f"/memory tag {short_id} secretgift", chat="garden")
        mine = await talk.ask("/memory list", chat="garden")
        theirs = await talk.ask("/memory list", person="bob", chat="garden")
        shown = await talk.ask(f"/memory show {short_id}", person="bob", chat="garden")
        searched = await talk.ask("/memory list tag:gift", person="bob", chat="garden")
    assert "#secretgift" in tagged and "#secretgift" in mine
    assert short_id in theirs and not any("secretgift" in text for text in (theirs, shown, searched))


async def test_tags_are_split_alike_and_what_can_be_none_is_said(talk: Talk) -> None:
    async with talk.running():
        tea = await talk.kept("I like tea")
        tagged = await talk.ask(f'/memory tag {tea} "new york", #work;play “deep focus”')
        refused = await talk.ask(f"/memory tag {tea} C++ fine 🎉 {'x' * 41} password: sk-abc")
        row = await talk.row(tea)
    assert "#new-york #work #play #deep-focus" in tagged
    assert f": C++, 🎉, {'x' * 41}, password:" in refused and "fine" not in refused
    assert json.loads(str(row["tags"])) == ["new-york", "work", "play", "deep-focus"]
