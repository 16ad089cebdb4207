"""The codes that people hand on: those that let a person in, and those that link two accounts.

Invariants: the code itself is not stored. It is compared with all open ones, each in constant time, so the time taken
reveals nothing. It ends when it expires, or after too many wrong codes from anybody. A person who guesses is locked out
before guessing can succeed, in whatever way the codes are given. Times are milliseconds UTC.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from memory.store.database import Reader, Row, Transaction

#: The lifetime of a code.
LIFETIME_MS: Final = 10 * 60 * 1000
#: After `TRIES` wrong codes of a person, their codes are ignored until `LOCKED_MS` after the last one: by then the code
#: they guessed at has expired.
TRIES: Final = 3
LOCKED_MS: Final = 60 * 60 * 1000
#: The number of wrong codes, from all people together, that ends an open code. 100 guesses of 10^11 hit nothing, and
#: spoiling codes on purpose takes dozens of accounts.
GUESSES: Final = 100

#: "no_tries_left" is also the result of the last wrong code.
Wrong: TypeAlias = Literal["wrong", "no_tries_left"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Codes:
    """The codes in a `table`. `tries` counts the wrong ones of whoever `guesser` names.

    Codes of different values in the column `apart` have nothing to do with each other.
    """

    table: str
    tries: str
    guesser: tuple[str, ...]
    apart: str = ""

    def open(self, tx: Transaction, code: str, *, now: int, **columns: Any) -> int:
        salt, until = secrets.token_bytes(16), now + LIFETIME_MS
        row = {**columns, "salt": salt, "hash": _hash(salt, code), "created_at": now, "expires_at": until}
        names, marks = ", ".join(row), ", ".join("?" * len(row))
        tx.run(f"insert into {self.table} ({names}) values ({marks})", tuple(row.values()))
        return until

    def fitting(self, reader: Reader, code: str, *apart: str) -> Row | None:
        """Returns the row that `code` fits, which must have exactly the form it was opened with. It may be over."""
        fits = None
        for row in reader.all(f"select * from {self.table}{self._those}", apart):
            if hmac.compare_digest(_hash(row["salt"], code), row["hash"]):
                fits = row
        return fits

    def is_locked(self, tx: Transaction, guesser: tuple[Any, ...], *, now: int) -> bool:
        """Returns whether this person has no tries left. Nobody may learn from the answer whether a code is right."""
        tx.run(f"delete from {self.tries} where expires_at <= ?", (now,))
        named = " and ".join(f"{column} = ?" for column in self.guesser)
        tried = tx.one(f"select count from {self.tries} where {named}", guesser)
        return tried is not None and bool(tried["count"] >= TRIES)

    def note_wrong(self, tx: Transaction, guesser: tuple[Any, ...], *apart: str, now: int) -> Wrong:
        tx.run(f"update {self.table} set tries = tries + 1{self._those}", apart)
        tx.run(f"delete from {self.table} where tries >= ?", (GUESSES,))
        names = ", ".join(self.guesser)
        row = tx.one(
            f"insert into {self.tries} ({names}, count, expires_at) values ({'?, ' * len(guesser)}1, ?)"
            f" on conflict ({names}) do update set count = {self.tries}.count + 1, expires_at = excluded.expires_at"
            " returning count",
            (*guesser, now + LOCKED_MS),
        )
        assert row is not None
        return "no_tries_left" if row["count"] >= TRIES else "wrong"

    def end(self, tx: Transaction, row: Row) -> None:
        """Ends one code: it was given, or said where others can read it."""
        tx.run(f"delete from {self.table} where id = ?", (row["id"],))

    def end_expired(self, tx: Transaction, *, now: int) -> None:
        tx.run(f"delete from {self.table} where expires_at <= ?", (now,))

    def end_all(self, tx: Transaction) -> None:
        tx.run(f"delete from {self.table}")

    @property
    def _those(self) -> str:
        return f" where {self.apart} = ?" if self.apart else ""


#: Codes by which a channel's admins let people in, and those by which a person's accounts find each other.
PAIRING: Final = Codes(table="pairings", tries="pairing_tries", guesser=("channel", "user_id"), apart="channel")
LINKING: Final = Codes(table="link_codes", tries="link_tries", guesser=("identity_id",))


def _hash(salt: bytes, code: str) -> bytes:
    # A slow hash would add nothing: a person who can read this file during a code's ten minutes can read everything.
    return hmac.digest(salt, code.encode(), "sha256")
