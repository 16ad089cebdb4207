"""Exports of other assistants, read. The forms are those that the programs document or write themselves."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.transfer.formats import assistants
from memory.transfer.formats.material import Material

AT = 1_704_103_200_000


def read(*files: object, names: tuple[str, ...] = ("conversations.json",), learn: bool = True) -> Material:
    texts = [
        (name, file if isinstance(file, str) else json.dumps(file)) for name, file in zip(names, files, strict=True)
    ]
    material = assistants.read(texts, at=AT, timezone="UTC", mask=str, learn=learn)
    assert material is not None
    return material


def said(material: Material) -> list[tuple[str, str, int]]:
    return [(line.role, line.text, line.said_at) for line in material.lines]


def node(number: int, parent: str | None, message: dict[str, Any] | None) -> dict[str, Any]:
    return {"id": f"n{number}", "parent": parent, "children": [], "message": message}


def chatgpt_message(role: str, text: object, at: float | None, **fields: Any) -> dict[str, Any]:
    parts = text if isinstance(text, list) else [text]
    content = {"content_type": "text", "parts": parts}
    return {
        "author": {"role": role},
        "create_time": at,
        "content": content,
        "recipient": "all",
        "metadata": {},
    } | fields


def chatgpt(*nodes: dict[str, Any], last: str = "") -> list[dict[str, Any]]:
    mapping = {one["id"]: one for one in nodes}
    last = last or list(mapping)[-1]
    return [
        {"title": "Home", "create_time": 1704103200.5, "mapping": mapping, "current_node": last, "is_archived": False}
    ]


def test_the_branch_of_chatgpt_that_was_shown_last_is_read() -> None:
    material = read(
        chatgpt(
            node(0, None, None),
            node(1, "n0", chatgpt_message("system", "You are helpful.", None)),
            node(2, "n1", chatgpt_message("user", "I live in Basel", 1704103201.0)),
            node(3, "n1", chatgpt_message("user", "I live in Bern", 1704103202.25)),
            node(4, "n3", chatgpt_message("assistant", "A city on the Aare.", 1704103203.0)),
        )
    )
    assert said(material) == [
        ("user", "I live in Bern", 1704103202250),
        ("assistant", "A city on the Aare.", 1704103203000),
    ]
    assert material.format == "ChatGPT"
    assert [line.learn for line in material.lines] == [True, False]
    assert [line.name for line in material.lines] == ["", "ChatGPT"]


def test_pictures_and_speech_are_named_and_thoughts_are_left_out() -> None:
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_1", "size_bytes": 9}
    speech = {"content_type": "audio_transcription", "text": "my dog is Rex", "direction": "in"}
    thought = chatgpt_message("assistant", "", 1704103204.0) | {"content": {"content_type": "thoughts", "thoughts": []}}
    call = chatgpt_message("assistant", "search('dogs')", 1704103205.0, recipient="web.run")
    material = read(
        chatgpt(
            node(
                1, None, chatgpt_message("user", [picture, speech, {"content_type": "new", "text": "?"}], 1704103201.0)
            ),
            node(2, "n1", thought),
            node(3, "n2", call),
        )
    )
    assert [line.text for line in material.lines] == ["[picture]\nmy dog is Rex"]
    assert [(one.where, one.why) for one in material.skipped] == [("all files", "2 messages of systems and tools")]


def test_claude_tells_a_conversation_and_its_files() -> None:
    def message(sender: str, text: str, **fields: Any) -> dict[str, Any]:
        content = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": text}]
        return {
            "uuid": "m",
            "sender": sender,
            "text": "old",
            "content": content,
            "created_at": "2024-01-01T10:00:05.5Z",
        } | fields

    file = {"file_name": "cv.pdf", "file_size": 9, "extracted_content": "…"}
    talk = [message("human", "I am a baker", attachments=[file], files=[]), message("assistant", "Noted.")]
    material = read([{"uuid": "c", "name": "Work", "created_at": "2024-01-01T10:00:00Z", "chat_messages": talk}])
    assert said(material) == [
        ("user", "I am a baker\n[file: cv.pdf]", 1704103205500), ("assistant", "Noted.", 1704103205500),
    ]  # fmt: skip


def test_open_webui_tells_a_tree_or_a_list() -> None:
    def message(name: str, parent: str | None, role: str, content: object) -> dict[str, Any]:
        return {"id": name, "parentId": parent, "role": role, "content": content, "timestamp": 1704103300}

    messages = {
        "a": message("a", None, "user", "I like tea"),
        "b": message("b", "a", "assistant", "Which?"),
        "c": message("c", "a", "assistant", [{"type": "text", "text": "Good."}]),
    }
    tree = {"id": "1", "title": "Tea", "chat": {"history": {"messages": messages, "currentId": "c"}}}
    plain = {"id": "2", "title": "Old", "chat": {"messages": [message("x", None, "user", "I play chess")]}}
    material = read([tree, plain])
    assert [line.text for line in material.lines] == ["I like tea", "Good.", "I play chess"]


def test_openclaw_tells_a_conversation_line_by_line() -> None:
    def message(role: str, text: str) -> str:
        content = [{"type": "text", "text": text}, {"type": "toolCall", "name": "exec"}]
        return json.dumps(
            {"type": "message", "timestamp": "2024-01-01T10:00:05Z", "message": {"role": role, "content": content}}
        )

    lines = [
        json.dumps({"type": "session", "version": 3, "id": "s", "timestamp": "2024-01-01T10:00:00Z"}),
        message("user", "[Telegram Ada id:77 2024-01-01 10:00 UTC] I live in Bern\n[message_id: 12]"),
        message("user", "[Discord Guild #group channel id:5] Eve: I live in Rome"),
        message("toolResult", "exit 0"),
        "{broken",
    ]
    material = read("\n".join(lines), names=("s.jsonl",))
    assert [(line.text, line.learn) for line in material.lines] == [
        ("I live in Bern", True),
        ("Eve: I live in Rome", False),
    ]
    assert [one.where for one in material.skipped] == ["s.jsonl:5", "all files"]


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ({"results": [{"id": "1", "memory": "Name is Ada", "user_id": "ada", "created_at": "2024-01-01T10:00:00-07:00"}]}, "mem0"),
        ([{"id": "1", "user_id": "u", "content": "Name is Ada", "updated_at": 1704103200, "created_at": 1704103200}], "a list"),
        ([{"account_uuid": "a", "conversations_memory": "**Name:** Ada", "project_memories": {"p": "- Deploys on Tuesday"}}], "Claude"),
    ],
)  # fmt: skip
def test_lists_of_memories_become_statements(file: object, name: str) -> None:
    material = read(file)
    assert material.format == name and not material.lines
    assert any("Ada" in item.value for item in material.items)


def test_what_is_of_no_known_form_is_none_of_these() -> None:
    assert assistants.read([("log.jsonl", '{"a": 1}')], at=AT, timezone="UTC", mask=str, learn=True) is None
    for text in ("{", "[]", '{"name": "Remora", "messages": []}', "[1, null]"):
        assert assistants.read([("x.json", text)], at=AT, timezone="UTC", mask=str, learn=True) is None


def test_a_bad_entry_costs_no_other() -> None:
    good = chatgpt(node(1, None, chatgpt_message("user", "I live in Bern", 1704103201.0)))
    timeless = chatgpt(node(1, None, chatgpt_message("user", "when?", None)))[0] | {"create_time": "soon"}
    loop = chatgpt(node(1, "n2", chatgpt_message("user", "round", 1.0)), node(2, "n1", None))
    empty: dict[str, Any] = {"chat": {"history": {"messages": {}}}}
    material = read([17, *good, timeless, *loop, {"unknown": 1}, empty])
    assert "I live in Bern" in [line.text for line in material.lines]
    assert [one.where for one in material.skipped] == [f"conversations.json, entry {n}" for n in (1, 3, 5)]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "mapping",
                    "message",
                    "content",
                    "parts",
                    "chat",
                    "history",
                    "messages",
                    "chat_messages",
                    "memory",
                    "parent",
                    "role",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
)


@given(rows=st.lists(JSON, max_size=5), name=st.sampled_from(["conversations.json", "s.jsonl"]))
def test_no_content_makes_it_fail(rows: list[object], name: str) -> None:
    assistants.read([(name, json.dumps(rows))], at=AT, timezone="UTC", mask=str, learn=True)
