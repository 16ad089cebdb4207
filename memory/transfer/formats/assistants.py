"""Reads what other assistants export or keep: conversations, and lists of memories.

| program | file | conversations | memories |
|---|---|---|---|
| ChatGPT | `conversations.json` | a tree in `mapping`, read from `current_node` back to its beginning | `content` |
| Claude | `conversations.json`, `memories.json` | `chat_messages` | Markdown in `conversations_memory` |
| Open WebUI | its export of chats or memories | a tree in `chat.history`, or `chat.messages` | `content` |
| mem0 | an answer of `get_all` | | `memory` |
| OpenClaw | `sessions/*.jsonl`, one conversation each | one entry a line | (Markdown, see `markdown`) |

Invariants: pure. Of a conversation only the branch that was shown last is read. A bad entry is named and skipped, and
costs no other. The person's words are the owner's; a system's, a tool's and a model's thoughts are nobody's.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from memory.transfer.formats import markdown
from memory.transfer.formats.json_values import array, mapping, moment, string
from memory.transfer.formats.material import ImportedItem, ImportedLine, Mask, Masking, Material, Skipped
from memory.transfer.formats.remora import OWNER

#: Names of the files in an archive or a folder that hold conversations or memories.
NAMED: Final = re.compile(r"(?:conversations|memories|memory|chat-export|memories-export)[-_.0-9]*\.json|[^/]*\.jsonl")
#: Characters read of one message, and the most left-out entries that are named, not only counted.
_TEXT_CHARS: Final = 20_000
_NAMED: Final = 50
_ROLES: Final[Mapping[str, Literal["user", "assistant"]]] = {
    "user": "user", "human": "user", "assistant": "assistant", "model": "assistant"
}  # fmt: skip
#: A line in bold alone, by which Claude's memory heads a part.
_TITLE: Final = re.compile(r"^\*\*([^*\n]{1,100})\*\*[ \t]*$", re.MULTILINE)
#: What OpenClaw puts before a message from a platform, and below it.
_ENVELOPE: Final = re.compile(r"\A\[[A-Z][\w ]{2,20} ([^\]\n]{1,300})\][ \t]*")
_NUMBERED: Final = re.compile(r"\n\[message_id: [^\]\n]{1,100}\]\s*\Z")


@dataclass(frozen=True, slots=True)
class _Said:
    """A message as its export has it: `at` is what it says of its time, `where` its place for a human."""

    role: str
    text: str
    at: object
    where: str
    learn: bool = True


@dataclass(slots=True, kw_only=True)
class _Reading:
    """Collects what is read. `at` is the time of memories without one, milliseconds UTC."""

    at: int
    timezone: str
    masking: Masking
    learn: bool
    lines: list[ImportedLine] = field(default_factory=list)
    items: list[ImportedItem] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    counted: Counter[str] = field(default_factory=Counter)
    formats: set[str] = field(default_factory=set)

    def row(self, raw: object, where: str) -> None:
        row = mapping(raw)
        match row:
            case {"mapping": dict()}:
                self.talk("ChatGPT", _chatgpt(row, where))
            case {"chat_messages": list()}:
                self.talk("Claude", _claude(row, where))
            case {"chat": {"history": {"messages": dict()}} | {"messages": list()}}:
                self.talk("Open WebUI", _open_webui(mapping(row["chat"]), where))
            case {"conversations_memory": str(text)}:
                projects = [string(one) for one in mapping(row.get("project_memories")).values()]
                self.memory("Claude", _TITLE.sub(r"## \1", "\n\n".join([text, *projects])), None, where)
            case {"memory": str(text)} | {"content": str(text)}:
                self.memory("mem0" if "memory" in row else "a list", f"- {' '.join(text.split())}", row, where)
            case _:
                self.skip(where, "it is neither a conversation nor a memory")

    def talk(self, name: str, messages: Iterator[_Said]) -> None:
        for said in messages:
            self.formats.add(name)
            role, words, said_at = _ROLES.get(said.role), said.text.strip(), moment(said.at)
            if role is None:
                self.counted["messages of systems and tools"] += 1
            elif not words:
                self.counted["messages without words or a file"] += 1
            elif said_at is None:
                self.skip(said.where, "it has no time that can be read")
            else:
                own = role == "user"
                line = ImportedLine(
                    number=0,
                    role=role,
                    author=OWNER if own else None,
                    name="" if own else name,
                    text=self.masking(words[:_TEXT_CHARS]),
                    said_at=said_at,
                    learn=self.learn and own and said.learn and not words.startswith(("/", "[")),
                )
                self.lines.append(line)

    def memory(self, name: str, text: str, row: Mapping[str, Any] | None, where: str) -> None:
        self.formats.add(name)
        times = (moment((row or {}).get(key)) for key in ("updated_at", "created_at", "timestamp"))
        written_at = next((at for at in times if at is not None), self.at)
        read = markdown.read(
            text, where=where, written_at=written_at, timezone=self.timezone, mask=self.masking.mask, of="person"
        )
        self.masking.count += read.masked
        self.items += read.items
        self.skipped += read.skipped

    def skip(self, where: str, why: str) -> None:
        if len(self.skipped) < _NAMED:
            self.skipped.append(Skipped(where=where, why=why))
        else:
            self.counted["further entries that can't be read"] += 1


def read(texts: Sequence[tuple[str, str]], *, at: int, timezone: str, mask: Mask, learn: bool) -> Material | None:
    """Returns the content of files, given by name and text; None if none of them is of these formats.

    With `learn`, memories may be made from the person's messages. Memories without a time are of `at` (milliseconds
    UTC).
    """
    reading = _Reading(at=at, timezone=timezone, masking=Masking(mask), learn=learn)
    for name, text in texts:
        if name.endswith(".jsonl"):
            reading.talk("OpenClaw", _openclaw(text, name, reading))
            continue
        rows = _rows(text)
        if rows is None:
            reading.skip(name, "it is cut off or damaged, or no list of conversations or memories")
        for n, row in enumerate(rows or (), 1):
            reading.row(row, f"{name}, entry {n}")
    if not reading.formats:
        return None
    skips = [*reading.skipped, *(Skipped(where="all files", why=f"{n} {why}") for why, n in reading.counted.items())]
    lines = sorted(reading.lines, key=lambda line: line.said_at)
    return Material(
        format=" and ".join(sorted(reading.formats)),
        items=tuple(reading.items),
        lines=tuple(replace(line, number=n) for n, line in enumerate(lines)),
        skipped=tuple(skips),
        masked=reading.masking.count,
    )


def _rows(text: str) -> list[Any] | None:
    try:
        data = json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return None
    if isinstance(data, dict):
        lists = [
            data[key] for key in ("conversations", "results", "memories", "chats") if isinstance(data.get(key), list)
        ]
        return lists[0] if lists else [data]
    return array(data) or None


def _chatgpt(talk: Mapping[str, Any], where: str) -> Iterator[_Said]:
    nodes = mapping(talk["mapping"])
    begun = talk.get("create_time")
    for node in _branch(nodes, string(talk.get("current_node")), "parent"):
        message = mapping(node.get("message"))
        content, about = mapping(message.get("content")), mapping(message.get("metadata"))
        if not message or about.get("is_visually_hidden_from_conversation"):
            continue
        spoken = content.get("content_type") in ("text", "multimodal_text")
        to_all = message.get("recipient", "all") == "all"
        yield _Said(
            role=string(mapping(message.get("author")).get("role")) if spoken and to_all else "",
            text="\n".join(filter(None, map(_part, array(content.get("parts"))))),
            at=message.get("create_time") or begun,
            where=where,
        )


def _claude(talk: Mapping[str, Any], where: str) -> Iterator[_Said]:
    for message in map(mapping, talk["chat_messages"]):
        words = "\n".join(filter(None, map(_part, array(message.get("content"))))) or string(message.get("text"))
        named = [*array(message.get("attachments")), *array(message.get("files"))]
        files = [f"[file: {string(mapping(one).get('file_name'))[:120]}]" for one in named]
        at = message.get("created_at") or talk.get("created_at")
        yield _Said(role=string(message.get("sender")), text="\n".join([words, *files]), at=at, where=where)


def _open_webui(chat: Mapping[str, Any], where: str) -> Iterator[_Said]:
    history = mapping(chat.get("history"))
    nodes = mapping(history.get("messages"))
    branch = (
        _branch(nodes, string(history.get("currentId")), "parentId")
        if nodes
        else map(mapping, array(chat.get("messages")))
    )
    for message in branch:
        content = message.get("content")
        words = string(content) or "\n".join(filter(None, map(_part, array(content))))
        files = [f"[file: {string(mapping(one).get('name'))[:120]}]" for one in array(message.get("files"))]
        at = message.get("timestamp") or chat.get("timestamp")
        yield _Said(role=string(message.get("role")), text="\n".join([words, *files]), at=at, where=where)


def _openclaw(text: str, name: str, reading: _Reading) -> Iterator[_Said]:
    for n, line in enumerate(text.splitlines(), 1):
        try:
            entry = mapping(json.loads(line)) if line.strip() else {}
        except (ValueError, RecursionError):
            reading.skip(f"{name}:{n}", "this line is no JSON")
            continue
        if entry.get("type") != "message":
            continue
        message = mapping(entry.get("message"))
        content = message.get("content")
        words = string(content) or "\n".join(filter(None, map(_part, array(content))))
        envelope = _ENVELOPE.match(words)
        # In a group others speak, too, and their names stand only in the text.
        alone = envelope is None or "group" not in envelope[1].casefold()
        yield _Said(
            role=string(message.get("role")),
            text=_NUMBERED.sub("", words[envelope.end() :] if envelope else words),
            at=entry.get("timestamp") or message.get("timestamp"),
            where=f"{name}:{n}",
            learn=alone,
        )


def _branch(nodes: Mapping[str, Any], last: str, above: str) -> list[Mapping[str, Any]]:
    """Returns the nodes from the first to the `last` one; without that, to the one that was written last."""
    if last not in nodes:
        parents = {string(mapping(node).get(above)) for node in nodes.values()}
        last = next((name for name in reversed(list(nodes)) if name not in parents), "")
    found: dict[str, Mapping[str, Any]] = {}
    while last in nodes and last not in found:
        found[last] = mapping(nodes[last])
        last = string(found[last].get(above))
    return list(found.values())[::-1]


def _part(part: object) -> str:
    """Returns the words of one part of a message; thoughts, calls and results of tools have none."""
    if isinstance(part, str):
        return string(part)
    match mapping(part):
        case {"content_type": "image_asset_pointer"} | {"type": "image" | "image_url"}:
            return "[picture]"
        case {"content_type": "audio_transcription", "text": str(text)} | {"type": "text", "text": str(text)}:
            return string(text)
    return ""
