"""Conversation sets of several shapes become lines that a replay takes."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import recording
from bench.convert import Dataset, UnknownShape, evermemos, load, locomo, madial, main, memdaily, moment
from tests.kit.tables import each_row

AT = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)


def replayable(dataset: Dataset) -> recording.Recording:
    """The rows as `bench.replay` would read them; raises where one is wrong."""
    return recording.read("\n".join(json.dumps(row) for row in dataset.rows).encode())


def conversation(**changes: Any) -> dict[str, Any]:
    talk: dict[str, Any] = {
        "speaker_a": "Ada", "speaker_b": "Ben",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [{"speaker": "Ada", "dia_id": "D1:1", "text": "Look!", "blip_caption": "a photo of a cat"},
         {"speaker": "Ben", "dia_id": "D1:2", "text": "Nice"}],
        "session_10_date_time": "9:00 am on 1 June, 2023",
        "session_10": [{"speaker": "Cem", "dia_id": "D10:1", "text": "Me too"}],
        "session_2_date_time": "9:00 am on 20 May, 2023",
        "session_2": [{"speaker": "Ada", "dia_id": "D2:1", "text": "Again"}],
    }  # fmt: skip
    question = {"question": "What did Ada show?", "evidence": ["D1:1; D2:1", "D9:9"], "category": 1}
    return {"sample_id": "conv-1", "conversation": talk | changes, "qa": [question]}


def test_locomo_becomes_a_group_of_its_speakers_in_the_order_of_its_sessions() -> None:
    """Session 10 comes after session 2, a third speaker is one more person, a caption is part of what was said."""
    dataset = locomo("dev", [conversation()])
    lines = replayable(dataset).lines
    assert [line.id for line in lines] == ["D1:1", "D1:2", "D2:1", "D10:1"]
    assert {line.author_name for line in lines} == {"Ada", "Ben", "Cem"}
    assert {line.chat_kind for line in lines} == {"group"}
    assert lines[0].text == "Look! a photo of a cat"
    assert lines[0].time == int(AT.timestamp() * 1000)


def test_gold_is_what_the_evidence_names_and_the_chat_has() -> None:
    """Citations come as lists, as one string, with several in one; some name turns that do not exist."""
    dataset = locomo("dev", [conversation()])
    (asked,) = dataset.asked
    assert asked.gold == {"D1:1", "D2:1"}
    assert (asked.chat, asked.asker, asked.category) == ("conv-1", "conv-1/Ada", "1")
    assert asked.at > datetime(2023, 6, 1, tzinfo=UTC)
    sample = conversation() | {"qa": [{"question": "?", "evidence": "D1:2", "category": 2}, {"question": "?"}]}
    dataset = locomo("dev", [sample])
    assert [one.gold for one in dataset.asked] == [{"D1:2"}]
    assert dataset.left_out == {"questions without evidence that exists": 1}


def test_speakers_of_one_name_in_two_conversations_are_two_people() -> None:
    other = conversation() | {"sample_id": "conv-2"}
    assert len({row["author_id"] for row in locomo("dev", [conversation(), other]).rows}) == 6


def test_sessions_without_a_readable_date_are_spread_and_it_is_said() -> None:
    """Each must stay a sitting of its own, after the one before."""
    dataset = locomo("dev", [conversation(session_1_date_time="some day", session_2_date_time=None)])
    times = [line.time for line in replayable(dataset).lines if line.id in ("D1:1", "D2:1")]
    assert times[1] - times[0] > 3 * 3_600_000
    assert dataset.notes[0].endswith(": 2") and "without a date" in dataset.notes[0]


def test_an_id_given_twice_keeps_both_messages() -> None:
    """A replay takes an id once, so the second would be lost."""
    turns = [{"speaker": "Ada", "dia_id": "D1:1", "text": text} for text in ("one", "two")]
    dataset = locomo("dev", [conversation(session_1=turns)])
    assert {"one", "two"} <= {line.text for line in replayable(dataset).lines}
    assert len({row["id"] for row in dataset.rows}) == len(dataset.rows)


def test_madial_asks_with_the_users_turns_before_the_last_one_tested() -> None:
    """The assistant's turns, and later ones, would give the answer away."""
    memories = [{str(n): {"id": str(n), "time": "2023-12-25", "event": f"event {n}", "user-id": 1}} for n in range(9)]
    turns = ["<BOD>\n", '<Bart>:"hello"\n', '<Assistant>:"hm"\n', '<Bart>:"magic"\n', '<Assistant>:"event 1"\n',
             '<Bart>:"later"\n', "<EOD>\n"]  # fmt: skip
    dialogues = [{"dialogue": turns, "test-turn": [2, 4], "relevant-id": [1, 77], "id": 0}]
    dataset = madial("zh", memories, dialogues)
    (asked,) = dataset.asked
    assert asked.text == "hello\nmagic" and asked.gold == {"1"}
    lines = replayable(dataset).lines
    assert len(lines) == 9 and {line.chat_kind for line in lines} == {"private"}


