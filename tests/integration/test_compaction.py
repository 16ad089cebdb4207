"""Conversations that never end: when and how their older part is summed up, and what becomes of the summary."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

from memory.chat import summary
from memory.chat.compaction import Bounds, Compacted
from memory.chat.window import WindowSize
from memory.context import Context
from memory.forgetting.expired import erase_words
from memory.forgetting.plan import How
from memory.learn.agents import AgentMemory, Rotation
from memory.learn.ask import INSTRUCTIONS as READING
from memory.learn.model import BackgroundModel, ModelAnswer, ModelFailed, ModelRequest, RequestTooLong
from memory.mailbox.outbox import Part
from memory.service import Service
from memory.store import attachments, history
from memory.store.attachments import Attached
from memory.store.database import Reader
from memory.store.history import Utterance
from tests.kit.fakes import Clock
from tests.kit.forgetting import carried_out, forgotten
from tests.kit.minds import Answer, answered, prepared
from tests.kit.stores import AGENTS, opened, rows
from tests.kit.talk import Place, act, exchange, group, private, received, say

ADA = private("ada")
#: A window of twelve short messages, of which the last four stay.
BOUNDS = Bounds(size=WindowSize(tokens=1_000, messages=12), at=0.75, keep=4, tokens=200)


class Model:
    """Sums up with prepared answers, and finds nothing in what it reads. `asked` are the requests of both."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.asked: list[ModelRequest] = []

    async def __call__(self, request: ModelRequest) -> ModelAnswer:
        self.asked.append(request)
        answer: Answer = {"facts": []}
        if request.instructions == summary.INSTRUCTIONS:
            answer = self.answers.pop(0) if self.answers else {"facts": ["They talked of boats."]}
        return answered(await prepared(answer, request), written=10)

    @property
    def summed_up(self) -> list[str]:
        return [one.material for one in self.asked if one.instructions == summary.INSTRUCTIONS]


@asynccontextmanager
async def remembering(
    folder: Path, clock: Clock, model: Model | None, *, tokens_per_day: int | None = None, **of: Any
) -> AsyncIterator[Service]:
    background = None if model is None else BackgroundModel(complete=model, tokens_per_day=tokens_per_day)
    agents = dict.fromkeys(AGENTS, AgentMemory(model=background, **of))
    async with opened(folder / "remora.db", clock, agents=agents) as memory:
        yield memory


async def talked(memory: Service, clock: Clock, turns: int, *, place: Place = ADA, first: int = 0) -> None:
    for n in range(first, first + turns):
        await say(memory, place, f"boat {n} has a leak", clock=clock, answer=f"I see, {n}")


async def checked(memory: Service, place: Place = ADA, bounds: Bounds = BOUNDS) -> list[Compacted]:
    """Has the window looked at as after a turn; returns the compaction that people were told of."""
    told: list[Compacted] = []

    def notice(done: Compacted) -> list[Part]:
        told.append(done)
        return [Part(text=f"summed up {done.messages}")]

    memory.compaction.soon(await memory.identities.context(*place), bounds, notice=notice, posted=lambda: None)
    await memory.compaction.settled()
    return told[-1:]  # with --twice it is told of twice


async def window(memory: Service, clock: Clock, place: Place = ADA) -> list[str]:
    """Returns the window of the next turn without that turn's own words."""
    turn = await say(memory, place, "and now?", clock=clock, answer="now")
    texts = await rows(
        memory,
        "select text from messages m join sessions s on s.id = m.session_id where s.id = ? and m.id > s.window_after"
        " and m.id < ? order by m.id",
        turn.context.session.id,
        turn.said[0].id,
    )
    return [text for (text,) in texts]


async def standing(memory: Service, place: Place = ADA) -> tuple[str | None, str | None]:
    session = (await memory.identities.context(*place)).session
    return session.summary, session.active_task


