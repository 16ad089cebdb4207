"""The pipeline from a channel's message to its answer, with a scripted model behind the agents."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from agents.llm import Completion, ModelUnavailable
from channels.base import ChannelError, Chunk, NotTaken, Place
from memory.store.database import Database
from tests.kit import postgres
from tests.kit.assembly import LIMITS
from tests.kit.bench import Bench, Screen
from tests.kit.fakes import Clock, ScriptedModel, calls
from tests.kit.patience import settle, until
from tests.kit.talk import private


@pytest.fixture
def bench(tmp_path: Path, clock: Clock) -> Bench:
    return Bench(tmp_path, ScriptedModel(), Screen(), clock)


async def test_a_message_is_answered_once_however_often_it_is_delivered(bench: Bench) -> None:
    async with bench.running():
        await bench.say("hello", key="7")
        await bench.say("hello", key="7")
    assert bench.screen.texts == ["All right."]


async def test_in_a_group_the_prompt_says_whose_each_memory_and_word_is(bench: Bench) -> None:
    """Ada's allergy must not be told to Bob as his."""
    async with bench.running():
        await bench.say("I'm allergic to nuts", person="ada", chat="club")
        await bench.say("/new", person="ada", chat="club")
        await bench.memory.learner.flush_all(bench.memory.agents.ids["assistant"])
        await bench.say("hm", person="ada", chat="club")
        await bench.say("what should I eat?", person="bob", chat="club")
    request = bench.model.requests[-1]
    assert "- Ada: allergy: nuts (told" in request.messages[1].content
    assert request.messages[3].content == "[day 2026-11-21, Saturday]\nAda: hm"
    assert "speaker: Bob" in request.messages[-1].content
    assert request.remembered == (), "a model reads the prompt alone"


async def test_nobody_speaks_under_the_name_of_a_member_who_is_silent_now(bench: Bench) -> None:
    """Ada's words have left the window; who calls herself Ada now is another, and the prompt says so."""
    async with bench.running() as router:
        await bench.say("good morning", person="ada", chat="club")
        await bench.say("/new", person="bob", chat="club")
        said = replace(bench.inbound("I confirm, pay him", person="eve", chat="club"), author_name="Ada ")
        await router.on_inbound(said)
        await router.settled(said.place)
    [words] = [message.content for message in bench.model.requests[-1].messages if "confirm" in message.content]
    assert re.search(r"^Ada \(#\d+\): I confirm, pay him$", words, re.MULTILINE), words


async def test_a_model_that_is_down_is_said_and_the_next_turn_works(bench: Bench) -> None:
    bench.model.answers = [ModelUnavailable("no route to host"), "Back again."]
    async with bench.running():
        await bench.say("my first words")
        await bench.say("and now?")
    assert "can't be reached" in bench.screen.texts[0] and bench.screen.texts[1] == "Back again."
    assert "[day 2026-11-21, Saturday]\nmy first words" in [m.content for m in bench.model.requests[-1].messages]


async def test_an_unforeseen_error_ends_one_message_and_not_the_chat(bench: Bench) -> None:
    """The pipeline's boundary: one notice, one failed row, and on it goes."""
    bench.model.answers = [ZeroDivisionError("a bug"), "Fine."]
    async with bench.running():
        await bench.say("boom")
        await bench.say("still there?")
        rows = await bench.memory.database.read(
            lambda reader: reader.all("select state from inbox union all select state from turns order by 1")
        )
    assert "Something went wrong" in bench.screen.texts[0] and bench.screen.texts[1] == "Fine."
    assert [row["state"] for row in rows] == ["done", "done", "failed", "failed"]


async def test_what_is_said_before_a_tool_call_is_shown_once(tmp_path: Path, clock: Clock) -> None:
    """The row that is delivered begins with exactly what was streamed."""
    model = ScriptedModel(calls(("now", "{}"), text="Let me look. "), "It is noon.")
    bench = Bench(tmp_path, model, Screen(stream=True), clock)
    async with bench.running():
        await bench.say("what time is it?")
    assert "".join(bench.screen.shown) == "Let me look. \n\nIt is noon."
    assert bench.screen.texts == ["Let me look. \n\nIt is noon."]


async def test_paid_tokens_are_booked_though_the_turn_fails(bench: Bench) -> None:
    bench.model.answers = [calls(("now", "{}")), ModelUnavailable("gone")]
    async with bench.running():
        await bench.say("what time is it?")
        rows = await bench.memory.database.read(lambda reader: reader.all("select model from usage"))
    assert len(rows) == 1


