"""Commands for admins only: who may speak, agents, the configuration, backups, undelivered messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from agents.spec import AgentSpec
from gateway.commands.call import Call, by_action
from gateway.wording.texts import Texts
from memory.chat.edits import Edits
from memory.errors import StorageError

#: Rows of a list.
_SHOWN = 10
#: The most digits of a row's number.
_DIGITS = 15


async def allow(call: Call) -> None:
    await _let(call, "allow")


async def block(call: Call) -> None:
    await _let(call, "block")


async def _let(call: Call, action: Literal["allow", "block"]) -> None:
    """Lets in or shuts out a person by id, or with "here" the group in which this is said."""
    named, channel, by = call.arguments.strip(), call.administers, call.account
    in_group = call.inbound.chat_kind == "group"
    subject: Literal["person", "group"] = "group" if named == "here" and in_group else "person"
    reference = call.inbound.chat if subject == "group" else named
    if not named and not in_group:
        grants = await call.access.grants(channel)
        lines = [call.texts(f"grant.{grant.state}.{grant.subject}", id=grant.reference) for grant in grants]
        await call.say("\n".join([call.usage_line(), *lines]))
        return
    if subject == "person" and not call.ids.is_person(reference):
        await call.say(call.usage_line())
        return
    if action == "block" and subject == "person" and call.is_admin(reference):
        await call.say(call.texts("block.admin", id=reference))
        return
    decide = call.access.allow if action == "allow" else call.access.block
    changed = await decide(channel, subject, reference, by=by)
    await call.say(call.texts(f"{action}.{subject}" if changed else f"{action}.already", id=reference))


async def pair(call: Call) -> None:
    code = call.new_code()
    pairing = await call.access.open_pairing(call.administers, code)
    if pairing.opened:
        await call.say(call.texts("pair.done", code=code))
    else:
        await call.say(call.texts("pair.many", until=call.texts.moment(pairing.until)))


async def agents(call: Call) -> None:
    specs = [agent.spec for agent in call.roster.agents.values()]
    await call.say(told_agents(call.texts, specs, default=call.roster.default))


async def dead(call: Call) -> None:
    number = f"[0-9]{{1,{_DIGITS}}}"
    await by_action(
        call, {"": ("", _list_dead), "purge": ("", _purge), "retry": (number, _send_again), "drop": (number, _drop)}
    )


async def _list_dead(call: Call, _rest: str) -> None:
    texts, rows = call.texts, await call.memory.mailbox.dead(call.administered, limit=_SHOWN)
    if not rows:
        await call.say(texts("dead.none"))
        return
    lines = [
        texts(
            "dead.line", id=row.id, key=row.session_key, date=texts.moment(row.created_at), why=row.error or row.state
        )
        for row in rows
    ]
    await call.say("\n".join([texts("dead.head"), *lines, texts("dead.hint")]))


async def _purge(call: Call, _rest: str) -> None:
    await call.do(lambda edits: call.texts("dead.purged", count=edits.purge_dead(call.administered)))


async def _drop(call: Call, number: str) -> None:
    def drop(edits: Edits) -> str:
        known = edits.drop_dead(call.administered, int(number))
        return call.texts("dead.dropped" if known else "dead.unknown", id=number)

    await call.do(drop)


async def _send_again(call: Call, number: str) -> None:
    woken: list[str] = []

    def send(edits: Edits) -> str:
        key = edits.retry_dead(call.administered, int(number))
        woken.extend(() if key is None else (key,))
        return call.texts("dead.unknown" if key is None else "dead.retried", id=number)

    await call.do(send)
    for key in woken:
        call.wake(key)


async def backup(call: Call) -> None:
    texts, backups = call.texts, call.memory.backups
    try:
        made = await backups.make()
    except StorageError as exc:
        await call.say(texts("backup.failed", reason=str(exc)))
        return
    counts = (("people", made.people), ("messages", made.messages), ("memories", made.memories))
    await call.say(
        texts(
            "backup.done",
            name=made.name,
            size=_size(made.size),
            counts=", ".join(texts(f"backup.count.{what}", count=count) for what, count in counts),
            days=backups.keep_days,
        )
    )


async def reload(call: Call) -> None:
    if call.reload is None:
        await call.say(call.texts("reload.private"))
        return
    done = await call.reload()
    parts = (("problem", done.problem), ("changed", ", ".join(done.changed)), ("restart", ", ".join(done.restart)))
    notices = [call.texts(f"reload.{what}", what=named) for what, named in parts if named]
    await call.say("\n".join(notices or [call.texts("reload.same")]))


def told_agents(texts: Texts, specs: Sequence[AgentSpec], *, default: str) -> str:
    """Returns the agents with their models in order, stores and places. People are counted and not named."""
    lines = [texts("agents.head")]
    for spec in specs:
        models = [f"{model.provider}/{model.model}" for model in spec.models if model.provider != "offline"]
        lines.append(
            texts(
                "agents.line",
                name=spec.name,
                default=texts("agents.default") if spec.name == default else "",
                models=" → ".join(models) or texts("agents.offline"),
                store=spec.database or texts("agents.shared"),
                memory=texts("agents.on" if spec.memory.enabled else "agents.off"),
            )
        )
        routing = spec.routing
        places = [*routing.threads, *routing.chats, *routing.channels]
        if routing.people:
            places.append(texts("agents.people", count=len(routing.people)))
        if places:
            lines.append(texts("agents.routes", places=", ".join(places)))
    return "\n".join(lines)


def _size(count: int) -> str:
    return f"{count / 1_000_000:.1f} MB" if count >= 100_000 else f"{count / 1_000:.0f} kB"
