"""Tables of phrases: one test for all rows, which names each row that misses.

A parametrised row costs a fixture, a line of the plan and a place in the memory of each worker, whatever it tests.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any

import pytest


def each_row(names: str | Sequence[str], rows: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Runs a test for each row, with the arguments of `pytest.mark.parametrize`. Other arguments are fixtures.

    All rows share the fixtures, so it is for tests without a state. Whatever a row raises counts as its miss.
    """
    columns = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    kept = [tuple(row) if len(columns) > 1 else (row,) for row in rows]
    assert kept, "a table without rows tests nothing"

    def decorated(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def run(**fixtures: Any) -> None:
            misses = []
            for row in kept:
                try:
                    test(**fixtures, **dict(zip(columns, row, strict=True)))
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 -- the rows after it count, too
                    misses.append(f"{', '.join(map(repr, row))}\n    {type(error).__name__}: {error}")
            if misses:
                pytest.fail(f"{len(misses)} of {len(kept)} rows miss:\n\n" + "\n\n".join(misses), pytrace=False)

        signature = inspect.signature(test)
        fixtures = [parameter for name, parameter in signature.parameters.items() if name not in columns]
        run.__signature__ = signature.replace(parameters=fixtures)  # type: ignore[attr-defined]
        return run

    return decorated