async def test_when_the_window_is_nearly_full_the_older_part_is_summed_up(tmp_path: Path, clock: Clock) -> None:
    """A model saw 49 of 629 messages, and nothing of the others."""
    model = Model({"facts": ["Nine boats leak."], "open": ["Who repairs them?"]})
    async with remembering(tmp_path, clock, model) as memory:
        await talked(memory, clock, 4)
        assert await checked(memory) == [] and await standing(memory) == (None, None)
        await talked(memory, clock, 1, first=4)
        (done,) = await checked(memory)
        assert (done.messages, done.kept) == (6, 4)
        assert (await standing(memory))[0] == "Facts:\n- Nine boats leak.\nOpen questions:\n- Who repairs them?"
        assert "boat 0 has a leak" in model.summed_up[0] and "boat 3 has a leak" not in model.summed_up[0]
        assert await window(memory, clock) == ["boat 3 has a leak", "I see, 3", "boat 4 has a leak", "I see, 4"]
        told = await rows(memory, "select text, kind from outbox where kind = 'notice'")
        assert told == [("summed up 6", "notice")]


async def test_there_is_one_compaction_for_each_crossing(tmp_path: Path, clock: Clock) -> None:
    """After one the window has room again; each covers what the one before it had summed up."""
    model = Model({"facts": ["a first boat leaks"]}, {"facts": ["a second boat leaks"]})
    async with remembering(tmp_path, clock, model) as memory:
        counted = []
        for n in range(12):
            await talked(memory, clock, 1, first=n)
            await checked(memory)
            counted.append(len(model.summed_up))
        assert counted == [0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3]
        assert "- a first boat" in model.summed_up[1] and "- a second boat" in model.summed_up[2]


async def test_what_was_not_read_for_memories_is_read_first(tmp_path: Path, clock: Clock) -> None:
    model = Model()
    async with remembering(tmp_path, clock, model) as memory:
        await talked(memory, clock, 5)
        await checked(memory)
        assert [one.instructions for one in model.asked] == [READING, summary.INSTRUCTIONS]
        assert await rows(memory, "select reason, state from extractions") == [("compaction", "done")]


@pytest.mark.parametrize(
    "answer",
    [
        ModelFailed("away"), RequestTooLong("too long"), TimeoutError(), "no JSON at all", {"facts": []},
        {"facts": ["I'm sorry, I cannot help with that."]},
        {"facts": ["Ada collects stamps."]},
    ],
)  # fmt: skip
async def test_without_a_usable_summary_first_lines_stand_in_for_it(
    tmp_path: Path, clock: Clock, answer: Answer
) -> None:
    """Never a failed turn, never a window that overflows, and never nothing at all."""
    async with remembering(tmp_path, clock, Model(answer, answer, answer)) as memory:
        await talked(memory, clock, 5)
        assert len(await checked(memory)) == 1
        text, _ = await standing(memory)
        assert text is not None and text.startswith("Said:\n- 20") and text.endswith("boat 2 has a leak")
        assert len(await window(memory, clock)) == 4


async def test_a_refusal_takes_nothing_from_the_summary_before(tmp_path: Path, clock: Clock) -> None:
    """What was known stays, with first lines of what was said since."""
    async with remembering(
        tmp_path, clock, Model({"facts": ["Boat 1 leaks."]}, {"facts": ["No prior history."]})
    ) as memory:
        for n in range(2):
            await talked(memory, clock, 5, first=5 * n)
            await checked(memory)
        text, _ = await standing(memory)
        assert text is not None and text.startswith("Facts:\n- Boat 1 leaks.\nSaid:\n- 20") and "history" not in text


@pytest.mark.parametrize("tokens_per_day", [None, 1])
async def test_without_a_model_or_tokens_for_it_too(tmp_path: Path, clock: Clock, tokens_per_day: int | None) -> None:
    """All background reading shares one budget."""
    model = None if tokens_per_day is None else Model()
    async with remembering(tmp_path, clock, model, tokens_per_day=tokens_per_day) as memory:
        await talked(memory, clock, 5)
        await checked(memory)
        assert "boat 0 has a leak" in str((await standing(memory))[0])
        assert model is None or model.summed_up == []


async def test_the_cost_of_a_summary_is_booked_whatever_comes_of_it(tmp_path: Path, clock: Clock) -> None:
    async with remembering(tmp_path, clock, Model("no JSON")) as memory:
        await talked(memory, clock, 5)
        await checked(memory)
        booked = await rows(memory, "select purpose, input_tokens from usage where purpose <> 'chat'")
        assert sorted(booked) == [("compact", 100), ("extract", 100)]