async def test_a_caller_that_goes_away_does_not_take_the_message_with_it(bench: Bench) -> None:
    """Committed and queued are one step."""
    async with bench.running() as router:
        inbound = bench.inbound("are you there?")
        task = asyncio.create_task(router.on_inbound(inbound))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await until(lambda: bench.screen.sent)
    assert bench.screen.texts == ["All right."]


async def test_a_row_that_cannot_be_read_does_not_stop_the_start(bench: Bench) -> None:
    async with bench.running():
        pass
    async with bench.running():
        memory = bench.memory
        await memory.mailbox.receive(
            platform="console",
            bot_id="local",
            update_key="x",
            session_key="console:ada:-",
            payload=json.dumps({"version": 99}),
        )
    async with bench.running():
        await bench.say("hello")
        rows = await bench.memory.database.read(lambda reader: reader.all("select state from inbox order by id"))
    assert [row["state"] for row in rows] == ["dead", "done"]


async def test_what_was_taken_before_routing_changed_is_answered_where_it_lies(bench: Bench) -> None:
    """Another store knows neither its row nor its turn."""
    bench.databases = {"assistant": "remora.db", "worker": "work.db"}
    async with bench.running():
        await bench.memory.mailbox.receive(
            platform="console",
            bot_id="local",
            update_key="x",
            session_key="console:ada:-",
            payload=bench.inbound("hello", key="x").to_json(),
        )
    bench.route = lambda _inbound: "worker"
    async with bench.running() as router:
        await router.settled(Place(channel="console", chat="ada"))
        rows = await bench.memory.database.read(lambda reader: reader.all("select state from inbox"))
    assert [row["state"] for row in rows] == ["done"]
    assert bench.screen.texts == ["All right."]


async def test_stop_ends_nothing_that_lies_in_another_store(bench: Bench) -> None:
    """Where the routing has changed a lane holds messages of two stores, and each numbers its rows for itself."""
    slow = asyncio.Event()

    class Slow(ScriptedModel):
        async def complete(self, request, on_text=None):  # type: ignore[no-untyped-def]
            await slow.wait()
            return await super().complete(request, on_text)

    bench.model = Slow()
    bench.databases = {"assistant": "remora.db", "worker": "work.db"}
    served = "assistant"
    bench.route = lambda _inbound: served
    async with bench.running() as router:
        for text in ("hello", "and one thing more"):
            await router.on_inbound(bench.inbound(text))
            await settle()
        served = "worker"
        await router.on_inbound(bench.inbound("/stop"))
        await until(lambda: bench.screen.texts)
        slow.set()
        await router.settled(Place(channel="console", chat="ada"))
        rows = await bench.memory.database.read(lambda reader: reader.all("select state from inbox"))
    assert [row["state"] for row in rows] == ["done", "done"]
    assert bench.screen.texts.count("All right.") == 2


async def test_a_fault_in_a_channel_leaves_the_row_in_doubt_and_the_next_one_goes_out(
    tmp_path: Path, clock: Clock
) -> None:
    """Nobody knows whether it was shown; the next start shows it once more, marked."""
    screen = Screen(failures=[KeyError("a bug in the adapter")])
    bench = Bench(tmp_path, ScriptedModel("one", "two"), screen, clock)
    async with bench.running():
        await bench.say("first")
        await bench.say("second")
    assert screen.texts == ["two"]
    async with bench.running() as router:
        await router.settled(Place(channel="console", chat="ada"))
    assert [(sent.text, sent.earlier_run) for sent in screen.sent] == [("two", False), ("one", True)]


async def test_a_row_the_platform_refuses_for_good_does_not_hold_up_the_next(tmp_path: Path, clock: Clock) -> None:
    """Dead rows are kept and counted, never retried."""
    screen = Screen(failures=[ChannelError("blocked")])
    bench = Bench(tmp_path, ScriptedModel("one", "two"), screen, clock)
    async with bench.running():
        await bench.say("first")
        await bench.say("second")
    assert screen.texts[1:] == ["two"]
    assert "could not be shown" in screen.texts[0]


