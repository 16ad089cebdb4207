"""Exports of Telegram Desktop, read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.transfer.formats.material import ImportedLine, Material
from memory.transfer.formats.telegram import NotTelegramExport, Talk, lines, read
from tests.kit.tables import each_row


def message(number: int, text: object, **fields: Any) -> dict[str, Any]:
    return {
        "id": number, "type": "message", "date": "2024-01-01T10:00:00", "date_unixtime": str(1_704_103_200 + number),
        "from": "Ada", "from_id": "user77", "text": text,
    } | fields  # fmt: skip


def chat(*messages: object, kind: str = "bot_chat", number: int = 999) -> dict[str, Any]:
    return {"name": "Remora", "type": kind, "id": number, "messages": list(messages)}


def talk(document: object) -> Talk:
    (found,) = read(json.dumps(document)).talks
    return found


def said(document: object, *, owner: str | None = "77", bots: tuple[str, ...] = ("999",)) -> Material:
    return lines(talk(document), owner=owner, bots=bots, timezone="UTC", mask=str, learn=True)


def one(*messages: object, **fields: Any) -> ImportedLine:
    (line,) = said(chat(*messages, **fields)).lines
    return line


def test_text_may_be_a_string_or_pieces() -> None:
    """Telegram writes a link or a bold word as an object."""
    pieces = ["see ", {"type": "link", "text": "https://x.example"}, " and ", {"type": "bold", "text": "go"}]
    assert one(message(2, pieces)).text == "see https://x.example and go"


def test_roles_follow_from_who_spoke() -> None:
    """The owner is a person, our bot the assistant, whatever they are called."""
    found = said(chat(message(2, "hi"), message(3, "hello", from_id="user999"))).lines
    assert [(line.role, line.learn, line.author is not None) for line in found] == [
        ("user", True, True),
        ("assistant", False, False),
    ]


def test_what_others_said_in_a_private_chat_is_nobodys_fact() -> None:
    """Their words stand in the owner's history, and teach nothing about them."""
    found = said(chat(message(2, "I live in Porto", from_id="user5", **{"from": "Bob"}), kind="personal_chat")).lines
    assert [(line.role, line.author, line.name, line.learn) for line in found] == [("user", None, "Bob", False)]


@pytest.mark.parametrize(
    "fields",
    [{"forwarded_from": "Bob"}, {"text": [{"type": "bot_command", "text": "/start"}]}, {"text": "", "photo": "x.jpg"}],
)
def test_forwarded_words_commands_and_pictures_teach_nothing(fields: dict[str, Any]) -> None:
    assert not one(message(2, "hello") | fields).learn


def test_times_are_telegrams_own_or_else_the_local_ones() -> None:
    """Old exports have no Unix times."""
    old = message(2, "hi")
    del old["date_unixtime"]
    found = lines(talk(chat(old)), owner="77", bots=(), timezone="Europe/Lisbon", mask=str, learn=True).lines
    assert found[0].said_at == 1_704_103_200_000
    assert one(message(2, "hi")).said_at == 1_704_103_202_000


def test_files_are_named_and_stickers_shown() -> None:
    """Nobody has their bytes here."""
    assert one(message(2, "look", file="x", file_name="report [1].pdf")).text == "[file: report 1 .pdf] look"
    assert one(message(2, "", media_type="sticker", sticker_emoji="🐟", file="x")).text == "[sticker 🐟]"


def test_a_forums_topics_become_threads() -> None:
    """A reply within a topic names the message it answers, not the topic."""
    topic = {"id": 10, "type": "service", "action": "topic_created", "title": "Trips", "date": "2024-01-01T10:00:00"}
    found = said(
        chat(
            topic,
            message(11, "first", reply_to_message_id=10),
            message(12, "second", reply_to_message_id=11),
            message(13, "elsewhere"),
            kind="private_supergroup",
            number=123,
        ),
        owner=None,
    ).lines
    assert [(line.thread, line.reference) for line in found] == [("10", "11"), ("10", "12"), (None, "13")]


def test_group_numbers_are_those_a_bot_knows() -> None:
    """Telegram Desktop leaves out what the Bot API puts before them."""
    assert talk(chat(kind="private_supergroup", number=123)).references == ("-100123",)
    assert talk(chat(kind="private_group", number=123)).references == ("-123",)


def test_a_whole_account_holds_many_chats() -> None:
    account = {
        "personal_information": {"user_id": 77},
        "chats": {"list": [chat(message(2, "a")), {"type": "saved_messages", "id": 77, "messages": []}, "?"]},
        "left_chats": {"list": [chat(kind="private_group", number=5)]},
    }
    export = read(json.dumps(account))
    assert export.account == "77" and [found.kind for found in export.talks] == ["bot", "saved", "group"]
    assert [skipped.where for skipped in export.skipped] == ["chat 3"]


def test_bad_messages_are_named_and_cost_no_other() -> None:
    found = said(chat(message(2, "good"), 5, {"id": 4, "type": "message", "text": "when?"}, message(6, "too")))
    assert [line.text for line in found.lines] == ["good", "too"]
    assert [skipped.where for skipped in found.skipped] == ["Remora, message #2", "Remora, message 4"]


@pytest.mark.parametrize("cut", [40, 120, 300])
def test_a_file_that_breaks_off_gives_what_stands_before(cut: int) -> None:
    whole = json.dumps(chat(*(message(n, f"message {n}") for n in range(2, 40))))
    export = read(whole[:-cut])
    assert 20 < len(export.talks[0].messages) < 38 and export.talks[0].id == "999"
    assert export.skipped


@each_row("text", ["", "[]", "{}", '{"messages": 3}', "<html>", "[" * 100_000])
def test_what_is_no_export_is_refused_in_words(text: str) -> None:
    with pytest.raises(NotTelegramExport):
        read(text)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_FIELDS = st.dictionaries(
    st.sampled_from(["id", "type", "date", "date_unixtime", "from", "from_id", "text", "text_entities", "photo", "file",
                     "file_name", "media_type", "sticker_emoji", "poll", "reply_to_message_id", "action"]),
    _JSON | st.sampled_from(["message", "service", "user77", "2024-01-01T10:00:00", "topic_created"]),
)  # fmt: skip


@given(st.lists(_FIELDS | _JSON, max_size=6), st.sampled_from(["bot_chat", "private_supergroup", "?"]), _JSON)
def test_whatever_stands_in_an_export_is_read(messages: list[object], kind: str, number: object) -> None:
    """No JSON may end an import but one that is no export at all."""
    document = {"type": kind, "id": number, "name": number, "messages": messages}
    for found in read(json.dumps(document)).talks:
        for owner in ("77", None):
            material = lines(found, owner=owner, bots=("9",), timezone="UTC", mask=str, learn=True)
            assert all(line.text.strip() and line.said_at > 0 for line in material.lines)