async def test_of_a_large_window_a_quarter_stays_unless_somebody_asked(tmp_path: Path, clock: Clock) -> None:
    """Ten messages of a window of hundreds were too little to go on with."""
    bounds = Bounds(size=WindowSize(tokens=10_000, messages=48), at=0.75, keep=4, tokens=200)
    async with remembering(tmp_path, clock, Model()) as memory:
        await talked(memory, clock, 19)
        (done,) = await checked(memory, bounds=bounds)
        assert (done.messages, done.kept) == (26, 12)
        by_hand = await memory.compaction.now(await memory.identities.context(*ADA), bounds)
        assert by_hand is not None and by_hand.kept == 4


async def test_long_messages_leave_fewer_of_them(tmp_path: Path, clock: Clock) -> None:
    """Ten are kept, else three, else one, as room demands; a message is never cut from its answer."""
    bounds = Bounds(size=WindowSize(tokens=1_000, messages=100), at=0.75, keep=10, tokens=200)
    async with remembering(tmp_path, clock, Model()) as memory:
        for n in range(8):
            await say(memory, ADA, f"boat {n}: " + "and then it rained " * 25, clock=clock, answer="I see")
        await checked(memory, bounds=bounds)
        kept = await window(memory, clock)
        assert [text[:6] for text in kept] == ["boat 6", "I see", "boat 7", "I see"]


async def test_the_task_is_found_kept_changed_and_ended_by_summaries(tmp_path: Path, clock: Clock) -> None:
    """A task that was finished in talk must not stand in every prompt for ever."""
    model = Model(
        {"facts": ["boat a"], "task": "repair boats"}, {"facts": ["boat b"]}, {"facts": ["boat c"], "task": ""}
    )
    async with remembering(tmp_path, clock, model) as memory:
        tasks = []
        for n in range(3):
            await talked(memory, clock, 5, first=5 * n)
            await checked(memory)
            tasks.append((await standing(memory))[1])
        assert tasks == ["repair boats", "repair boats", None]
        assert "TASK SO FAR:\nrepair boats" in model.summed_up[1]


async def test_a_task_that_a_person_has_set_is_theirs(tmp_path: Path, clock: Clock) -> None:
    """A model knows less of what people want than they do."""
    model = Model({"facts": ["boat a"], "task": "repair boats"}, {"facts": ["boat b"], "task": ""})
    async with remembering(tmp_path, clock, model) as memory:
        context = await memory.identities.context(*ADA)
        await act(memory, context, lambda edits: edits.set_task("sell the boats"))
        for n in range(2):
            await talked(memory, clock, 5, first=5 * n)
            await checked(memory)
            assert (await standing(memory))[1] == "sell the boats"


async def test_a_new_conversation_begins_without_the_summary(tmp_path: Path, clock: Clock) -> None:
    """And a later forget doesn't bring the earlier conversation back into the window."""
    async with remembering(tmp_path, clock, Model()) as memory:
        await talked(memory, clock, 5)
        await checked(memory)
        context = await memory.identities.context(*ADA)
        await act(memory, context, lambda edits: edits.start_window())
        assert await standing(memory) == (None, None) and await window(memory, clock) == []
        await forgotten(memory, context, "boat 1")
        assert await window(memory, clock) == ["and now?", "now"]


@pytest.mark.parametrize("how", ["words", "memory", "new"])
async def test_the_last_files_of_what_was_summed_up_stay_at_hand_until_they_go(
    tmp_path: Path, clock: Clock, how: How | Literal["new"]
) -> None:
    """With what tools have read. A forgotten one and those of an earlier conversation are not shown again."""

    page = Utterance(role="tool", text="a page", tokens=9, said_at=clock())
    async with remembering(tmp_path, clock, Model()) as memory:
        for n in range(5):
            file = Attached(kind="file", name=f"{n}.txt", media_type="", size=9, state="text", text=f"file {n}")
            turn = await say(memory, ADA, f"boat {n} has a leak", clock=clock, files=[file], answers=[page][: n == 1])
        context = turn.context
        assert await files(memory, context) == ([], [])
        await talked(memory, clock, 3, first=5)
        await checked(memory)
        names, pages = await files(memory, context)
        assert names == ["4.txt", "3.txt", "2.txt"] and pages == ["a page"]
        if how == "new":
            await act(memory, context, lambda edits: edits.start_window())
            await talked(memory, clock, 9, first=10)
        else:
            await forgotten(memory, context, "boat 3", how=how)
            await talked(memory, clock, 4, first=10)
        await checked(memory)
        assert await standing(memory) != (None, None)
        names, pages = await files(memory, context)
        assert (names, pages) == (([], []) if how == "new" else (["4.txt", "2.txt", "1.txt"], ["a page"]))


