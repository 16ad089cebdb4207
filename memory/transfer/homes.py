"""The owners of imports: their identities in the platform's terms, and the destinations of their imports.

Invariants: nothing is begun for an owner who has learning switched off. Looking an owner up creates nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from memory.errors import MemoryFault
from memory.scope import Scope
from memory.store import chats, people, scopes
from memory.store.chats import Session
from memory.store.database import Reader, Transaction
from memory.transfer.formats.material import Ownership


class OptedOut(MemoryFault):
    """The owner of the import has learning switched off."""

    code = "opted_out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The intended owner of an import in the platform's terms: a person by user id, a group by chat id, or an agent.

    With `own_threads`, each thread of the group keeps the memories of it to itself.
    """

    kind: Ownership
    agent: str
    platform: str = ""
    reference: str = ""
    thread: str | None = None
    name: str = ""
    own_threads: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """The destination of an import: its owner's row and scope.

    `identity_id` is the person, if the owner is one; `named` is that person's platform and user id on it.
    """

    owner_id: int
    scope: Scope
    agent_id: int
    identity_id: int | None
    chat_id: int | None
    timezone: str
    named: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A person or group that this store knows: `reference` as `platform:id`, and their name."""

    private: bool
    reference: str
    name: str


def resolve(tx: Transaction, owner: Owner, *, agents: Mapping[str, int], timezone: str, now: int) -> Home:
    """Returns the owner's home, creating the row if there is none yet. Raises `OptedOut`."""
    agent_id = agents[owner.agent]
    if owner.kind == "agent":
        return agent_home(tx, agent_id, timezone=timezone)
    if owner.kind == "person":
        speaker = people.known_speaker(tx, platform=owner.platform, user_id=owner.reference) or people.speaker(
            tx, platform=owner.platform, user_id=owner.reference, name=owner.name, now=now
        )
        if not speaker.learning:
            raise OptedOut(
                f"{speaker.name or owner.reference} has learning turned off, so nothing was imported. They can turn "
                "it on with /memory on."
            )
    else:
        chat_id = chats.chat(
            tx, platform=owner.platform, reference=owner.reference, kind="group", title=owner.name, now=now
        )
        if owner.own_threads:  # the group may not have spoken yet
            chats.keep_threads(tx, chat_id, owner.thread, own=True)
        scopes.own_thread(tx, chat_id, owner.thread)
        if not chats.learns_in(tx, chat_id):
            raise OptedOut(f"{owner.name or owner.reference} has learning turned off, so nothing was imported.")
    home = known_home(tx, owner, agent_id=agent_id, timezone=timezone)
    assert home is not None
    return home


def known_home(reader: Reader, owner: Owner, *, agent_id: int, timezone: str) -> Home | None:
    """Returns the home of a known owner without writing; None if the owner is unknown."""
    if owner.kind == "agent":
        return agent_home(reader, agent_id, timezone=timezone)
    if owner.kind == "person":
        speaker = people.known_speaker(reader, platform=owner.platform, user_id=owner.reference)
        if speaker is None:
            return None
        home = _home(reader, agent_id, timezone=speaker.timezone or timezone, identity_id=speaker.id)
        return replace(home, named=(owner.platform, owner.reference))
    chat_id = chats.group(reader, platform=owner.platform, reference=owner.reference)
    if chat_id is None:
        return None
    return _home(reader, agent_id, timezone=timezone, chat_id=chat_id, thread=owner.thread)


def agent_home(reader: Reader, agent_id: int, *, timezone: str) -> Home:
    owner_id = scopes.agent_owner(reader, agent_id)
    scope = scopes.scope_of_owner(reader, owner_id, agent_id=agent_id)
    return Home(owner_id=owner_id, scope=scope, agent_id=agent_id, identity_id=None, chat_id=None, timezone=timezone)


def home_of(reader: Reader, owner_id: int, *, agent_id: int, timezone: str) -> Home:
    row = scopes.owner(reader, owner_id)
    if row["kind"] == "agent":
        return agent_home(reader, row["agent_id"], timezone=timezone)
    person = people.account(reader, row["identity_id"]) if row["kind"] == "identity" else None
    home = _home(
        reader,
        agent_id,
        timezone=timezone,
        identity_id=row["identity_id"],
        chat_id=row["chat_id"],
        thread=row["thread"],
    )
    return replace(home, owner_id=owner_id, named=None if person is None else (person.platform, person.user_id))


def _home(
    reader: Reader,
    agent_id: int,
    *,
    timezone: str,
    identity_id: int | None = None,
    chat_id: int | None = None,
    thread: str | None = None,
) -> Home:
    # Like a session of the owner, who may have none yet.
    session = Session(
        id=0, key="", chat_id=chat_id or 0, thread=thread, agent_id=agent_id, private=identity_id is not None
    )
    scope = chats.scope_of(reader, session, identity_id)
    return Home(
        owner_id=scope.writes_to,
        scope=scope,
        agent_id=agent_id,
        identity_id=identity_id,
        chat_id=chat_id,
        timezone=timezone,
    )


def known(reader: Reader) -> list[Known]:
    persons, groups = people.all_identities(reader), chats.all_groups(reader)
    return [
        *(Known(private=True, reference=f"{r['platform']}:{r['user_id']}", name=r["name"]) for r in persons),
        *(Known(private=False, reference=f"{r['platform']}:{r['reference']}", name=r["title"]) for r in groups),
    ]
