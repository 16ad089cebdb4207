"""A recorded conversation goes through the real pipeline, at the times it was held."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bench import replay
from bench.recording import Recording, read
from bench.replay import RecordedTime, ReplayChannel, Tally, answer, everybody, record, setup_of
from gateway import app
from gateway.config.loading import Config, load
from memory.chat.identities import Where, Who
from memory.context import Context
from memory.service import Service
from memory.store.history import Message

MINUTE = 60_000
#: 1 March 2024, 12:00 UTC.
THEN = 1_709_294_400_000


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return load(None, {}, tmp_path)


def recorded(*rows: dict[str, object]) -> Recording:
    return read("\n".join(json.dumps(row) for row in rows).encode())


def said(n: int, text: str, *, minutes: float = 0, **fields: object) -> dict[str, object]:
    row = {"id": n, "time": THEN + int(minutes * MINUTE), "chat": "ada", "author_id": "ada", "text": text}
    return row | fields


async def recording(config: Config, lines: Recording) -> Tally:
    clock = RecordedTime(lines.lines[0].time)
    async with app.opened(config, {}, now=clock) as parts:
        return await record(setup_of(config, parts), lines, clock, lambda count: None)


async def answering(config: Config, lines: Recording) -> Tally:
    clock = RecordedTime(lines.lines[0].time)
    channels = {name: ReplayChannel(name) for name in lines.channels}
    heard = everybody(channels)
    async with (
        app.opened(config, channels, now=clock) as parts,
        app.answering(config, channels, parts, now=clock, admission=heard) as router,
    ):
        setup = setup_of(config, parts)
        return await answer(setup, lines, clock, lambda count: None, host=router, channels=channels)


async def look(
    config: Config, *, chat: str = "ada", person: str = "ada", kind: str = "private"
) -> tuple[list[Message], list[str]]:
    """The session's messages as a search finds them, and what is known, some time after."""
    async with app.opened(config, {}, now=lambda: THEN + 30 * 24 * 60 * MINUTE) as parts:
        memory = parts.roster.stores["assistant"].memory
        context = await there(memory, chat, person, kind)
        hits = await memory.browse.search(context, "lisbon peanuts noted live hello", limit=50)
        known = [f"{one.key} {one.value}" for one in await memory.browse.memories(context, limit=50)]
        return sorted((hit.passage.message for hit in hits if hit.passage is not None), key=lambda m: m.id), known


async def there(memory: Service, chat: str, person: str, kind: str) -> Context:
    where = Where(
        session_key=f"replay:{chat}:-",
        platform="replay",
        chat=chat,
        chat_kind="group" if kind == "group" else "private",
        thread=None,
        agent="assistant",
    )
    return await memory.identities.context(where, Who(platform="replay", user_id=person, name=person))


