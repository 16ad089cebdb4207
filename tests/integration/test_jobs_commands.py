"""`/jobs`, the line in `/status`, and `remora jobs`: the night seen and worked by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from agents.spec import AgentSpec
from gateway.__main__ import main
from gateway.app import new_id, now
from gateway.cli.jobs import _at_work, _followed, _told
from gateway.commands.jobs import figures, outcome
from gateway.commands.session import _used
from gateway.ops.night_clock import Worker, timetables
from gateway.pipeline.policy import Rules
from gateway.wording.texts import CATALOGUE, Texts
from memory.chat.edits import Edits
from memory.chat.stats import Used
from memory.jobs.base import FIGURES
from memory.jobs.runner import Change, RunProgress
from memory.jobs.runs import BROKEN_OFF, Run
from memory.learn.agents import AgentMemory
from memory.learn.answer import Unreadable
from memory.learn.learner import Triggers
from memory.learn.model import BackgroundModel, BudgetSpent, ModelAnswer, ModelFailed, ModelRequest
from memory.mailbox.outbox import Part
from memory.service import Service
from tests.kit import stalls
from tests.kit.fakes import NOON, runtime
from tests.kit.patience import SECONDS, limit
from tests.kit.pipeline import pipeline
from tests.kit.talk import private, received, remember

ADMIN = {"telegram": Rules(admins=frozenset({"7"}), allow=frozenset({"8"}), groups=frozenset({"-5"}))}


async def test_an_admin_sees_when_each_job_runs_and_has_one_run(tmp_path: Path) -> None:
    """The list before and after; a run by hand is named as what it is."""
    async with pipeline(tmp_path, rules=ADMIN) as world:
        (before,) = await world.say("/jobs", author="7")
        assert "turn events into facts (compress): next 22 Nov 2026 03:00; last never" in before
        assert "weekly insight (reflect): next 22 Nov 2026 03:30" in before
        (asked,) = await world.say("/jobs run compress", author="7")
        assert (
            asked
            == "turn events into facts for assistant starts as soon as the current work is done. /jobs shows its progress."
        )
        worker = world.router._roster.stores["assistant"].nights
        assert worker is not None
        assert [run.job for run in await worker.work_off()] == ["compress"]
        (after,) = await world.say("/jobs", author="7")
        assert "(compress): next 22 Nov 2026 03:00; last 21 Nov 2026 12:00: done, nothing to do" in after


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("/jobs run cook", "There is no job cook. The jobs are: enrich, compress, "),
        ("/jobs run compress nobody", "There is no agent nobody here. The agents are: assistant."),
        ("/jobs run", "Usage: /jobs [run <job> [agent]]"),
        ("/jobs walk compress", "Usage: /jobs [run <job> [agent]]"),
    ],
)
async def test_what_is_mistyped_is_told_with_what_there_is(tmp_path: Path, typed: str, told: str) -> None:
    """Nothing is run for it."""
    async with pipeline(tmp_path, rules=ADMIN) as world:
        (said,) = await world.say(typed, author="7")
        assert said.startswith(told)
        worker = world.router._roster.stores["assistant"].nights
        assert worker is not None
        assert await worker.work_off() == []


async def test_the_night_is_for_admins_in_private(tmp_path: Path) -> None:
    """Others are told what they are told of any unknown command; but when the next work is done is in /status."""
    async with pipeline(tmp_path, rules=ADMIN) as world:
        (other,) = await world.say("/jobs", author="8")
        assert other.startswith("There is no command /jobs.")
        (group,) = await world.say("/jobs", author="7", chat="-5")
        assert group == "This concerns everyone who talks to me. Ask me in our private chat."
        (status,) = await world.say("/status", author="8")
        assert "Next nightly job: find names, 22 Nov 2026 02:00" in status


def progress(
    state: str, *, error: str | None = None, attempts: int = 1, put_down: bool = False, **counts: int
) -> RunProgress:
    run = Run(
        id=3, job="compress", agent_id=1, agent="a", period="2026-11-21", state=state,  # type: ignore[arg-type]
        started_at=NOON, finished_at=NOON, counts=counts, error=error, attempts=attempts, not_before=NOON,
        put_down=put_down,
    )  # fmt: skip
    return RunProgress(run=run, done=2, of=5)


@pytest.mark.parametrize(
    ("one", "english", "chinese"),
    [
        (progress("done", facts=3, events=0, odd_ones=2), "done, facts 3, odd ones 2", "完成，事实 3, odd ones 2"),
        (progress("done"), "done, nothing to do", "完成，没有要做的"),
        (progress("undone"), "done, then undone", "完成后已撤销"),
        (progress("running"), "running, 2 of 5 people and groups done", "运行中，5 个人和群中已处理 2 个"),
        (progress("running", put_down=True), "paused after 2 of 5 when Remora stopped; it continues at the next start",
         "Remora 停止时暂停，5 个中已处理 2 个；下次启动后继续"),
        (progress("failed", error="model_failed"),
         "failed after 2 of 5: the model did not answer. Next try: 21 Nov 2026 12:00",
         "失败，5 个中已处理 2 个：模型没有回答。2026年11月21日 12:00重试"),
        (progress("failed", error=Unreadable.code),
         "failed after 2 of 5: the model's answer could not be used. Next try: 21 Nov 2026 12:00",
         "失败，5 个中已处理 2 个：模型的回答无法使用。2026年11月21日 12:00重试"),
        (progress("failed", error=BROKEN_OFF, attempts=4),
         "failed after 2 of 5 and given up: Remora stopped in the middle each time. See the log for details. To try again, an admin sends /jobs run compress, or you stop the bot and run `remora jobs run compress`.",
         "失败，5 个中已处理 2 个，不再重试：每次运行到一半 Remora 就停止了。详情见日志。重试：由管理员发送 /jobs run compress，或停止机器人后运行 `remora jobs run compress`。"),
        (progress("failed", error="KeyError", attempts=4),
         "failed after 2 of 5 and given up: KeyError. See the log for details. To try again, an admin sends /jobs run compress, or you stop the bot and run `remora jobs run compress`.",
         "失败，5 个中已处理 2 个，不再重试：KeyError。详情见日志。重试：由管理员发送 /jobs run compress，或停止机器人后运行 `remora jobs run compress`。"),
    ],
)  # fmt: skip
def test_how_a_run_went_is_told_in_words(one: RunProgress, english: str, chinese: str) -> None:
    """Figures nobody has named yet are shown all the same; what failed for good says what to do."""
    assert outcome(Texts("en"), one) == english
    assert outcome(Texts("zh"), one) == chinese


def test_a_run_that_ran_out_of_tokens_says_where_there_are_more() -> None:
    """It is no failure, and it is not lost."""
    told = outcome(Texts("en"), progress("skipped"))
    assert told.startswith("paused after 2 of 5") and "It continues 21 Nov 2026 12:00." in told
    assert "background.tokens_per_day" in told
    assert figures(Texts("en"), {"refused": 1}) == "refused 1"


def test_all_that_jobs_count_has_its_words() -> None:
    """In every language; and there are words for nothing else, so that a figure which is renamed is missed."""
    for language, texts in CATALOGUE.items():
        named = {key.removeprefix("jobs.figure.") for key in texts if key.startswith("jobs.figure.")}
        assert named == FIGURES, language


def test_what_a_job_took_has_the_jobs_name_in_the_list_of_what_models_took() -> None:
    """A purpose without a text of its own must not cost the whole answer."""
    used = Used(purpose="merge", model="m", calls=1, input_tokens=5, output_tokens=2, cost=None)
    assert "merge similar memories, m: 1 calls" in _used(Texts("en"), used)
    assert "learning, m: 1 calls" in _used(Texts("en"), replace(used, purpose="extract"))


# The command line -----------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.yaml").write_text("data_dir: data\nembedding: {provider: none}\n")
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "assistant.yaml").write_text("name: assistant\ntimezone: Asia/Tokyo\njobs: {week: off}\n")
    return tmp_path


def remora(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments, "--config", str(folder / "config.yaml")])


async def _store(folder: Path, model: BackgroundModel | None = None) -> Service:
    (folder / "data").mkdir(exist_ok=True)
    return await Service.open(
        folder / "data" / "remora.db",
        agents={"assistant": AgentMemory(timezone="Asia/Tokyo", model=model)},
        triggers=Triggers(quiet_seconds=3_600),
        runtime=runtime(now, new_id),
    )


def test_the_command_line_lists_and_runs(folder: Path) -> None:
    """Times are the agent's own; what is off says so; a run says how it went."""
    listed = remora(folder, "jobs", "list")
    assert listed.exit_code == 0, listed.output
    assert listed.output.startswith("assistant (Asia/Tokyo):\n  enrich: next ")
    assert "02:00; never run" in listed.output
    assert "  merge: off; never run" in listed.output
    ran = remora(folder, "jobs", "run", "compress")
    assert (ran.exit_code, ran.output.endswith("run 1: done, nothing to do\n")) == (0, True), ran.output
    assert "run 1: done, nothing to do" in remora(folder, "jobs", "list").output


