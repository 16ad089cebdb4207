"""The processes of a store, the sessions that they hold, and their duties.

Invariants: a session has one holder. When a process is removed, its sessions and duties are free at once. A process
that takes a session marks as `unknown` the messages that its last holder was sending.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from hashlib import sha256

from memory.store.database import Reader, Transaction
from memory.store.server import Peer


def join(tx: Transaction, replica: str) -> None:
    """Enters a process, and drops what is known of transactions of those that are gone."""
    tx.run("delete from commits where writer not in (select id from replicas)")
    tx.run("insert into replicas (id, beat, answers) values (?, 0, 0)", (replica,))


def part(tx: Transaction, replica: str) -> None:
    tx.run("delete from replicas where id = ?", (replica,))


def peers(reader: Reader) -> list[Peer]:
    rows = reader.all(
        "select r.id, r.beat, r.answers, (select count(*) from lanes l where l.holder = r.id) as lanes from replicas r"
        " order by r.id"
    )
    duties = reader.all("select name, holder from duties order by name")
    return [
        Peer(
            id=row["id"],
            beat=row["beat"],
            answers=bool(row["answers"]),
            lanes=row["lanes"],
            duties=tuple(duty["name"] for duty in duties if duty["holder"] == row["id"]),
        )
        for row in rows
    ]


def chosen(reader: Reader, session_keys: Sequence[str]) -> dict[str, str]:
    """Returns the answering process that each session falls to, by rendezvous hashing.

    All processes choose alike, and few sessions move when one comes or goes (Thaler and Ravishankar, 1998).
    """
    answering = [row["id"] for row in reader.all("select id from replicas where answers = 1")]
    if not answering:
        return {}
    return {key: max(answering, key=lambda one: sha256(f"{one} {key}".encode()).digest()) for key in session_keys}


def hold(tx: Transaction, session_key: str, replica: str) -> str:
    """Gives a session to a process unless another has it. Returns the holder."""
    while True:
        row = tx.one(
            "insert into lanes (session_key, holder) values (?, ?) on conflict do nothing returning holder",
            (session_key, replica),
        )
        if row is not None:
            tx.run(
                "update outbox set state = 'unknown' where state in ('pending', 'sending', 'unknown')"
                " and state = 'sending' and session_key = ?",
                (session_key,),
            )
            return replica
        if (other := holder(tx, session_key)) is not None:
            return other
        # The process that had it was removed between the two statements.


def holder(reader: Reader, session_key: str) -> str | None:
    return reader.text("select holder from lanes where session_key = ?", (session_key,))


def left_alone(reader: Reader, replica: str, *, unread: bool) -> dict[str, bool]:
    """Returns the sessions that no other process than `replica` holds and that have messages left to answer or show.

    With `unread`, also those that have messages left to read. The value is True if the process holds the session.
    """
    rows = reader.all(
        "select w.session_key, l.holder is not null as is_held from (select session_key from inbox"
        " where state in ('pending', 'claimed') and held = 0"
        " union select session_key from outbox where state in ('pending', 'sending', 'unknown') and offered = 0"
        f"{_UNREAD if unread else ''}) w left join lanes l on l.session_key = w.session_key"
        " where l.holder is null or l.holder = ?",
        (replica,),
    )
    return {row["session_key"]: bool(row["is_held"]) for row in rows}


def leave(tx: Transaction, session_keys: Collection[str], replica: str, *, asked: bool) -> list[str]:
    """Frees the sessions among a process's in which nothing is left to do; if it was `asked` to, all of them."""
    done = "" if asked else _DONE
    return tx.texts(
        "delete from lanes where holder = ? and session_key in (select value from json_each(?))"
        f"{done} returning session_key",
        (replica, list(session_keys)),
    )


def has_duty(reader: Reader, name: str) -> str | None:
    return reader.text("select holder from duties where name = ?", (name,))


def take_duty(tx: Transaction, name: str, replica: str) -> bool:
    tx.run("insert into duties (name, holder) values (?, ?) on conflict do nothing", (name, replica))
    return has_duty(tx, name) == replica


_UNREAD = (
    " union select s.key from sessions s join extractions e on e.session_id = s.id where e.state = 'pending'"
    " union select s.key from sessions s where exists"
    " (select 1 from messages m where m.session_id = s.id and m.id > s.extracted_to and m.learn = 1)"
)
#: The condition that nothing is left to answer, to show or to read in a lane's session.
_DONE = (
    " and not exists (select 1 from inbox i where i.session_key = lanes.session_key"
    "  and i.state in ('pending', 'claimed') and i.held = 0)"
    " and not exists (select 1 from outbox o where o.session_key = lanes.session_key"
    "  and o.state in ('pending', 'sending', 'unknown') and o.offered = 0)"
    " and not exists (select 1 from sessions s join extractions e on e.session_id = s.id"
    "  where s.key = lanes.session_key and e.state = 'pending')"
    " and not exists (select 1 from sessions s join messages m on m.session_id = s.id"
    "  where s.key = lanes.session_key and m.id > s.extracted_to and m.learn = 1)"
)
