"""Measures what the policies of PostgreSQL add to the statements of a recall: `python -m bench.wall`.

Invariants: seeded; the statements are the product's own, on a server of the tests' own; each is run with and without
the policies in turn, so that both share the machine's mood. Without them, the transaction tells the server no scope.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Final

from memory.scope import Scope
from memory.store import chats, memories, passages, people, postings, scopes
from memory.store.database import Reader, Transaction
from memory.store.postgres.database import PostgresDatabase
from memory.store.postings import Entry
from tests.kit import postgres

PEOPLE: Final = 100
#: Of each person: messages, and memories.
MESSAGES: Final = 900
MEMORIES: Final = 100
RUNS: Final = 200
_VOCABULARY: Final = 3_000


class Open:
    """A reader that tells the server no scope."""

    def __init__(self, real: Reader) -> None:
        self._real = real

    def within(self, _scope: Scope, **_of: Any) -> AbstractContextManager[None]:
        return nullcontext()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def fill(tx: Transaction) -> list[Scope]:
    """Writes everybody's messages and memories with their index, and returns the scopes of their private chats."""
    draw, found = random.Random(1), []
    agent = scopes.agent(tx, "assistant", now=1)
    for n in range(PEOPLE):
        speaker = people.speaker(tx, platform="console", user_id=str(n), name=f"person{n}", now=1)
        chat = chats.chat(tx, platform="console", reference=str(n), kind="private", title="", now=1)
        session = chats.session(tx, key=f"console:{n}:-", chat_id=chat, thread=None, agent_id=agent, now=1)
        scope = chats.scope_of(tx, session, speaker.id)
        found.append(scope)
        said = tx.ids(
            "insert into messages (session_id, role, author_id, text, tokens, learn, sitting, said_at, recorded_at,"
            " owner_id, nth) select ?, 'user', ?, 'said', 10, 1, 1, n, n, ?, n from generate_series(1, ?) as n"
            " returning id",
            (session.id, speaker.id, scope.writes_to, MESSAGES),
        )
        held = tx.ids(
            "insert into memories (short_id, kind, owner_id, author_id, subject_id, category, key, value, importance,"
            " confidence, origin, created_at, learned_at, local_date, valid_from, last_reinforced_at)"
            " select 'm_' || ? || '_' || n, 'fact', ?, ?, ?, 'other', 'note', 'told', 5, 1.0, 'told', 1, 1,"
            " '2026-01-01', 1, 1 from generate_series(1, ?) as n returning id",
            (str(n), scope.writes_to, speaker.id, speaker.id, MEMORIES),
        )
        for docs, parts in (
            ([2 * one + 1 for one in said], (scope.writes_to,)),
            ([2 * one for one in held], (scope.writes_to, -speaker.id)),
        ):
            # A word that is common is at the beginning.
            entries = [
                Entry(
                    doc=doc, partitions=parts, tokens=[f"w{int(_VOCABULARY * draw.random() ** 3)}" for _ in range(12)]
                )
                for doc in docs
            ]
            postings.put(tx, entries)
    return found


async def measured(database: PostgresDatabase, found: list[Scope]) -> dict[str, tuple[float, float]]:
    """Returns the median milliseconds of each statement with and without the policies."""
    acts: dict[str, Callable[[Reader, Scope], object]] = {
        "words (`postings.matching`)": lambda reader, scope: postings.matching(
            reader, scope, [f"w{n}" for n in range(0, 40, 5)], limit=4_000
        ),
        "messages (`passages.said_last`)": lambda reader, scope: passages.said_last(reader, scope, limit=100),
        "memories (`memories.current`)": lambda reader, scope: memories.current(reader, scope, ("fact",), limit=40),
        "a count of both (`passages.count`)": passages.count,
    }

    def timed(reader: Reader, act: Callable[[Reader, Scope], object], scope: Scope) -> float:
        reader.number("select 1")
        start = time.perf_counter()
        act(reader, scope)
        return 1_000 * (time.perf_counter() - start)

    taken: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in acts}
    for run in range(RUNS):
        scope = found[run % len(found)]
        for name, act in acts.items():

            def walled(reader: Reader, act: Any = act, scope: Scope = scope) -> float:
                reader.confine(scope)
                return timed(reader, act, scope)

            def unwalled(reader: Reader, act: Any = act, scope: Scope = scope) -> float:
                return timed(Open(reader), act, scope)  # type: ignore[arg-type]

            taken[name][0].append(await database.read(walled))
            taken[name][1].append(await database.read(unwalled))
    return {name: (statistics.median(one), statistics.median(other)) for name, (one, other) in taken.items()}


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "remora.db"
        database = await PostgresDatabase.open(postgres.url(path), path, now=1)
        try:
            found = await database.write(fill)
            assert await database.scrub(seconds=60)
            await database.write(lambda tx: tx.run("analyze"))
            for name, (walled, unwalled) in (await measured(database, found)).items():
                print(f"| {name} | {unwalled:.2f} ms | {walled:.2f} ms |")

            def plan(reader: Reader) -> str:
                scope = found[0]
                reader.confine(scope)
                within = scope.predicate("m")
                rows = reader.all(f"explain select m.id from memories m where {within.sql}", within.parameters)
                return "\n".join(str(row[0]) for row in rows)

            print(await database.read(plan))
        finally:
            await database.close()


if __name__ == "__main__":
    asyncio.run(main())
