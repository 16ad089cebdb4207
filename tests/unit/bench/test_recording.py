"""Recorded conversations are read line by line, and every wrong line is named."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.recording import BadRecording, Recorded, read

GOOD = {"id": "1", "time": "2026-05-12T09:30:00+02:00", "chat": "7", "author_id": "ada", "text": "hello"}


def raw(*rows: object) -> bytes:
    return "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows).encode()


def only(row: dict[str, Any]) -> Recorded:
    (line,) = read(raw(row)).lines
    return line


def problems(*rows: object) -> tuple[str, ...]:
    with pytest.raises(BadRecording) as caught:
        read(raw(*rows))
    return caught.value.problems


def test_few_fields_are_enough() -> None:
    """A private chat of one person needs no more than who said what when."""
    line = only(GOOD)
    assert (line.channel, line.chat_kind, line.thread, line.role) == ("replay", "private", None, "user")
    assert (line.author_name, line.addressed, line.reply_to) == ("ada", True, None)


@pytest.mark.parametrize("time", ["2026-05-12T07:30:00Z", "2026-05-12 09:30:00+02:00", 1778571000000])
def test_one_moment_can_be_written_in_several_ways(time: object) -> None:
    """ISO 8601 with any offset, or milliseconds."""
    assert only(GOOD | {"time": time}).time == only(GOOD).time == 1778571000000


def test_ids_may_be_numbers() -> None:
    """Platforms give them so; in the store they are text."""
    line = only(GOOD | {"id": 12, "chat": -1001, "author_id": 7, "thread": 45, "reply_to": 11})
    assert (line.id, line.chat, line.author_id, line.thread, line.reply_to) == ("12", "-1001", "7", "45", "11")


def test_other_names_of_a_field_are_understood_and_unknown_fields_are_named() -> None:
    """A field that means nothing here must not be dropped in silence: it may be a misspelled one."""
    row = {"message_id": 5, "timestamp": 1778571000000, "chat": 7, "author_id": 7, "content": "hi", "adressed": False}
    recording = read(raw(row))
    assert (recording.lines[0].id, recording.lines[0].text, recording.unknown) == ("5", "hi", ("adressed",))
    assert problems(row | {"text": "ho"}) == ("line 1: has text twice, once under another name",)


def test_every_wrong_line_is_named_with_all_that_is_wrong() -> None:
    """Who corrects a recording of a thousand lines wants to do it once."""
    found = problems(
        GOOD,
        "",
        "{not json",
        "[1]",
        GOOD | {"time": "yesterday", "role": "bot", "addressed": "yes"},
        {"id": "2"},
        GOOD | {"time": "2026-05-12T09:30:00"},
        GOOD | {"time": 1778571000},
        GOOD | {"text": "  "},
        GOOD | {"id": True},
    )
    assert [problem.split(":")[0] for problem in found] == [
        "line 3", "line 4", "line 5", "line 5", "line 5", "line 6", "line 7", "line 8", "line 9", "line 10",
    ]  # fmt: skip
    text = "\n".join(found)
    for part in (
        "line 3: is not JSON", "braces", "role must be user or assistant", "true or false",
        "time, chat, text, author_id are missing", "no offset", "milliseconds", "text is empty", "id must be text",
    ):  # fmt: skip
        assert part in text


def test_bytes_that_are_no_text_are_a_wrong_line() -> None:
    with pytest.raises(BadRecording, match="line 2: is not UTF-8 text"):
        read(raw(GOOD) + b"\n\xff\xfe{}")


def test_a_recording_without_messages_is_refused() -> None:
    """An empty export is a mistake somebody wants to hear of."""
    with pytest.raises(BadRecording, match="no messages"):
        read(b"\n  \n")


def test_two_people_in_one_private_chat_are_refused() -> None:
    """The words of one of them would be remembered for the other."""
    (found,) = problems(GOOD, GOOD | {"id": "2", "author_id": "ben"})
    assert found.startswith("line 2: ben speaks in ada's private chat (line 1)")
    group = [GOOD | {"id": str(n), "author_id": f"p{n}", "chat_kind": "group"} for n in range(3)]
    assert len(read(raw(*group)).lines) == 3


def test_a_chat_is_either_private_or_a_group() -> None:
    (found,) = problems(GOOD, GOOD | {"id": "2", "chat_kind": "group"})
    assert "group here, but private in line 1" in found


def test_lines_come_in_the_order_of_their_times() -> None:
    """Exports are often newest first; the clock of a replay only goes forward. Equal times keep their order."""
    rows = [GOOD | {"id": str(n), "time": 1778571000000 - n // 2} for n in range(4)]
    assert [line.id for line in read(raw(*rows)).lines] == ["2", "3", "0", "1"]


def test_one_id_in_two_chats_is_two_messages() -> None:
    """Platforms number messages per chat; threads of a chat share its numbers."""
    keys = [only(GOOD | {"chat": chat, "thread": thread}).inbound.update_key for chat, thread in
            (("7", None), ("8", None), ("7", "x"))]  # fmt: skip
    assert keys[0] == keys[2] != keys[1]


@given(st.text(min_size=1).filter(str.strip))
def test_any_text_survives_as_something_that_can_be_stored(text: str) -> None:
    """JSON can hold half a surrogate pair, a database can't."""
    half = json.dumps(GOOD | {"text": text + "\ud800"}).encode()
    stored = read(half).lines[0].text.encode().decode()
    assert stored.startswith(text) and stored.removeprefix(text).strip("\ufffd") == ""


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    found: tuple[object, ...]
    try:
        found = read(data).lines
    except BadRecording as exc:
        found = exc.problems
    assert found