def test_the_command_line_says_what_it_can_not_do(folder: Path) -> None:
    """With what there is, and a code that scripts can tell."""
    unknown = remora(folder, "jobs", "run", "cook")
    assert (unknown.exit_code, "There is no job cook. The jobs are: enrich, " in unknown.output) == (65, True)
    nobody = remora(folder, "jobs", "preview", "decay")
    assert (nobody.exit_code, "--person" in nobody.output) == (65, True)
    stranger = remora(folder, "jobs", "preview", "decay", "--person", "telegram:5")
    assert (stranger.exit_code, "has never talked" in stranger.output) == (65, True)
    assert remora(folder, "jobs", "run", "decay", "--agent", "cook").exit_code == 65


@pytest.mark.parametrize(
    ("memory", "job", "setting"),
    [("{enabled: false}", "merge", "memory.enabled"), ("{manner: false}", "manner", "memory.manner")],
)
def test_what_an_agent_does_not_do_is_not_run_by_hand_either(folder: Path, memory: str, job: str, setting: str) -> None:
    """A job that its file switches off altogether is refused; one that is off at night alone is run."""
    agent = folder / "agents" / "assistant.yaml"
    agent.write_text(f"{agent.read_text()}memory: {memory}\n")
    refused = remora(folder, "jobs", "run", job)
    assert refused.exit_code == 65
    assert refused.output == f"There is nothing to run for assistant ({job}): {setting} is false in its file.\n"
    assert remora(folder, "jobs", "run", "tidy").exit_code == 0
    agent.write_text("name: assistant\njobs: {week: off}\n")
    assert remora(folder, "jobs", "run", "merge").exit_code == 0


