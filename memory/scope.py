"""Whose memory: the one value that guards every read and write, and the one SQL predicate made from it.

Invariants: a scope is built only by `store.people.scope_of` from committed rows; there is no scope that sees
everything; every statement on memories takes its condition from `Scope.predicate`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicate:
    """An SQL condition and its parameters."""

    sql: str
    parameters: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What one speaker in one place may see and where what they say is kept.

    `owners` are the rows' owners that may be read, `own` those among them that are the person's alone; `writes_to` owns
    what is learned here. `selves` are, in a private chat, the identities of the person speaking: what they said of
    themselves in a group is theirs here, too.
    """

    agent_id: int
    owners: tuple[int, ...]
    own: tuple[int, ...]
    writes_to: int
    speaker_id: int | None
    selves: tuple[int, ...]
    private: bool

    def predicate(self, table: str = "memories") -> Predicate:
        """The condition on `table` (memories or an alias of it) that keeps to this scope."""
        marks = ", ".join("?" for _ in self.owners)
        owned = f"{table}.owner_id in ({marks})"
        parameters = self.owners
        if self.selves:
            marks = ", ".join("?" for _ in self.selves)
            owned = f"({owned} or ({table}.author_id in ({marks}) and {table}.subject_id = {table}.author_id))"
            parameters += self.selves
        return Predicate(
            sql=f"{owned} and ({table}.agent_id is null or {table}.agent_id = ?)",
            parameters=(*parameters, self.agent_id),
        )
