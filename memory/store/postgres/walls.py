"""Row-level security: a transaction confined to a scope sees no rows of other owners, whatever its statements ask for.

This is the second wall. The first is the condition of `Scope` in every statement. The policies read settings of the
transaction, once for each statement; without settings (jobs, housekeeping, the mailbox), every row is visible.

Invariants: The policies equal `Scope.predicate`, `Scope.owned` and `Scope.partitions`, so a correct statement returns
the same with and without them. They hold the owner of the tables as well, but no superuser and no role with BYPASSRLS,
to which PostgreSQL applies no policies.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from memory.scope import Scope

#: The settings of the transaction, in the order in which `settings` gives their values.
_SETTINGS: Final = ("owners", "selves", "agent", "partitions", "session", "authors")
#: The values without a scope.
OPEN: Final = ("",) * len(_SETTINGS)


def settings(scope: Scope, *, session_id: int | None = None, elsewhere: bool = False) -> tuple[str, ...]:
    """Returns the values of the settings that confine a transaction to a scope.

    With `session_id`, the messages of that session, the conversation itself, are visible as well. With `elsewhere`, so
    are messages of the scope's people in other places.
    """
    owners, selves, partitions = (
        f"{{{','.join(map(str, some))}}}" for some in (scope.owners, scope.selves, scope.partitions)
    )
    session = "" if session_id is None else str(session_id)
    return owners, selves, str(scope.agent_id), partitions, session, selves if elsewhere else "{}"


def told(values: tuple[str, ...]) -> bytes:
    settings = (f"set_config('remora.{name}', '{value}', true)" for name, value in zip(_SETTINGS, values, strict=True))
    return f"select {', '.join(settings)}".encode()


def is_confined(values: tuple[str, ...], scope: Scope) -> bool:
    """Returns whether these values confine a transaction to the scope, with or without a session."""
    return values[:4] == settings(scope)[:4]


def definitions(connection: Any) -> Iterator[str]:
    """Yields the statements that make the policies that are missing or differ from those here."""
    policies: dict[str, list[str]] = {}
    for table, policy in connection.execute(
        "select c.relname::text, p.polname::text from pg_class c left join pg_policy p on p.polrelid = c.oid"
        " where c.relkind = 'r' and c.relnamespace = current_schema()::regnamespace"
    ):
        policies.setdefault(table, []).extend([] if policy is None else [policy])
    for table, condition in _POLICIES.items():
        # The name identifies the condition: making a policy locks the table, also for readers.
        name = f"remora_{hashlib.sha256(condition.encode()).hexdigest()[:12]}"
        # A derived table may be missing until it is made again.
        if table not in policies or name in policies[table]:
            continue
        for other in policies[table]:
            yield f"drop policy {other} on {table}"
        yield f"create policy {name} on {table} using ({condition}) with check (true)"
        yield f"alter table {table} enable row level security, force row level security"


def is_bypassed(connection: Any) -> bool:
    row = connection.execute("select rolsuper or rolbypassrls from pg_roles where rolname = current_user").fetchone()
    return row is not None and bool(row[0])


def _value(name: str, kind: str) -> str:
    """Returns the value of a setting, as a query of its own that is run once for each statement."""
    return f"(select nullif(current_setting('remora.{name}', true), '')::{kind})"


def _among(column: str, name: str) -> str:
    return f"{column} = any ({_value(name, 'bigint[]')}::bigint[])"


def _policies() -> dict[str, str]:
    owned, partition = _among("owner_id", "owners"), _among("partition", "partitions")
    either = f"{partition} or {_among('other_partition', 'partitions')}"
    conditions = {
        "memories": f"({owned} or ({_among('author_id', 'selves')} and subject_id = author_id))"
        f" and (agent_id is null or agent_id = {_value('agent', 'bigint')})",
        "messages": f"{owned} or {_among('author_id', 'authors')} or session_id = {_value('session', 'bigint')}",
        "entities": owned,
        "entity_aliases": "exists (select 1 from entities e where e.id = entity_id)",
        "attachments": "message_id is null or exists (select 1 from messages m where m.id = message_id)",
        "postings": partition,
        "vectors": partition,
        "vector_signs": partition,
        "indexed_documents": either,
        "token_bits": either,
    }
    return {table: f"{_value('owners', 'text')} is null or ({held})" for table, held in conditions.items()}


_POLICIES: Final[Mapping[str, str]] = _policies()
