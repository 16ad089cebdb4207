"""Scopes: the value that guards every read and write of memory, and the SQL predicate made from it.

Invariants: A scope is built only from committed rows, by `store.chats.scope_of` for a speaker and by
`store.audit.view_of` for an admin. No scope sees everything. Every statement on memories takes its condition from
`Scope.predicate`; every search of messages and entities takes it from `Scope.owned`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicate:
    sql: str
    parameters: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The rows that one speaker in one place may see, and the owner of the memories learned there.

    `owners` are the owners whose rows may be read; `own` are those of them that belong to the person alone. `writes_to`
    owns the memories learned here. In a private chat `selves` are the identities of the person speaking: their facts
    about themselves from groups are theirs here, too.
    """

    agent_id: int
    owners: tuple[int, ...]
    own: tuple[int, ...]
    writes_to: int
    speaker_id: int | None
    selves: tuple[int, ...]
    private: bool

    @property
    def speakers(self) -> tuple[int, ...]:
        speaker = () if self.speaker_id is None else (self.speaker_id,)
        return tuple(dict.fromkeys((*speaker, *self.selves)))

    def is_own(self, owner_id: int, author_id: int | None) -> bool:
        """Returns whether a row is the speaker's own: on their private side, or told by them in a group."""
        return owner_id in self.own or author_id in self.speakers

    def owned(self, table: str) -> Predicate:
        """Returns the condition on rows that belong to their owner alone: messages and entities."""
        marks = ", ".join("?" for _ in self.owners)
        return Predicate(sql=f"{table}.owner_id in ({marks})", parameters=self.owners)

    @property
    def partitions(self) -> tuple[int, ...]:
        """The parts of a derived index that this scope reads.

        These are the owners and, for facts that the scope's people told about themselves elsewhere, their negated
        identities (see `partitions_of`).
        """
        return (*self.owners, *(-identity for identity in self.selves))

    def predicate(self, table: str = "memories", *, by_id: bool = False) -> Predicate:
        """Returns the condition that confines `table` (memories or an alias of it) to this scope.

        With `by_id`, for rows that are named by their ids: all rows of the owners are not looked up for these.
        """
        table = f"+{table}" if by_id else table
        owned = self.owned(table)
        sql, parameters = owned.sql, owned.parameters
        if self.selves:
            marks = ", ".join("?" for _ in self.selves)
            # Rows of the owners are not looked up again by their author.
            sql = (
                f"({sql} or ({table}.author_id in ({marks}) and {table}.subject_id = {table}.author_id"
                f" and not {owned.sql}))"
            )
            parameters += (*self.selves, *self.owners)
        return Predicate(
            sql=f"{sql} and ({table}.agent_id is null or {table}.agent_id = ?)", parameters=(*parameters, self.agent_id)
        )


def partitions_of(*, owner_id: int, author_id: int | None, subject_id: int | None) -> tuple[int, ...]:
    """Returns the parts of a derived index that hold a memory; the counterpart of `Scope.partitions`."""
    if author_id is not None and author_id == subject_id:
        return (owner_id, -author_id)
    return (owner_id,)
