"""`remora import` and `export`: memory brought in from elsewhere, and written out for elsewhere.

Invariant: everything that is brought in was shown before, and agreed to at the prompt or by --yes.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gateway.cli.start import AGENT, CONFIG, EX_CANTCREAT, counted, ending, fail, loaded, opened, progress, set_up_logs

if TYPE_CHECKING:
    from gateway.cli.importing import Wanted
    from gateway.config.loading import Config
    from memory.transfer.homes import Owner

_PERSON = click.option("--person", metavar="PLATFORM:USER", help="A person, as telegram:123456.")
_CHAT = click.option("--chat", metavar="CHANNEL:CHAT", help="A group, as telegram:-1001234567890.")
_AGENT_WIDE = click.option("--agent-wide", is_flag=True, help="Everyone who talks to the agent.")


@click.command("import")
@CONFIG
@click.argument("what", nargs=-1, required=True, metavar="PATH | list | undo ID")
@_PERSON
@_CHAT
@_AGENT_WIDE
@AGENT
@click.option("--talk", "talks", multiple=True, metavar="ID", help="A chat in a Telegram export; may be repeated.")
@click.option("--me", metavar="USER", help="The person's user id in the export, if it differs.")
@click.option("--learn/--no-learn", default=None, help="Learn from people's own messages (default for --person: yes).")
@click.option("--format", "form", metavar="NAME", help="An importer of an installed package; else the files tell.")
@click.option("--dry-run", is_flag=True, help="Show what would be imported, and change nothing.")
@click.option("--yes", is_flag=True, help="Don't ask.")
def import_(  # noqa: PLR0913 - one for each option
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
    form: str | None,
    dry_run: bool,
    yes: bool,
) -> None:
    """Import memory from other assistants' notes, Telegram exports or Remora exports; list or undo imports."""
    from gateway.cli import importing

    config = loaded(config_path)
    with _transferring():
        owner = importing.owner_of(config, person=person, chat=chat, agent_wide=agent_wide, agent=agent)
        if what[0] == "undo" and len(what) == 2:
            asyncio.run(_undo_import(config, what[1]))
        elif what == ("list",):
            asyncio.run(_list_imports(config))
        elif len(what) > 1:
            fail("Name one file or folder, or use `list` or `undo ID`.", click.UsageError.exit_code)
        elif owner is None:
            asyncio.run(_name_owners(config, agent or config.default_agent))
        else:
            wanted = importing.Wanted(
                path=Path(what[0]),
                owner=owner,
                learn=owner.kind == "person" if learn is None else learn,
                talks=talks,
                me=me,
                format=form,
            )
            asyncio.run(bring_in(config, wanted, dry_run=dry_run, yes=yes))


@click.command()
@CONFIG
@_PERSON
@_CHAT
@_AGENT_WIDE
@AGENT
@click.option(
    "--to", "folder", required=True, metavar="FOLDER", type=click.Path(path_type=Path), help="Folder for the files."
)
@click.option("--transcript", is_flag=True, help="Include everything that was said, not only the sources of memories.")
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
    """Export everything remembered about a person or group: one file for another Remora, one to read."""
    from gateway.cli import importing

    config = loaded(config_path)
    with _transferring():
        owner = importing.owner_of(config, person=person, chat=chat, agent_wide=agent_wide, agent=agent)
        if owner is None:
            asyncio.run(_name_owners(config, agent or config.default_agent))
        else:
            asyncio.run(_export(config, owner, folder, transcript=transcript))


@contextmanager
def _transferring() -> Iterator[None]:
    with ending(stopped="Stopped. Finished work is kept. Run the same command to continue."):
        try:
            yield
        except OSError as exc:
            fail(f"Can't write {exc.filename}: {exc.strerror}. Fix the permissions of the folder.", EX_CANTCREAT)


async def bring_in(config: Config, wanted: Wanted, *, dry_run: bool, yes: bool) -> None:
    from gateway.cli import importing
    from memory.text.guard import clean
    from memory.text.secrets.redact import redact

    set_up_logs(config)
    found = importing.gather(config, wanted, mask=lambda text: redact(clean(text)))
    async with opened(config) as roster:
        transfer = roster.stores[wanted.owner.agent].memory.transfer
        preview = await transfer.preview(wanted.owner, found.material, digest=found.digest)
        click.echo(importing.told(preview, wanted.owner))
        for advice in found.advice:
            click.echo(f"\n{advice}")
        if dry_run or not preview.counts.memories + preview.counts.messages:
            click.echo("Nothing was changed.")
            return
        if not yes:
            if not sys.stdin.isatty():
                fail(
                    "Nothing was imported. There is no terminal to confirm in, so add --yes.",
                    click.UsageError.exit_code,
                )
            click.confirm("Import this?", default=False, abort=True)
        with progress(len(found.material.items) + len(found.material.lines), "Importing", "entries") as advance:
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
    from gateway.cli import importing

    async with opened(config) as roster:
        transfer = await importing.find_import((store.memory.transfer for store in roster.each_store), short_id)
        counts = next(one.counts for one in await transfer.imports() if one.short_id == short_id)
        with progress(counts.memories + counts.messages, "Undoing", "entries") as advance:
            one = await transfer.undo(short_id, progress=advance)
    click.echo(f"{one.short_id} is undone. What it imported is erased, and what it had replaced is restored.")


async def _list_imports(config: Config) -> None:
    from gateway.cli import importing

    async with opened(config) as roster:
        found = [one for store in roster.each_store for one in await store.memory.transfer.imports()]
        click.echo(importing.listed(found))


async def _name_owners(config: Config, agent: str) -> None:
    from gateway.cli import importing

    async with opened(config) as roster:
        fail(importing.nobody(await roster.stores[agent].memory.transfer.known()), click.UsageError.exit_code)


async def _export(config: Config, owner: Owner, folder: Path, *, transcript: bool) -> None:
    from gateway import app
    from gateway.cli import importing

    async with opened(config) as roster:
        exported = await roster.stores[owner.agent].memory.transfer.export_of(owner, transcript=transcript)
    data, page = importing.write(exported, owner, folder, now=app.now())
    click.echo(
        f"Exported {counted(memories=exported.memories, messages=exported.messages)} to {data}. "
        f"To read them, open {page}."
    )
