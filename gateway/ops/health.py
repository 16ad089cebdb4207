"""The health of the process: its report, how a command asks the running process for it, and its words for people.

Invariant: a report holds numbers, names and sentences for the operator, never people's words.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from agents.llm import Contact
    from gateway.ops.stalls import Stall
    from memory.store.server import Deployment

PATH = "/healthz"
#: Seconds that `ask` waits for the running process.
_PATIENCE = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelReport:
    """The state of a channel. `last_poll_seconds_ago` is None as long as its platform has never answered.

    A channel `stands_by` while another process receives for its bot. That is no trouble, nor are `unread` values in
    updates: the rest of them was read.
    """

    last_poll_seconds_ago: int | None
    trouble: str
    stands_by: bool = False
    unread: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreReport:
    """The state of a database.

    `oldest_inbox_seconds` is how long its oldest message has waited for an answer, `oldest_outbox_seconds` how long
    its oldest answer has waited to be delivered; each is None if nothing waits. `wal_bytes` is the size of its
    write-ahead log in bytes. `words_only` says why memory is searched by words alone at the moment; everybody still
    gets answers, so this does not turn the report red. `deployment` is None if the store could not be asked.
    `set_aside` counts the pieces of talk and the memories that models refused to read, `muted` the places in which
    nothing may be written.
    """

    name: str
    oldest_inbox_seconds: int | None = None
    oldest_outbox_seconds: int | None = None
    damage: str | None = None
    wal_bytes: int | None = None
    words_only: str = ""
    deployment: Deployment | None = None
    set_aside: int = 0
    muted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopReport:
    """The state of endless work of a store, or of the process if `store` is empty.

    `restarts` are its failures since the start, after each of which it went on by itself. `put_off` are sentences about
    a few of the people, reminders and other units that failed and are tried again later: `failing` in all.
    """

    store: str
    loop: str
    restarts: int
    failing: int
    put_off: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The state of the process. Every reason is a sentence for the operator; `stall` is the longest of five minutes.

    `models` are those that were asked since the start. One that fails does not turn the report red: the next is asked.
    """

    reasons: tuple[str, ...]
    channels: Mapping[str, ChannelReport]
    stores: tuple[StoreReport, ...]
    version: str
    uptime_seconds: int
    stall: Stall | None = None
    loops: tuple[LoopReport, ...] = ()
    models: Mapping[str, Contact] = field(default_factory=dict)

    @property
    def status(self) -> Literal["green", "red"]:
        return "red" if self.reasons else "green"


def address(host: str, port: int) -> str:
    return near_url(host, port) + PATH


def near_url(host: str, port: int) -> str:
    near = _near(host)
    return f"http://{f'[{near}]' if ':' in near else near}:{port}"


def ask(host: str, port: int) -> dict[str, Any] | None:
    """Returns the page of the process that serves it at `host` and `port`; None when no Remora answers there."""
    connection = HTTPConnection(_near(host), port, timeout=_PATIENCE)
    try:
        connection.request("GET", PATH, headers={"Host": f"localhost:{port}"})
        said = json.loads(connection.getresponse().read(1_000_000))
    except (OSError, HTTPException, ValueError):
        return None
    finally:
        connection.close()
    return said if isinstance(said, dict) and {"status", "channels", "stores"} <= said.keys() else None


def told(page: Mapping[str, Any]) -> str:
    how = "well" if page["status"] == "green" else "in trouble"
    lines = [f"Remora {page['version']} is {how}, running for {_span(page['uptime_seconds'])}."]
    lines += [f"  ! {reason}" for reason in page["reasons"]]
    for name, channel in page["channels"].items():
        ago = channel["last_poll_seconds_ago"]
        if channel.get("stands_by"):
            lines.append(f"  {name}: stands by; another process receives for this bot")
        else:
            lines.append(f"  {name}: " + ("no contact yet" if ago is None else f"last contact {_span(ago)} ago"))
    for store in page["stores"]:
        inbox, outbox = store["oldest_inbox_seconds"], store["oldest_outbox_seconds"]
        waiting = [
            f"{what} for {_span(age)}"
            for what, age in (("a message waits", inbox), ("an answer is undelivered", outbox))
            if age is not None
        ]
        lines.append(f"  {store['name']}: " + (", ".join(waiting) or "nothing waits"))
        if store.get("words_only"):
            lines.append(f"  {store['name']}: memory is searched by words only. {store['words_only']}")
        if number := store.get("set_aside"):
            lines.append(f"  {store['name']}: {number} set aside, because no model would read them")
        if number := store.get("muted"):
            lines.append(f"  {store['name']}: nothing may be written in {number} place{'s' if number > 1 else ''}")
        if (deployment := store.get("deployment")) and deployment["server"]:
            lines += _told_of_server(deployment)
    if stall := page.get("stall"):
        lines.append(
            f"  the longest stall of late: {stall['seconds']:.1f} s ({stall['processor_seconds']:.1f} s computing) at "
            f"{stall['place'] or stall['innermost'] or 'an unknown place'}"
        )
    for loop in page.get("loops", ()):
        lines += [f"  {loop['store'] or 'process'}: {sentence}" for sentence in loop["put_off"]]
        if more := loop["failing"] - len(loop["put_off"]):
            lines.append(f"  {loop['store'] or 'process'}: {loop['loop']}, {more} more are put off")
    return "\n".join(lines)


def _told_of_server(deployment: Mapping[str, Any]) -> list[str]:
    server, answering = deployment["server"], [peer for peer in deployment["peers"] if peer["answers"]]
    durable = [f"{name} {'on' if server[name] else 'OFF'}" for name in ("fsync", "synchronous_commit")]
    many = f"{len(answering)} processes answer" if len(answering) != 1 else "one process answers"
    lines = [f"    {deployment['engine']}, pgvector {server['vectors']}, {', '.join(durable)}; {many}"]
    for peer in answering:
        own = " (this one)" if peer["id"] == deployment["own"] else ""
        sessions = "1 session" if peer["lanes"] == 1 else f"{peer['lanes']} sessions"
        lines.append(f"    {peer['id']}{own}: " + "; ".join([sessions, *peer["duties"]]))
    lines += [f"    standby {one['name']}: {lag(one)}" for one in server["standbys"]]
    return lines


def lag(standby: Mapping[str, Any]) -> str:
    if standby["lag_bytes"] is None:
        return "the role in database_url may not see how far it is behind"
    seconds = standby["lag_seconds"]
    behind = f"{standby['lag_bytes']:,} bytes" + (f" and {seconds:.1f} s" if seconds is not None else "")
    return f"{standby['state']}, {behind} behind"


def _span(seconds: int) -> str:
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def _near(host: str) -> str:
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - read, not bound
