"""`remora keys`: the keys of a person's programs, for the operator at the machine; in a chat it is /keys.

Invariant: a key is printed once, when it is made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gateway.cli.start import AGENT, CONFIG, EX_DATAERR, ending, fail, loaded, opened

if TYPE_CHECKING:
    from memory.context import Context
    from memory.people.keyring import ApiKeys

_PERSON = click.option("--person", metavar="PLATFORM:USER", required=True, help="The person, as telegram:123456.")
_IN_USE = "Or leave it running: type /keys in a private chat, or open You on the web page (`remora web`)."


@click.group()
def keys() -> None:
    """List, make and revoke the keys of a person's programs. While `remora serve` runs, use /keys in a chat."""


@keys.command("list")
@CONFIG
@_PERSON
@AGENT
def list_(config_path: Path | None, person: str, agent: str | None) -> None:
    """Show a person's keys."""

    async def act(made: ApiKeys, context: Context) -> None:
        from gateway.commands.keys import told
        from gateway.wording.texts import Texts

        for key in await made.of(context):
            click.echo(told(Texts("en", context.timezone), key))

    _at_store(config_path, person, agent, act)


@keys.command()
@CONFIG
@click.argument("label")
@_PERSON
@AGENT
def make(config_path: Path | None, label: str, person: str, agent: str | None) -> None:
    """Make a key and print it, once. Begin the LABEL with chat, read or write to allow only that."""

    async def act(made: ApiKeys, context: Context) -> None:
        from gateway.commands.keys import asked_for
        from memory.people.keyring import MOST_KEYS

        fresh = await made.make(context, *asked_for(label))
        if fresh is None:
            fail(f"This person has {MOST_KEYS} keys already. Revoke one first.", EX_DATAERR)
        click.echo(fresh[1])

    _at_store(config_path, person, agent, act)


@keys.command()
@CONFIG
@click.argument("number", type=int)
@_PERSON
@AGENT
def revoke(config_path: Path | None, number: int, person: str, agent: str | None) -> None:
    """End a key for ever. `keys list` shows the numbers."""

    async def act(made: ApiKeys, context: Context) -> None:
        if not await made.revoke(context, number):
            fail(f"{person} has no key {number}.", EX_DATAERR)
        click.echo(f"Key {number} is revoked.")

    _at_store(config_path, person, agent, act)


def _at_store(
    config_path: Path | None, person: str, agent: str | None, act: Callable[[ApiKeys, Context], Awaitable[None]]
) -> None:
    config = loaded(config_path)

    async def done() -> None:
        from gateway.cli.importing import asker, owner_of

        owner = owner_of(config, person=person, chat=None, agent_wide=False, agent=agent)
        assert owner is not None, "a person is named"
        async with opened(config) as roster:
            memory = roster.stores[owner.agent].memory
            await act(memory.keys, await asker(memory, owner, person))

    with ending(in_use=_IN_USE):
        asyncio.run(done())
