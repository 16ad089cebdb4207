"""Engines of PostgreSQL with a wall taken out: statements that forget their scope, and policies that are told nothing.

The first wall is the condition that `Scope` puts into statements. Here every such condition is met by every row, as if
nobody had written it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TypeVar

from memory.store.database import Keys, Reader, Transaction
from memory.store.postgres.database import PostgresDatabase
from tests.kit import postgres
from tests.kit.stores import ASKING

T = TypeVar("T")
#: The conditions as `Scope.predicate`, `Scope.owned` and `Scope.partitions` make them. Looks are no memories.
_CONDITIONS = re.compile(
    r"\+?(?!l\.)\b\w+\.owner_id in \(\?(?:, \?)*\)|\(\+?\w+\.agent_id is null or \+?\w+\.agent_id = \?\)"
    r"|(?<!or )\bpartition in \(select value from json_each\(\?\)\)"
)


class Unscoped:
    """A reader or transaction whose statements see whatever the server lets them see."""

    def __init__(self, real: Any, *, told: bool) -> None:
        """With `told`, the server hears of the scopes, so that the second wall stands."""
        self._real = real
        self._told = told

    def confine(self, scope: Any, **of: Any) -> None:
        if self._told:
            self._real.confine(scope, **of)

    def within(self, scope: Any, **of: Any) -> Any:
        return self._real.within(scope, **of) if self._told else nullcontext()

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._real, name)
        if name not in ASKING:
            return real
        return lambda sql, *given: real(_without_condition(sql), *given)


class WithoutFirstWall(PostgresDatabase):
    """A store whose statements have all forgotten their scope."""

    told = True

    @classmethod
    async def at(cls, path: Path) -> PostgresDatabase:
        return await cls.open(postgres.url(path), path, now=1)

    async def read(self, act: Callable[[Reader], T], *, single: bool = False) -> T:
        return await super().read(lambda reader: act(Unscoped(reader, told=self.told)), single=single)

    async def write(
        self,
        act: Callable[[Transaction], T],
        *,
        keys: Keys | None = None,
        durable: bool = True,
        single: bool = False,
    ) -> T:
        return await super().write(lambda tx: act(Unscoped(tx, told=self.told)), keys=keys, durable=durable)


class WithoutWalls(WithoutFirstWall):
    told = False


def _without_condition(sql: str) -> str:
    return _CONDITIONS.sub(r"(\g<0> or 1 = 1)", sql)