async def test_record_only_keeps_both_roles_with_their_ids_and_times_and_learns(config: Config) -> None:
    """It is the door by which an old conversation becomes memory."""
    lines = recorded(
        said(1, "I live in Lisbon"),
        said(2, "Noted, Lisbon.", minutes=0.1, role="assistant", author_id=None),
        said(3, "I'm allergic to peanuts", minutes=600),
    )
    tally = await recording(config, lines)
    messages, known = await look(config)
    assert [(m.role, m.platform_ref, m.said_at - THEN) for m in messages] == [
        ("user", "1", 0),
        ("assistant", "2", MINUTE // 10),
        ("user", "3", 600 * MINUTE),
    ]
    assert [m.sitting for m in messages] == [1, 1, 2]
    assert {"home Lisbon", "allergy peanuts"} <= set(known)
    assert (tally.messages, tally.failures, len(tally.people), len(tally.sessions)) == (3, 0, 1, 1)
    assert tally.memories == len(known)


@pytest.mark.parametrize("way", [recording, answering])
async def test_replaying_twice_doubles_nothing(config: Config, way: object) -> None:
    """A replay that was stopped is simply started again."""
    play = recording if way is recording else answering
    lines = recorded(said(1, "I live in Lisbon"), said(1, "I live in Lisbon"), said(2, "hello Lisbon", minutes=5))
    first = await play(config, lines)
    assert (first.messages, first.repeated) == (2, 1)
    before = await look(config)
    again = await play(config, lines)
    assert (again.messages, again.repeated, again.memories) == (0, 3, 0)
    assert await look(config) == before


async def test_a_person_is_answered_at_the_time_of_the_recording(config: Config) -> None:
    """So that "yesterday" means the day before it was said; the recording's own answers give way."""
    lines = recorded(
        said(1, "I live in Lisbon"),
        said(2, "The recording's own answer, hello", role="assistant"),
        said(3, "Where do I live?", minutes=24 * 60),
    )
    tally = await answering(config, lines)
    messages, known = await look(config)
    assert "home Lisbon" in known
    assert (tally.messages, tally.left_out, tally.failures) == (2, 1, 0)
    answers = [m.text for m in messages if m.role == "assistant"]
    assert any("yesterday" in text and "Lisbon" in text for text in answers)
    assert not any("own answer" in text for text in answers)
    assert max(m.said_at for m in messages) == THEN + 24 * 60 * MINUTE


async def test_group_talk_that_is_not_for_the_bot_is_stored_only_when_recording(config: Config) -> None:
    """Answering follows the policy of every platform; recording keeps what it is given."""
    group: dict[str, Any] = {"chat": "club", "chat_kind": "group"}
    lines = recorded(
        said(1, "hello all", addressed=False, **group), said(2, "hello bot", minutes=1, author_id="ben", **group)
    )
    tally = await answering(config, lines)
    assert (tally.messages, tally.left_out) == (1, 1)
    messages, _ = await look(config, chat="club", kind="group")
    assert [m.platform_ref for m in messages if m.role == "user"] == ["2"]
    assert (await recording(config, lines)).messages == 1
    messages, _ = await look(config, chat="club", kind="group")
    assert {m.platform_ref for m in messages if m.role == "user"} == {"1", "2"}


async def test_what_several_people_say_is_kept_under_their_names(config: Config) -> None:
    """Also where the bot speaks in between or first."""
    group: dict[str, Any] = {"chat": "club", "chat_kind": "group"}
    lines = recorded(
        said(1, "hello from the bot", role="assistant", author_id=None, **group),
        said(2, "hello, ada here", **group),
        said(3, "hello again from the bot", role="assistant", author_id=None, **group),
        said(4, "hello, ben here", author_id="ben", author_name="Ben", **group),
    )
    assert (await recording(config, lines)).messages == 4
    messages, _ = await look(config, chat="club", kind="group")
    assert [(m.platform_ref, m.role, m.author_name) for m in messages] == [
        ("1", "assistant", ""), ("2", "user", "ada"), ("3", "assistant", ""), ("4", "user", "Ben"),
    ]  # fmt: skip


async def test_one_persons_recording_is_nobody_elses_memory(config: Config) -> None:
    lines = recorded(said(1, "I live in Lisbon"), said(1, "hello Lisbon", chat="ben", author_id="ben"))
    await recording(config, lines)
    messages, known = await look(config, chat="ben", person="ben")
    assert [m.author_name for m in messages] == ["ben"] and known == []


async def test_commands_and_secrets_in_a_recording_are_not_learned(config: Config) -> None:
    """A recording holds what people pasted; it is masked before it is stored, as live."""
    key = "sk-ant-" + "a1B2c3D4" * 4
    lines = recorded(said(1, f"hello, my key is {key}"), said(2, "/remember I live in Lisbon", minutes=1))
    await recording(config, lines)
    messages, known = await look(config)
    assert known == [] and all(key not in m.text for m in messages)
    stored = b"".join(path.read_bytes() for path in config.data_dir.iterdir() if path.is_file())
    assert key.encode() not in stored


async def test_lines_that_a_killed_replay_had_taken_are_kept_by_the_next(config: Config) -> None:
    """They are known already, so without this they would be taken for repeats."""
    lines = recorded(said(1, "hello"), said(2, "hello Lisbon", minutes=0.1))
    inbound = lines.lines[0].inbound
    async with app.opened(config, {}, now=lambda: THEN) as parts:
        await parts.roster.stores["assistant"].memory.mailbox.receive(
            platform=inbound.platform,
            bot_id=inbound.bot_id,
            update_key=inbound.update_key,
            session_key=inbound.place.session_key,
            payload=inbound.to_json(),
        )
    for count in (2, 0):
        assert (await recording(config, lines)).messages == count
    messages, _ = await look(config)
    assert [m.platform_ref for m in messages] == ["1", "2"]


async def test_lines_where_no_person_ever_speaks_are_left_out(config: Config) -> None:
    """They would be nobody's memory."""
    lines = recorded(said(1, "hello"), said(2, "News of the day", chat="feed", role="assistant", author_id=None))
    tally = await recording(config, lines)
    assert (tally.messages, tally.left_out) == (1, 1)


async def test_a_recording_of_thousands_of_lines_reports_how_far_it_is(config: Config) -> None:
    """Progress adds up to the length of the recording, whatever is left out."""
    lines = recorded(*(said(n, f"hello number {n}", minutes=n * 0.01) for n in range(450)))
    steps: list[int] = []
    clock = RecordedTime(lines.lines[0].time)
    async with app.opened(config, {}, now=clock) as parts:
        await record(setup_of(config, parts), lines, clock, steps.append)
    assert sum(steps) == 450 and len(steps) > 2
    assert clock() == lines.lines[-1].time + MINUTE


# `python -m bench.replay` as a person types it


ROW = {
    "id": 1, "time": "2024-03-01T12:00:00Z", "channel": "telegram", "chat": 7, "author_id": 7,
    "text": "I live in Lisbon",
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.yaml").write_text("data_dir: data\n", "utf-8")
    return tmp_path


def replayed(folder: Path, *arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(replay.main, [*arguments, "--config", str(folder / "config.yaml")], input=stdin)


def write(folder: Path, *rows: object) -> str:
    path = folder / "talk.jsonl"
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), "utf-8")
    return str(path)


@pytest.mark.parametrize("options", [[], ["--record-only"]])
def test_a_recording_is_replayed_once_and_summed_up(folder: Path, options: list[str]) -> None:
    path = write(folder, ROW, ROW | {"id": 2, "role": "assistant", "text": "Noted."})
    first = replayed(folder, path, *options)
    assert first.exit_code == 0, first.stderr
    summary = first.stdout
    assert "1 sessions, 1 people, 1 memories learned, 0 failures" in summary or "2 memories learned" in summary
    assert summary.startswith("2 messages recorded" if options else "1 messages answered")
    assert "2 of 2 messages" in first.stderr
    second = replayed(folder, path, *options)
    assert second.stdout.startswith("0 messages") and "0 memories learned" in second.stdout


def test_wrong_lines_are_all_named_and_nothing_is_stored(folder: Path) -> None:
    """Half a recording would have to be found and forgotten by hand."""
    done = replayed(folder, write(folder, ROW, "{", ROW | {"time": "noon"}))
    errors = done.stderr
    assert done.exit_code == 65
    assert "line 2: is not JSON" in errors and "line 3: time must be like" in errors and "was stored" in errors
    assert not (folder / "data").exists()


def test_a_recording_may_come_through_a_pipe(folder: Path) -> None:
    done = replayed(folder, "-", "--record-only", stdin=json.dumps(ROW | {"odd": 1}))
    assert done.exit_code == 0 and "1 messages recorded" in done.stdout
    assert "Ignoring unknown fields: odd" in done.stderr


def test_a_missing_file_is_said_in_one_line(folder: Path) -> None:
    done = replayed(folder, "nowhere.jsonl")
    assert done.exit_code == 2 and "nowhere.jsonl" in done.stderr and "Traceback" not in done.stderr