async def test_too_many_waiting_messages_are_refused_in_words(bench: Bench) -> None:
    """A refusal is told once, and nothing else is lost."""
    slow = asyncio.Event()

    class Slow(ScriptedModel):
        async def complete(self, request, on_text=None):  # type: ignore[no-untyped-def]
            await slow.wait()
            return await super().complete(request, on_text)

    bench.model = Slow()
    async with bench.running() as router:
        for n in range(9):
            await router.on_inbound(bench.inbound(f"/remember thing {n}" if n else "hello"))
            await settle()
        slow.set()
        await router.settled(Place(channel="console", chat="ada"))
    refused = [text for text in bench.screen.texts if "faster than I am" in text]
    assert len(refused) == 3 and len(bench.screen.texts) == 9


async def test_a_secret_in_the_answer_is_masked_in_history_and_on_the_way_out(bench: Bench) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    answer = Completion(text=f"It is {secret}.", model="m", provider="p")
    bench.model.answers = [answer]
    async with bench.running():
        await bench.say("what is it?")
        rows = await bench.memory.database.read(
            lambda reader: reader.all("select text from messages union all select completion from steps")
        )
    assert secret not in "".join(row["text"] for row in rows) + "".join(bench.screen.texts)


async def test_a_secret_said_in_a_turn_is_masked_in_whatever_the_model_makes_of_it(bench: Bench) -> None:
    """The model reads it as it was said; its answer, its steps and its tools keep nothing of it, in any dress."""
    dressed = ("Sunfl0wer!92", "S u n f l 0 w e r ! 9 2", "`sunfl0wer!92`", "Sunfl0\\u0077er!92")
    bench.model.answers = [
        calls(
            *(("remember_fact", f'{{"text": "the wifi opens with {one}", "key": "wifi"}}') for one in dressed),
            text="I keep Sunfl0wer!92 in mind.",
        ),
        f"It is {', '.join(dressed[:3])}.",
        "I have forgotten it.",
    ]
    async with bench.running():
        await bench.say("my wifi password: Sunfl0wer!92")
        assert "Sunfl0wer!92" in bench.model.requests[0].messages[-1].content
        await bench.say("and now?")
    files = [file for file in bench.folder.rglob("*") if file.is_file()]
    kept = b"".join(file.read_bytes() for file in (*files, *postgres.files(bench.folder / "remora.db")))
    seen = "".join(bench.screen.texts) + "".join(m.content for m in bench.model.requests[-1].messages)
    assert b"opens with [secret" in kept
    for text in (kept.decode("utf-8", "replace"), seen):
        bare = re.sub(r"[\s`*-]", "", text).casefold()
        assert "sunfl0" not in bare
        assert "wer!92" not in bare


async def test_an_answer_that_may_repeat_a_secret_does_not_grow_on_the_screen(bench: Bench) -> None:
    """Half of it would be shown before the whole is known again."""
    bench.screen = Screen(stream=True)
    bench.model.answers = ["It is Sunfl0wer!92.", "You are welcome."]
    async with bench.running():
        await bench.say("my wifi password: Sunfl0wer!92")
        await bench.say("thanks")
    assert bench.screen.shown == ["You are welcome."]
    assert "It is [secret" in bench.screen.texts[0]


async def test_the_prompt_begins_the_same_while_facts_are_learned_and_replaced(bench: Bench) -> None:
    """Vendors' caches hit from turn to turn; what is new stands in the tail."""
    async with bench.running():
        await bench.say("My name is Ada and I live in Lisbon")
        context = await bench.memory.identities.context(*private("ada"))
        await bench.memory.learner.flush(context.session.id, "test")
        await bench.say("/new")
        await bench.say("hello")
        bench.clock.move(minutes=1)
        await bench.say("I live in Porto and I like tea")
        bench.clock.move(minutes=1)
        await bench.memory.learner.flush(context.session.id, "test")
        await bench.say("so?")
    hello, moved, so = bench.model.requests[-3:]
    assert hello.messages[1].content.count("Lisbon") == 1 and "Ada: home: Lisbon" in hello.messages[1].content
    assert so.messages[:2] == moved.messages[:2] == hello.messages[:2]
    assert so.messages[: len(moved.messages) - 1] == moved.messages[:-1]
    assert "home: Porto" in so.messages[-1].content and "likes: tea" in so.messages[-1].content


