"""Whose memory: the one value that guards every read and write, and the one SQL predicate made from it.

Invariants: a scope is built only from committed rows, by `store.people.scope_of` for who speaks and by
`store.looks.view_of` for an admin; there is no scope that sees everything; every statement on memories takes its
condition from `Scope.predicate`, on messages and entities that are looked for from `Scope.owned`.
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

    def owned(self, table: str) -> Predicate:
        """The condition on rows that are nobody's but their owner's: messages and entities."""
        marks = ", ".join("?" for _ in self.owners)
        return Predicate(sql=f"{table}.owner_id in ({marks})", parameters=self.owners)

    @property
    def partitions(self) -> tuple[int, ...]:
        """The parts of a derived index this scope reads: the owners, and for what its people said of themselves

        elsewhere the negated identities (see `partitions_of`).
        """
        return (*self.owners, *(-identity for identity in self.selves))

    def predicate(self, table: str = "memories") -> Predicate:
        """The condition on `table` (memories or an alias of it) that keeps to this scope."""
        owned = self.owned(table)
        sql, parameters = owned.sql, owned.parameters
        if self.selves:
            marks = ", ".join("?" for _ in self.selves)
            sql = f"({sql} or ({table}.author_id in ({marks}) and {table}.subject_id = {table}.author_id))"
            parameters += self.selves
        return Predicate(
            sql=f"{sql} and ({table}.agent_id is null or {table}.agent_id = ?)",
            parameters=(*parameters, self.agent_id),
        )


def partitions_of(*, owner_id: int, author_id: int | None, subject_id: int | None) -> tuple[int, ...]:
    """The parts of a derived index a memory stands in; the other side of `Scope.partitions`."""
    if author_id is not None and author_id == subject_id:
        return (owner_id, -author_id)
    return (owner_id,)
