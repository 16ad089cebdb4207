"""The transactions that the log of a PostgreSQL server tells of.

Invariants: to log statements costs the server time, so no other figure is taken from a server that does.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from tests.kit.postgres import Server, superuser

Kind: TypeAlias = Literal["exclusive", "keyed", "read", "other"]
#: Settings of a server that logs each statement, once it has ended, for `transactions`.
LOGGED: Final = {"log_min_duration_statement": "0", "log_line_prefix": "%n %p [%a] ", "log_parameter_max_length": "0"}
#: A statement in the log: when it had ended, the process, its milliseconds, and its text. To parse and to bind come
#: with it, from and to the server.
_LINE: Final = re.compile(
    r"^([\d.]+) (\d+) \[remora\] LOG:  duration: ([\d.]+) ms  (parse|bind|execute|statement)[^:]*: (.*)$"
)
_LOCKED: Final = re.compile(r"^begin; (?:set [^;]*; )?select pg_advisory_xact_lock(_shared)?\(-?\d+\)")
_KEY: Final = re.compile(r"pg_advisory_xact_lock\((-?\d+)\)")


@dataclass(slots=True, kw_only=True)
class Logged:
    """A transaction of the pipeline, in milliseconds: when it had its locks, and how long it held them.

    Of that, `server_ms` were spent on its statements and `commit_ms` on its end. An `exclusive` one has the store for
    itself, a `keyed` one its `keys`. A `read` holds nothing.
    """

    kind: Kind = "other"
    keys: tuple[str, ...] = ()
    statements: int = 0
    at: float = 0.0
    held_ms: float = 0.0
    server_ms: float = 0.0
    commit_ms: float = 0.0
    asked: list[str] = field(default_factory=list)

    @property
    def client_ms(self) -> float:
        """The rest: what the process did between its statements."""
        return max(self.held_ms - self.server_ms - self.commit_ms, 0.0)


def settle(server: Server, name: str) -> None:
    """Does for a database at once what the server does within a minute of use: counts its rows for the planner."""
    import psycopg  # which only a benchmark with PostgreSQL needs

    with psycopg.connect(f"{superuser(server.address)} dbname={name}", autocommit=True) as connection:
        connection.execute(b"vacuum analyze")


def transactions(log: str) -> list[Logged]:
    """Returns the ended transactions of a log, in the order in which they ended."""
    found: list[Logged] = []
    under_way: defaultdict[str, Logged] = defaultdict(Logged)
    for line in log.splitlines():
        if (match := _LINE.match(line)) is None:
            continue
        at, process, taken, step, text = float(match[1]) * 1_000, match[2], float(match[3]), match[4], match[5]
        one = under_way[process]
        is_asked = step in ("execute", "statement")
        one.statements += is_asked
        if is_asked:
            one.asked.append(text)
        if text in ("COMMIT", "ROLLBACK") or text.endswith("; commit"):
            one.commit_ms, one.held_ms = taken, at - one.at
            # The beginning of another one is in an earlier part of the log.
            if one.kind != "other":
                found.append(one)
            del under_way[process]
        elif text.startswith("begin isolation"):
            one.kind, one.at = "read", at
        elif (locked := _LOCKED.match(text)) is not None:
            one.kind, one.at = ("keyed" if locked[1] else "exclusive"), at
            one.keys = tuple(_KEY.findall(text)) if locked[1] else ()
            one.server_ms = 0.0
        else:
            one.server_ms += taken
    return found