def test_memories_of_one_day_are_sittings_of_their_own() -> None:
    """They are told apart in the set, so none is a neighbour of another."""
    memories = [{"id": str(n), "time": "2023-12-25", "event": f"event {n}"} for n in range(7)]
    times = sorted(line.time for line in replayable(madial("zh", memories, [])).lines)
    assert all(later - before > 3 * 3_600_000 for before, later in pairwise(times))


def test_memdaily_gives_each_trajectory_a_person_and_asks_the_longer_ones() -> None:
    """Of few messages any search finds all."""
    said = [{"mid": n, "message": f"消息{n}", "time": f"2024年04月{n + 1:02}日 周一 08:30"} for n in range(8)]
    question = {"question": "什么？", "target_step_id": [3], "time": "2024年05月01日 周三 09:00"}
    samples = [
        {"tid": 0, "file": "01_simple.json", "message_list": said, "question_list": [question]},
        {"tid": 0, "file": "02_other.json", "message_list": said[:4], "question_list": [question]},
    ]
    dataset = memdaily("daily", samples)
    (asked,) = dataset.asked
    assert asked.gold == {"3"}
    assert (asked.category, asked.at) == ("01_simple", datetime(2024, 5, 1, 9, tzinfo=UTC))
    assert dataset.smallest == 8 and sum(dataset.left_out.values()) == 1
    lines = replayable(dataset).lines
    assert len({line.author_id for line in lines}) == len({line.chat for line in lines}) == 2


def test_a_chat_with_an_assistant_is_private_and_one_of_several_people_a_group() -> None:
    people = {"u": {"full_name": "User", "role": "user"}, "r": {"full_name": "Robot", "role": "assistant"}}
    said = [
        {
            "message_id": "1", "create_time": "2025-06-26T00:00:00Z", "sender": "u", "sender_name": "user",
            "content": "a",
        },
        {"message_id": "2", "create_time": "2025-06-26T00:00:30Z", "sender": "r", "sender_name": "bot", "content": "b"},
        {
            "message_id": "3", "create_time": "2025-06-26T00:01:00Z", "sender": "u", "sender_name": "user",
            "content": " ",
        },
    ]  # fmt: skip
    dataset = evermemos("solo", {"session_meta": {"user_details": people}, "conversation_list": said})
    lines = replayable(dataset).lines
    assert [(line.role, line.chat_kind) for line in lines] == [("user", "private"), ("assistant", "private")]
    assert sum(dataset.left_out.values()) == 1
    people["v"] = {"full_name": "Another", "role": "user"}
    group = evermemos("team", {"session_meta": {"user_details": people}, "conversation_list": said})
    assert {row["chat_kind"] for row in group.rows} == {"group"}


@each_row("text", [
        "1:56 pm on 8 May, 2023", "8 May, 2023 13:56", "May 8, 2023 1:56 PM", "Monday, May 8th, 2023 at 13:56",
        "08.05.2023, 13:56:00", "2023/05/08 (Mon) 13:56", "2023-05-08 13:56", "2023-05-08T15:56:00+02:00",
        "2023年05月08日 周一 13:56", "2023年5月8日 13:56",
    ])  # fmt: skip
def test_times_are_read_as_different_sets_write_them(text: str) -> None:
    """A sitting put on a wrong day would make every question about time a miss."""
    assert moment(text) == AT


@given(st.text(max_size=40) | st.integers() | st.none())
def test_any_other_value_is_no_time_or_one_with_a_zone(text: object) -> None:
    """Sets hold what they hold; a time without a zone could not be compared with the others."""
    found = moment(text)
    assert found is None or found.tzinfo is not None


def test_a_file_is_told_by_its_shape(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody has to name the shape; one that is none is refused."""
    path = tmp_path / "talk.json"
    path.write_text(json.dumps([conversation()]), "utf-8")
    main([str(path)])
    assert len(capsys.readouterr().out.splitlines()) == 4
    path.write_text('{"a": 1}', "utf-8")
    with pytest.raises(UnknownShape):
        load(path)