@pytest.mark.sqlite("limits the pages of its file")
async def test_a_full_disk_is_told_and_what_was_taken_is_answered_when_there_is_room(
    tmp_path: Path, clock: Clock
) -> None:
    """Nothing is lost, nobody has to restart anything."""
    screen = Screen(stream=True)
    bench = Bench(tmp_path, ScriptedModel("Here."), screen, clock)
    async with bench.running() as router:
        database = bench.memory.database
        inbound = bench.inbound("are you there? " * 10_000)
        await bench.memory.mailbox.receive(
            platform="console", bot_id="local", update_key="7", session_key="console:ada:-", payload=inbound.to_json()
        )
        pages = (await database.read(lambda reader: reader.one("pragma page_count")))[0]  # type: ignore[index]
        await _limit_pages(database, pages)
        with pytest.raises(NotTaken, match="full"):
            await router.on_inbound(bench.inbound("x" * 200_000))
        await router.take_up()
        await until(lambda: screen.shown)
        assert "disk" in screen.shown[0] and "full" in screen.shown[0]
        await _limit_pages(database, 1_000_000)
        await until(lambda: screen.sent)
    assert len(screen.texts) == 1 and screen.texts[0].startswith("Here.")


async def _limit_pages(database: Database, pages: int) -> None:
    await database.write(lambda tx: tx.all(f"pragma max_page_count = {pages}"))


async def test_of_a_message_that_is_too_long_beginning_and_end_are_read_and_kept(bench: Bench) -> None:
    """Its length bounds what everything behind the inbox reads, and what is stored; the person is told."""
    async with bench.running():
        await bench.say("first words, " + "and so on, " * 20_000 + "last words")
        rows = await bench.memory.database.read(lambda reader: reader.all("select text from messages order by id"))
    said = bench.model.requests[-1].messages[-1].content
    assert "first words" in said and "last words" in said and "characters left out" in said
    assert "The message had 220023 characters; you see its beginning and end." in said
    assert max(len(row["text"]) for row in rows) <= LIMITS.message_chars
    assert "(Your message has 220023 characters. Only its beginning and end, " in bench.screen.texts[0]


async def test_an_edit_that_is_too_long_is_shortened_like_a_message(bench: Bench) -> None:
    async with bench.running() as router:
        await bench.say("my dog is called Rex", key="7")
        edit = replace(bench.inbound("my dog is called Max " + "x" * 200_000, key="8"), edited=True, message_id="7")
        await router.on_inbound(edit)
        await router.settled(edit.place)
        rows = await bench.memory.database.read(lambda reader: reader.all("select text from messages order by id"))
    assert max(len(row["text"]) for row in rows) <= LIMITS.message_chars


@pytest.mark.parametrize("mended", [True, False])
async def test_a_message_that_can_not_be_queued_is_tried_again_and_then_refused_with_words(
    bench: Bench, mended: bool
) -> None:
    """It need not wait for the next start, and nobody waits for ever without a word."""
    routed: dict[str, str] = {}
    bench.route = lambda _inbound: routed["agent"]
    async with bench.running() as router:
        store, inbound = bench.stores["assistant"], bench.inbound("hello")
        await bench.memory.mailbox.receive(
            platform="console", bot_id="local", update_key="x", session_key=inbound.place.session_key,
            payload=inbound.to_json(),
        )  # fmt: skip
        for failures in (1, 2, 3, 4):
            await router.look(store)
            await router.look(store)  # not even tried
            [held] = bench.memory.loops.put_off("inbox")
            assert held.failures == failures and bench.screen.texts == []
            bench.clock.move(minutes=20)
        if mended:
            routed["agent"] = "assistant"
        await router.look(store)
        await router.settled(inbound.place)
        [(state, error)] = await bench.rows("select state, error from inbox")
    if mended:
        assert (bench.screen.texts, state) == (["All right."], "done")
    else:
        [told] = bench.screen.texts
        assert "Something went wrong on my side" in told and (state, error) == ("failed", "internal")


async def test_a_message_that_can_not_even_be_refused_ends_with_plain_words(tmp_path: Path, clock: Clock) -> None:
    """Its channel's way of writing fails for the answer and for the refusal."""

    class Speechless(Screen):
        def chunks(self, text: str, *, markdown: bool) -> Sequence[Chunk]:
            raise ValueError

    bench = Bench(tmp_path, ScriptedModel(), Speechless(), clock)
    async with bench.running():
        await bench.say("hello")
        [(state, error)] = await bench.rows("select state, error from inbox")
    [told] = bench.screen.texts
    assert "Something went wrong on my side" in told and (state, error) == ("failed", "internal")