async def test_who_stops_a_run_by_hand_leaves_nothing_at_work(tmp_path: Path) -> None:
    """The store is closed next: the run is put down before, counts as no try, and goes on at the next start."""
    asked = asyncio.Event()

    async def think(_: ModelRequest) -> ModelAnswer:
        asked.set()
        return await asyncio.Event().wait()  # type: ignore[return-value]

    service = await _store(tmp_path, BackgroundModel(complete=think))
    await remember(service, await service.identities.context(*private("ada")), "I like tea with Bea")
    before = asyncio.all_tasks()
    worker = Worker(service, timetables({"assistant": AgentSpec(name="assistant")}), now=now)
    following = asyncio.create_task(_followed(worker, service, "assistant", "enrich"))
    async with limit():
        await asked.wait()
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    assert asyncio.all_tasks() <= before
    (left,) = await service.jobs.unfinished("assistant")
    assert (left.state, left.attempts) == ("running", 0)
    await service.close(seconds=SECONDS)


def test_a_preview_and_an_undo_are_for_somebody(folder: Path) -> None:
    """Somebody who has talked is found by platform and id; a run that did nothing here can't be taken back."""

    async def talk() -> None:
        service = await _store(folder)
        await service.identities.context(*private("ada"))
        await service.close(seconds=SECONDS)

    stalls.run(talk())
    shown = remora(folder, "jobs", "preview", "decay", "--person", "console:ada")
    assert (shown.exit_code, "There is nothing to do." in shown.output) == (0, True), shown.output
    undone = remora(folder, "jobs", "undo", "1", "--person", "console:ada")
    assert (undone.exit_code, "No run 1 has changed anything here." in undone.output) == (65, True), undone.output