async def files(memory: Service, context: Context) -> tuple[list[str], list[str]]:
    """Returns the names of the last files that the summary covers, and the last results of tools, newest first."""

    def look(reader: Reader) -> tuple[list[str], list[str]]:
        named = attachments.summed_up(reader, context.session.id, 3)
        results = history.results_summed_up(reader, context.session.id, 3)
        return [one.name for _, one in named], [one.text for one in results]

    return await memory.database.read(look)


@pytest.mark.parametrize("how", ["words", "memory"])
async def test_what_is_forgotten_vanishes_from_the_summary_which_is_made_anew(
    tmp_path: Path, clock: Clock, how: How
) -> None:
    """The summary may tell a fact in other words, so it goes with the fact as well as with the message."""
    model = Model({"facts": ["Ada fears whales and leaks."], "task": "whales"}, {"facts": ["Boats leak."]})
    async with remembering(tmp_path, clock, None) as memory:
        await exchange(memory, ADA, "I live in Porto", clock)
    async with remembering(tmp_path, clock, model) as memory:
        await talked(memory, clock, 5)
        await checked(memory)
        assert "whales" in str(await standing(memory))
        context = await memory.identities.context(*ADA)
        preview = await memory.forgetting.preview(context, "Porto")
        assert preview is not None
        await carried_out(memory, context, preview.selection, how=how)
        assert await standing(memory) == (None, None)
        await talked(memory, clock, 1, first=5)
        await checked(memory)
        assert (await standing(memory))[0] == "Facts:\n- Boats leak."
        assert "Porto" not in model.summed_up[1] and "boat 1 has a leak" in model.summed_up[1]


async def test_a_summary_of_words_that_are_edited_or_deleted_on_the_platform_goes(tmp_path: Path, clock: Clock) -> None:
    """They were taken back, so they must not stand in every prompt."""
    async with remembering(tmp_path, clock, Model()) as memory:
        await say(memory, ADA, "I fear whales", clock=clock, ref="first")
        await talked(memory, clock, 5)
        await checked(memory)
        where, who = ADA
        assert await memory.requests.amend(
            where, who, await received(memory, where.session_key), platform_ref="first", text="I like whales",
            compose=lambda text, _: text,
        )  # fmt: skip
        assert await standing(memory) == (None, None)
        await talked(memory, clock, 3, first=5)
        await checked(memory)
        assert await standing(memory) != (None, None)
        await memory.requests.retract("console", where.session_key, ["first"])
        assert await standing(memory) == (None, None)


async def test_words_forgotten_while_a_model_sums_them_up_are_not_kept(tmp_path: Path, clock: Clock) -> None:
    """The model's answer tells them, but the window is still as it was, for a summary without them."""
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def slow(_request: ModelRequest) -> str:
        asked.set()
        await go_on.wait()
        return '{"facts": ["Ada fears whales and leaks."]}'

    async with remembering(tmp_path, clock, Model(slow)) as memory:
        await say(memory, ADA, "I fear whales", clock=clock, ref="first")
        await talked(memory, clock, 5)
        checking = asyncio.create_task(checked(memory))
        await asked.wait()
        await memory.requests.retract("console", ADA[0].session_key, ["first"])
        go_on.set()
        await checking
        assert await standing(memory) == (None, None)
        assert await rows(memory, "select text from outbox where kind = 'notice'") == []
        await checked(memory)
        assert (await standing(memory))[0] == "Facts:\n- They talked of boats."


async def test_what_is_said_while_a_model_sums_up_stays_in_the_window(tmp_path: Path, clock: Clock) -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def slow(_request: ModelRequest) -> str:
        asked.set()
        await go_on.wait()
        return '{"facts": ["Boats leak."]}'

    async with remembering(tmp_path, clock, Model(slow)) as memory:
        await talked(memory, clock, 5)
        checking = asyncio.create_task(checked(memory))
        await asked.wait()
        await talked(memory, clock, 2, first=5)
        go_on.set()
        await checking
        assert [text for text in await window(memory, clock) if "boat" in text] == [
            f"boat {n} has a leak" for n in (3, 4, 5, 6)
        ]


