"""State that channels keep across restarts: positions and fingerprints of registrations, never people's words.

Invariant: A channel, identified by its configured id, sees only its own names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from memory.store.database import Reader, Row, Transaction


def kept(reader: Reader, channel: str, prefix: str) -> dict[str, str]:
    """Returns the values of all names that begin with `prefix`, by name."""
    rows = reader.all(
        "select name, value from channel_state where channel = ? and substr(name, 1, length(?2)) = ?2 order by name",
        (channel, prefix),
    )
    return {row["name"]: row["value"] for row in rows}


def keep(tx: Transaction, channel: str, values: Mapping[str, str | None]) -> None:
    """Stores these values by name; a value of None deletes the name."""
    for name, value in values.items():
        if value is None:
            tx.run("delete from channel_state where channel = ? and name = ?", (channel, name))
        else:
            tx.run(
                "insert into channel_state values (?, ?, ?) on conflict (channel, name) do update set value ="
                " excluded.value",
                (channel, name, value),
            )


def all_kept(reader: Reader) -> list[Row]:
    """Returns the state of all channels, for `replace`."""
    return reader.all("select channel, name, value from channel_state")


def replace(tx: Transaction, rows: Iterable[Row]) -> None:
    """Puts the state of another copy of the store in the place of the state here."""
    tx.run("delete from channel_state")
    for row in rows:
        tx.run("insert into channel_state values (?, ?, ?)", tuple(row))