def test_beside_a_running_bot_its_process_is_named(folder: Path) -> None:
    """One process writes a store; the chat has the same commands."""

    async def beside() -> Result:
        service = await _store(folder)
        try:
            return await asyncio.to_thread(remora, folder, "jobs", "run", "decay")
        finally:
            await service.close(seconds=SECONDS)

    refused = stalls.run(beside())
    assert refused.exit_code == 75
    assert "let an admin send /jobs in a chat" in refused.output


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (ModelFailed("No answer."), "No answer. Check that the background model can be reached, and try again.\n"),
        (TimeoutError(), "The model took too long. Nothing was changed; try again later.\n"),
        (BudgetSpent("Used up.", until=NOON), "Used up. There are more from "),
    ],
)
def test_a_preview_that_wants_another_time_says_so_by_its_code(
    fault: Exception, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Scripts may try again; it is not the data that is wrong."""
    with pytest.raises(SystemExit) as ended, _at_work():
        raise fault
    assert ended.value.code == 75
    assert capsys.readouterr().err.startswith(told)


def test_the_list_is_there_beside_a_running_bot_and_writes_nothing(folder: Path) -> None:
    """A run under way shows as such; not a byte of the store, nor of its folder, is another's."""
    path = folder / "data" / "remora.db"

    async def beside() -> tuple[Result, dict[str, bytes], dict[str, bytes]]:
        service = await _store(folder)
        try:
            await service.jobs.run("assistant", "compress", "2026-11-21")
            await service.database.write(
                lambda tx: tx.run(
                    "insert into job_runs (job, agent_id, period, state, lease_until, started_at)"
                    " values ('merge', 1, '2026-11-21', 'running', ?, ?)",
                    (2**50, now()),
                )
            )
            before = _files(path)
            return await asyncio.to_thread(remora, folder, "jobs", "list"), before, _files(path)
        finally:
            await service.close(seconds=SECONDS)

    listed, before, after = stalls.run(beside())
    assert listed.exit_code == 0, listed.output
    assert "run 1: done, nothing to do" in listed.output
    assert "run 2: running\n" in listed.output
    assert before == after


def _files(path: Path) -> dict[str, bytes]:
    """Returns the files beside a store, without the bytes of the one that its processes share."""
    return {one.name: b"" if one.name.endswith("-shm") else one.read_bytes() for one in path.parent.glob("*")}


def test_the_list_makes_no_store_and_brings_none_up_to_date(folder: Path) -> None:
    """Before the first start there is nothing, and afterwards there still is; another version's is left to itself."""
    assert "enrich: next " in remora(folder, "jobs", "list").output
    assert not (folder / "data" / "remora.db").exists()

    async def made() -> None:
        service = await _store(folder)
        await service.database.write(lambda tx: tx.run("delete from migrations where version > 5"))
        await service.close(seconds=SECONDS)

    stalls.run(made())
    refused = remora(folder, "jobs", "list")
    assert (refused.exit_code, "another version of Remora" in refused.output) == (70, True), refused.output


async def test_a_change_is_told_by_its_mark(memory: Service) -> None:
    """Characters that a terminal would obey are not in it, however they got into a memory."""
    ada = await memory.identities.context(*private("ada"))
    inbox = await received(memory, ada.session.key)

    def act(edits: Edits) -> Sequence[Part]:
        edits.remember("I like \x1b[31mtea")
        return ()

    await memory.requests.answer(ada, inbox, act)
    (tea,) = await memory.browse.memories(ada, limit=5)
    (gone,) = _told(Change(what="archived", memory=tea))
    assert gone.startswith(f"- {tea.short_id} fact ")
    new = list(_told(Change(what="new", memory=tea, made_of=(tea,))))
    assert new[0].startswith(f"+ {tea.short_id}")
    assert new[1].startswith(f"    made of {tea.short_id}")
    assert "\x1b" not in "".join(new)
