"""`remora import` and `export`: memory brought in from elsewhere, and written out for elsewhere.

Invariant: nothing is brought in that was not shown before, and agreed to there or by --yes.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gateway.cli.bar import progress
from gateway.cli.exits import EX_CANTCREAT, EX_DATAERR, fail, storage_code
from gateway.cli.start import CONFIG, loaded, set_up_logs
from gateway.config import Config
from memory.errors import MemoryFault, StorageError

if TYPE_CHECKING:
    from gateway.importing import Wanted
    from memory.transferring import Owner

_PERSON = click.option("--person", metavar="PLATFORM:USER", help="A person, as telegram:123456.")
_CHAT = click.option("--chat", metavar="CHANNEL:CHAT", help="A group, as telegram:-1001234567890.")
_AGENT_WIDE = click.option("--agent-wide", is_flag=True, help="Everybody who talks with the agent.")
_AGENT = click.option("--agent", metavar="NAME", help="The agent, and so the store; else the default one.")


@click.command("import")
@CONFIG
@click.argument("what", nargs=-1, required=True, metavar="PATH | list | undo ID")
@_PERSON
@_CHAT
@_AGENT_WIDE
@_AGENT
@click.option("--talk", "talks", multiple=True, metavar="ID", help="A chat of a Telegram export; may be repeated.")
@click.option("--me", metavar="USER", help="The owner's user id in the export, where it is another one.")
@click.option("--learn/--no-learn", default=None, help="Read people's own words for memories (a person's: yes).")
@click.option("--dry-run", is_flag=True, help="Show what would come of it, and change nothing.")
@click.option("--yes", is_flag=True, help="Don't ask.")
def import_(
    *,
    config_path: Path | None,
    what: tuple[str, ...],
    person: str | None,
    chat: str | None,
    agent_wide: bool,
    agent: str | None,
    talks: tuple[str, ...],
    me: str | None,
    learn: bool | None,
    dry_run: bool,
    yes: bool,
) -> None:
    """Bring memory in: notes of other assistants, Telegram exports, our own; show or undo what was brought in."""
    from gateway import importing

    config = loaded(config_path)
    with _transferring():
        owner = importing.owner_of(config, person=person, chat=chat, agent_wide=agent_wide, agent=agent)
        if what[0] == "undo" and len(what) == 2:
            asyncio.run(_undo_import(config, what[1]))
        elif what == ("list",):
            asyncio.run(_list_imports(config))
        elif len(what) > 1:
            fail("Name one file or folder, or say `list` or `undo ID`.", click.UsageError.exit_code)
        elif owner is None:
            asyncio.run(_name_owners(config, agent or config.default_agent))
        else:
            wanted = importing.Wanted(
                path=Path(what[0]),
                owner=owner,
                learn=owner.kind == "person" if learn is None else learn,
                talks=talks,
                me=me,
            )
            asyncio.run(_bring_in(config, wanted, dry_run=dry_run, yes=yes))


@click.command()
@CONFIG
@_PERSON
@_CHAT
@_AGENT_WIDE
@_AGENT
@click.option(
    "--to", "folder", required=True, metavar="FOLDER", type=click.Path(path_type=Path), help="Where the files go."
)
@click.option("--transcript", is_flag=True, help="With all that was said, not only what was learned from.")
def export(
    *,
    config_path: Path | None,
    person: str | None,
    chat: str | None,
    agent_wide: bool,
    agent: str | None,
    folder: Path,
    transcript: bool,
) -> None:
    """Write all that is remembered of a person or a group into files: one for another Remora, one to read."""
    from gateway import importing

    config = loaded(config_path)
    with _transferring():
        owner = importing.owner_of(config, person=person, chat=chat, agent_wide=agent_wide, agent=agent)
        if owner is None:
            asyncio.run(_name_owners(config, agent or config.default_agent))
        else:
            asyncio.run(_export(config, owner, folder, transcript=transcript))


@contextmanager
def _transferring() -> Iterator[None]:
    """Says what went wrong with an import or export, and ends with its code."""
    from gateway.importing import Unusable

    try:
        yield
    except KeyboardInterrupt:
        click.echo("Stopped. What is done stays; the same command goes on from here.", err=True)
        sys.exit(130)
    except Unusable as exc:
        fail(str(exc), EX_DATAERR)
    except StorageError as exc:
        fail(str(exc), storage_code(exc))
    except MemoryFault as exc:
        fail(str(exc), EX_DATAERR)
    except OSError as exc:
        fail(f"Can't write {exc.filename}: {exc.strerror}. Fix the rights of the folder.", EX_CANTCREAT)


async def _bring_in(config: Config, wanted: Wanted, *, dry_run: bool, yes: bool) -> None:
    from gateway import app, importing
    from memory.learn.guard import clean
    from memory.learn.redact import redact

    set_up_logs(config)
    found = importing.gather(config, wanted, mask=lambda text: redact(clean(text)))
    async with app.opened(config, {}) as parts:
        transfer = parts.stores[wanted.owner.agent].memory.transfer
        preview = await transfer.preview(wanted.owner, found.material, digest=found.digest)
        click.echo(importing.told(preview, wanted.owner))
        for advice in found.advice:
            click.echo(f"\n{advice}")
        if dry_run or not preview.counts.memories + preview.counts.messages:
            click.echo("Nothing was changed.")
            return
        if not yes:
            if not sys.stdin.isatty():
                fail("Nothing was brought in: nobody can be asked here, so add --yes.", click.UsageError.exit_code)
            click.confirm("Bring it in?", default=False, abort=True)
        with progress(len(found.material.items) + len(found.material.lines), "Bringing in", "entries") as advance:
            brought = await transfer.bring(
                wanted.owner,
                found.material,
                session_key=importing.session_key(config, wanted.owner, found.channel),
                learn=wanted.learn,
                digest=found.digest,
                progress=advance,
            )
        click.echo(importing.done(brought))


async def _undo_import(config: Config, short_id: str) -> None:
    from gateway import app, importing

    set_up_logs(config)
    async with app.opened(config, {}) as parts:
        transfer = await importing.find_import((store.memory.transfer for store in parts.stores.values()), short_id)
        counts = next(one.counts for one in await transfer.imports() if one.short_id == short_id)
        with progress(counts.memories + counts.messages, "Taking out", "entries") as advance:
            one = await transfer.undo(short_id, progress=advance)
    click.echo(f"{one.short_id} is undone: what it brought in is erased, and what it had replaced holds again.")


async def _list_imports(config: Config) -> None:
    from gateway import app, importing

    set_up_logs(config)
    async with app.opened(config, {}) as parts:
        stores = {id(store.memory): store.memory for store in parts.stores.values()}
        click.echo(importing.listed([one for memory in stores.values() for one in await memory.transfer.imports()]))


async def _name_owners(config: Config, agent: str) -> None:
    from gateway import app, importing

    set_up_logs(config)
    async with app.opened(config, {}) as parts:
        fail(importing.nobody(await parts.stores[agent].memory.transfer.known()), click.UsageError.exit_code)


async def _export(config: Config, owner: Owner, folder: Path, *, transcript: bool) -> None:
    from gateway import app, importing

    set_up_logs(config)
    async with app.opened(config, {}) as parts:
        exported = await parts.stores[owner.agent].memory.transfer.export_of(owner, transcript=transcript)
    data, page = importing.write(exported, owner, folder, now=app.now())
    click.echo(f"{exported.memories} memories and {exported.messages} messages are in {data}; read them in {page}.")
