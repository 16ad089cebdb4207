"""The content of a file for memory, in any format: statements, messages, and notes on everything left out.

Invariants: these are plain values without an owner, whom the importer decides. Every text went through the caller's
masking. Times are milliseconds UTC.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from memory.store.memories import Kind

#: The kind of the owner to whose memory a file is added.
Ownership: TypeAlias = Literal["person", "group", "agent"]
#: A function that cleans a text and masks its secrets.
Mask: TypeAlias = Callable[[str], str]
#: The beginning of the mark that `redact` puts in the place of a secret.
MARK = "[secret:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    platform: str
    user_id: str
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedState:
    """The state of a memory in our own export: its dates, its successor, and the counts of its tellings and uses.

    `id` and `superseded_by` are short ids in that export, `sources` are numbers of its messages. `agent` is set if the
    memory stays with one agent.
    """

    id: str
    valid_from: int
    valid_until: int | None
    superseded_by: str | None
    archived_at: int | None
    pinned: bool
    confirmed: bool
    strength: float
    access_count: int
    reinforced_count: int
    last_reinforced_at: int
    tags: tuple[str, ...] = ()
    agent: str | None = None
    author: Person | None = None
    about: Person | None = None
    sources: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedItem:
    """One statement. `where` is its place for a human; `said_at` is its time, None if unknown.

    `subject` is empty for the owner; `day` is the local date, if the file gives one.
    """

    where: str
    kind: Kind
    category: str
    key: str
    value: str
    subject: str = ""
    topic: str = ""
    importance: int = 5
    confidence: float = 0.8
    said_at: int | None = None
    day: str | None = None
    standing: ExportedState | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedLine:
    """One message. `number` identifies it within its file. Without an `author` it is by the bot or a stranger.

    `learn` tells whether memories may be made from it, `recall` whether it may be recalled. `reference` is the
    platform's id of it, if that is the same for everybody in the chat.
    """

    number: int
    role: Literal["user", "assistant"]
    author: Person | None
    name: str
    text: str
    said_at: int
    thread: str | None = None
    reference: str | None = None
    reply_to: str | None = None
    learn: bool = False
    recall: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """An item that is not imported, and the reason, for a human."""

    where: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """The content of one file or several. `masked` counts texts with secrets in them."""

    format: str
    items: tuple[ImportedItem, ...] = ()
    lines: tuple[ImportedLine, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    masked: int = 0


@dataclass(slots=True)
class Masking:
    """Masks texts and counts those with secrets that were not masked before."""

    mask: Mask
    count: int = field(default=0, init=False)

    def __call__(self, text: str) -> str:
        masked = self.mask(text)
        self.count += masked.count(MARK) > text.count(MARK)
        return masked


def together(materials: list[Material], *, format: str) -> Material:  # noqa: A002 - the field's name
    return Material(
        format=format,
        items=tuple(item for one in materials for item in one.items),
        lines=tuple(line for one in materials for line in one.lines),
        skipped=tuple(skipped for one in materials for skipped in one.skipped),
        masked=sum(one.masked for one in materials),
    )
