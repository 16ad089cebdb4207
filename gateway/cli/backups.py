"""`remora backup`, `restore` and `erase-again`: copies of the databases, and the way back from them.

Invariant: after an error or a stop, the command says what is left as it was and what is not.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gateway.cli.start import CONFIG, EX_CONFIG, EX_NOINPUT, ending, fail, loaded

if TYPE_CHECKING:
    from gateway.config.loading import Config


@click.command()
@CONFIG
@click.option(
    "--to", type=click.Path(path_type=Path), metavar="FILE", help="Another file (.db) or folder; old backups stay."
)
@click.option("--store", metavar="NAME", help="Only this database, such as remora.db.")
def backup(config_path: Path | None, to: Path | None, store: str | None) -> None:
    """Back up the databases, check the copies and delete old ones. Works while the bot is running."""
    from gateway import app
    from gateway.cli import backup_files as backing
    from gateway.config.loading import DEFAULT_DATABASE
    from gateway.ops.databases import Stores

    config = loaded(config_path)
    _refuse_on_server(config)
    stores = Stores.of(config, DEFAULT_DATABASE)
    with _copying("No partial copy is left."):
        asyncio.run(backing.make(stores, name=store, to=to, now=app.now, say=click.echo, progress=_copied))


@click.command()
@CONFIG
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--store", metavar="NAME", help="The database to replace, if the file's name does not say.")
@click.option("--discard", is_flag=True, help="Don't keep the replaced database.")
def restore(config_path: Path | None, file: Path, store: str | None, discard: bool) -> None:
    """Replace a database with a backup, and erase from it what was forgotten since. Stop the bot first."""
    from gateway import app
    from gateway.cli import backup_files as backing
    from gateway.config.loading import DEFAULT_DATABASE
    from gateway.ops.databases import Stores

    config = loaded(config_path)
    _refuse_on_server(config)
    stores = Stores.of(config, DEFAULT_DATABASE)
    with _copying("The database is unchanged, unless a line above says that the backup has replaced it."):
        asyncio.run(
            backing.restore(
                file.absolute(),
                stores.target(file, store),
                keep=not discard,
                keep_days=stores.retention.keep_days,
                now=app.now(),
                say=click.echo,
                progress=_copied,
            )
        )


@click.command("erase-again")
@CONFIG
@click.argument("lists", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="[LIST]...")
@click.option("--store", metavar="NAME", help="Only this database, such as remora.db.")
def erase_again(config_path: Path | None, lists: tuple[Path, ...], store: str | None) -> None:
    """Erase again what was forgotten, after a backup of the database server was put back.

    Each LIST is the .erased file of another machine that served the same database. The list in data_dir is always used.
    """
    from gateway import app
    from gateway.cli import backup_files as backing
    from gateway.config.loading import DEFAULT_DATABASE
    from gateway.ops.databases import Stores

    config = loaded(config_path)
    stores = Stores.of(config, DEFAULT_DATABASE)
    address = config.settings.database_url.get_secret_value()
    with _copying("Run it again: what was not reached yet is still there."):
        asyncio.run(backing.erase_again(stores, lists, name=store, now=app.now(), database_url=address, say=click.echo))


def _refuse_on_server(config: Config) -> None:
    """Ends the command if the stores are on a server, which has its own means of backup."""
    if config.settings.database_url.get_secret_value():
        fail(
            "The stores are in a PostgreSQL database (database_url). Back it up and restore it by the server's own "
            "means, such as pg_dump and pg_restore, and run `remora erase-again` after that; docs/scale.md says how.",
            EX_CONFIG,
        )


@contextmanager
def _copying(left: str) -> Iterator[None]:
    """Reports an error in copying databases, and what is `left` after Ctrl-C; ends with its code."""
    from gateway.ops.databases import NoSuchStore

    with ending(stopped=f"\nStopped. {left}"):
        try:
            yield
        except NoSuchStore as exc:
            fail(str(exc), EX_NOINPUT)


def _copied(done: int, of: int) -> None:
    if sys.stderr.isatty():
        click.echo(f"\r{100 * done // max(of, 1):3} % of {of / 1e6:.0f} MB", nl=done >= of, err=True)