async def test_what_is_said_off_the_record_is_in_no_summary(tmp_path: Path, clock: Clock) -> None:
    model = Model()
    async with remembering(tmp_path, clock, model) as memory:
        context = await memory.identities.context(*ADA)
        await act(memory, context, lambda edits: edits.set_learning(False))
        await talked(memory, clock, 5)
        assert await checked(memory) == []
        assert await standing(memory) == (None, None) and model.summed_up == []
        assert len(await window(memory, clock)) == 4


async def test_where_nothing_is_remembered_at_all_a_conversation_is_still_summed_up(
    tmp_path: Path, clock: Clock
) -> None:
    """`memory: {enabled: false}` keeps the conversation, and this is the conversation."""
    bounds = Bounds(size=BOUNDS.size, at=0.75, keep=4, tokens=200, all_said=True)
    async with remembering(tmp_path, clock, Model()) as memory:
        context = await memory.identities.context(*ADA)
        await act(memory, context, lambda edits: edits.set_learning(False))
        await talked(memory, clock, 5)
        assert len(await checked(memory, bounds=bounds)) == 1


async def test_the_summary_of_a_group_is_of_everybody_in_it_and_of_nothing_else(tmp_path: Path, clock: Clock) -> None:
    model = Model()
    async with remembering(tmp_path, clock, model) as memory:
        await say(memory, ADA, "my secret is in the attic", clock=clock)
        for person in ("ada", "ben", "ada", "ben", "ada"):
            await say(memory, group("club", person), f"{person} brings bread", clock=clock)
        await checked(memory, group("club", "ada"))
        assert "ben brings bread" in model.summed_up[0] and "attic" not in model.summed_up[0]
        assert await standing(memory) == (None, None)


async def test_a_compaction_that_the_end_of_the_process_cuts_off_is_done_by_the_next(
    tmp_path: Path, clock: Clock
) -> None:
    """Nothing is kept of it before it is complete."""
    asked = asyncio.Event()

    async def never(_request: ModelRequest) -> str:
        asked.set()
        await asyncio.Event().wait()
        return ""

    async with remembering(tmp_path, clock, Model(never)) as memory:
        await talked(memory, clock, 5)
        memory.compaction.soon(await memory.identities.context(*ADA), BOUNDS, notice=lambda _: [], posted=lambda: None)
        await asked.wait()
    async with remembering(tmp_path, clock, Model()) as memory:
        assert await standing(memory) == (None, None)
        assert len(await checked(memory)) == 1


async def test_a_conversation_begins_anew_after_the_silence_that_the_agent_allows(tmp_path: Path, clock: Clock) -> None:
    """And what was not read for memories is read, as with /new."""
    async with remembering(tmp_path, clock, None, rotation=Rotation(idle_ms=3_600_000)) as memory:
        await talked(memory, clock, 1)
        clock.move(minutes=50)
        await talked(memory, clock, 1, first=1)
        clock.move(minutes=70)
        assert await window(memory, clock) == []
        reasons = await rows(memory, "select reason from extractions")
        assert reasons == [("session ended",)]


async def test_words_that_expire_take_the_summary_with_them(tmp_path: Path, clock: Clock) -> None:
    """Where words are kept for some days only, a summary must not keep them for longer."""
    async with remembering(tmp_path, clock, Model()) as memory:
        await talked(memory, clock, 5)
        await checked(memory)
        await erase_words(memory.database, before=clock() + 1, now=clock())
        assert await standing(memory) == (None, None)


async def test_a_person_off_the_record_has_nothing_summed_up_on_request(tmp_path: Path, clock: Clock) -> None:
    """The window stays as it is, because nothing would stand in for what leaves it."""
    async with remembering(tmp_path, clock, Model()) as memory:
        context = await memory.identities.context(*ADA)
        await act(memory, context, lambda edits: edits.set_learning(False))
        await talked(memory, clock, 4)
        assert await memory.compaction.now(context, BOUNDS) is None
        assert len(await window(memory, clock)) == 8
