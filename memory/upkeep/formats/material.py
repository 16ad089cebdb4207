"""What a file holds for memory, whatever its format: statements, things said, and what was left out.

Invariants: plain values, nobody's yet: whose they become is decided by whoever brings them in; every text went through
the caller's masking; times are milliseconds UTC.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from memory.store.memories import Kind

#: Whose memory a file is to become.
Ownership: TypeAlias = Literal["person", "group", "agent"]
#: Cleans a text and masks its secrets.
Mask: TypeAlias = Callable[[str], str]
#: What `redact` leaves in the place of a secret begins with this.
MARK = "[secret:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody as a file names them."""

    platform: str
    user_id: str
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a memory of our own export stood: its dates, what replaced it, how often it was told and used.

    `id` and `superseded_by` are the short ids in that export, `sources` numbers of its messages; `agent` is set where
    the memory stays with one agent.
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
class Item:
    """One statement. `where` is its place for a human, `said_at` when it was made: None where nobody knows.

    `subject` is empty for the owner; `day` is the local date, where the file gives one.
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
    standing: Standing | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One thing said. `number` names it within its file; without an `author` nobody known said it, or the bot.

    `learn` tells whether memories may be made of it, `recall` whether it may be found again. `reference` is the
    platform's id of it, where that means the same to everybody in the chat.
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
    """Something that is not brought in, and why, for a human."""

    where: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What one file, or several, hold. `masked` counts texts with secrets in them."""

    format: str
    items: tuple[Item, ...] = ()
    lines: tuple[Line, ...] = ()
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
    """Several files as one, in the order given."""
    return Material(
        format=format,
        items=tuple(item for one in materials for item in one.items),
        lines=tuple(line for one in materials for line in one.lines),
        skipped=tuple(skipped for one in materials for skipped in one.skipped),
        masked=sum(one.masked for one in materials),
    )
