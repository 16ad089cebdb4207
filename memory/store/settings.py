"""Settings of a store: values by name, such as the versions and models of its indexes."""

from __future__ import annotations

from memory.store.database import Reader, Transaction


def value(reader: Reader, name: str) -> str | None:
    return reader.text("select value from store_settings where name = ?", (name,))


def put(tx: Transaction, name: str, value: str) -> None:
    tx.run(
        "insert into store_settings values (?, ?) on conflict (name) do update set value = excluded.value",
        (name, value),
    )


def drop(tx: Transaction, name: str) -> None:
    tx.run("delete from store_settings where name = ?", (name,))
