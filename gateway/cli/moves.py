"""`remora move`: carries the databases between files and a PostgreSQL server.

Invariant: after an error or a stop, the command says which databases are moved and how to go on.
"""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from gateway.cli.start import (
    CONFIG,
    EX_CONFIG,
    EX_NOINPUT,
    Advance,
    counted,
    ending,
    fail,
    loaded,
    progress,
    set_up_logs,
    storage_code,
)
from memory.errors import StoreBusy, StoreUnwritable

if TYPE_CHECKING:
    from gateway.config.loading import Config
    from memory.transfer.move import MovedStore

_STOPPED = (
    "\nStopped. Nothing was changed in the databases that are moved. Run the same command again to continue. Until "
    "then an unfinished copy can't be used. One that only lacked its word index can; the bot makes it when it starts."
)


@click.command()
@CONFIG
@click.option(
    "--to", required=True, type=click.Choice(["postgres", "file"]), help="Where the databases are to be afterwards."
)
@click.option("--database-url", metavar="URL", help="The PostgreSQL database, if config.yaml does not name it.")
@click.option("--store", metavar="NAME", help="Only this database, such as remora.db.")
@click.option("--anew", is_flag=True, help="Begin an unfinished copy once more.")
def move(
    config_path: Path | None, to: Literal["postgres", "file"], database_url: str | None, store: str | None, anew: bool
) -> None:
    """Move the databases from files to PostgreSQL or back, and check the copies. Stop the bot first."""
    from gateway.config.settings import names_database

    config = loaded(config_path)
    if database_url is not None and not names_database(database_url):
        fail("--database-url needs a PostgreSQL address: postgresql://user:password@host/name", EX_CONFIG)
    url = database_url or config.settings.database_url.get_secret_value()
    if not url:
        fail(
            "Which PostgreSQL database? Set database_url in config.yaml, as docs/scale.md says, or add --database-url.",
            EX_CONFIG,
        )
    with ending(stopped=_STOPPED, in_use="Nothing was changed."):
        try:
            asyncio.run(_move_all(config, to, url, store=store, anew=anew))
        except (StoreUnwritable, StoreBusy) as exc:
            fail(f"{exc} Then run the same command again; a copy that was begun is continued.", storage_code(exc))
    for line in _next(config, to):
        click.echo(line)


async def _move_all(
    config: Config, to: Literal["postgres", "file"], url: str, *, store: str | None, anew: bool
) -> None:
    from gateway import app
    from memory.transfer.move import Ends, NoStore, move

    set_up_logs(config)
    names = sorted(app.by_database(config))
    if store is not None and store not in names:
        fail(f"No agent has a database {store}. The databases are: {', '.join(names)}.", EX_NOINPUT)
    missing = []
    wanted = names if store is None else [store]
    for name in wanted:
        ends = Ends(path=config.data_dir / name, url=url, durability=config.settings.durability, now=app.now())
        began = time.monotonic()
        try:
            moved = await move(ends, to, anew=anew, show=_show)
        except NoStore as exc:
            missing.append(str(exc))
            continue
        for line in _told(name, moved, time.monotonic() - began):
            click.echo(line)
    for line in missing:
        click.echo(line, err=True)
    if len(missing) == len(wanted):
        sys.exit(EX_NOINPUT)


def _show(rows: int, label: str) -> AbstractContextManager[Advance]:
    return progress(max(rows, 1), label, f"rows: {label}")


def _told(name: str, moved: MovedStore, seconds: float) -> list[str]:
    held = counted(people=moved.people, messages=moved.messages, memories=moved.memories)
    if not moved.is_new:
        return [f"{name}: moved before, and still equal: {held}."]
    lines = [f"{name}: {moved.rows:,} rows moved and compared in {seconds:.0f} s: {held}."]
    if moved.nuls:
        lines.append(f"{name}: {moved.nuls} NUL characters became \ufffd, because PostgreSQL holds none.")
    return lines


def _next(config: Config, to: str) -> list[str]:
    is_set = bool(config.settings.database_url.get_secret_value())
    if to == "postgres":
        left = (
            f"The files in {config.data_dir} are as they were. They keep what people forget from now on, so delete "
            "them once you no longer need them: those that end in .db, .db-wal and .db-shm, but not .key and .erased."
        )
        start = "Start the bot." if is_set else "Set database_url in config.yaml, then start the bot."
    else:
        left = (
            "The database on the server is as it was. It keeps what people forget from now on, so drop it once you no "
            "longer need it."
        )
        start = "Remove database_url from config.yaml, then start the bot." if is_set else "Start the bot."
    return [left, start]
