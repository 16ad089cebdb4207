"""What channels must remember across restarts: positions, fingerprints of what they registered. Never people's words.

Invariant: a channel, by its configured id, sees its own names only.
"""

from __future__ import annotations

from collections.abc import Mapping

from memory.store.database import Reader, Transaction


def kept(reader: Reader, channel: str, prefix: str) -> dict[str, str]:
    """Values by name, of all names that begin with `prefix`."""
    rows = reader.all(
        "select name, value from channel_state where channel = ? and substr(name, 1, length(?2)) = ?2 order by name",
        (channel, prefix),
    )
    return {row["name"]: row["value"] for row in rows}


def keep(tx: Transaction, channel: str, values: Mapping[str, str | None]) -> None:
    """Remember these; None drops a name."""
    for name, value in values.items():
        if value is None:
            tx.run("delete from channel_state where channel = ? and name = ?", (channel, name))
        else:
            tx.run(
                "insert into channel_state values (?, ?, ?) on conflict do update set value = excluded.value",
                (channel, name, value),
            )
