"""Whether anything is learned from what is said here, and how that stands."""

from __future__ import annotations

from gateway.commands import jobs, lines
from gateway.commands.call import Call
from memory.service import Desk, Status

#: Failures of reading that have words of their own; all others are "failure.other".
_FAILURES = frozenset({"model_failed", "TimeoutError", "unreadable_answer"})


async def switch_off(call: Call, _rest: str) -> None:
    await _learn(call, on=False)


async def switch_on(call: Call, _rest: str) -> None:
    await _learn(call, on=True)


async def _learn(call: Call, *, on: bool) -> None:
    """Learn from what is said here, or not. In a group that is for all, and so for an admin to say."""
    if not call.agent.spec.memory.enabled:
        await call.say(call.texts("memory.off"))
        return
    where = "private" if call.context.session.private else "group"
    if where == "group" and not call.admin:
        await call.say(call.texts("learning.admins"))
        return

    def act(desk: Desk) -> str:
        desk.set_learning(on)
        said = [call.texts(f"learning.{'on' if on else 'off'}.{where}")]
        if on and not call.context.speaker.learning:
            said.append(call.texts("learning.out"))
        return "\n".join(said)

    await call.do(act)


async def status(call: Call, _rest: str) -> None:
    """How much is remembered here, and how learning stands."""
    texts = call.texts
    if not call.agent.spec.memory.enabled:
        await call.say(texts("memory.off"))
        return
    stats = await call.memory.figures.stats(call.context)
    kinds = [f"{texts(f'kinds.{kind}')} {count}" for kind, count in stats.kinds.items()]
    shown = [
        texts("memory.stats", kinds=", ".join(kinds) or texts("memory.nothing_yet"), past=stats.past),
        texts("memory.messages", count=stats.messages),
    ]
    if stats.since is not None:
        shown.append(texts("memory.since", date=texts.date(stats.since)))
    shown += standing(call, await call.memory.figures.status(call.context))
    await call.say("\n".join([*shown, *jobs.next_line(call)]))


def standing(call: Call, status: Status) -> list[str]:
    """How learning stands in this session: whether there is any, what waits, what went wrong, what it took today."""
    texts, reading = call.texts, status.reading
    if not call.agent.spec.memory.enabled:
        return [texts("memory.off")]
    if not call.context.speaker.learning:
        said = [texts("learning.out")]
    else:
        said = [texts("learning.is_on" if call.context.session.learning else "learning.is_off")]
    if status.unread:
        said.append(texts("learning.unread", count=status.unread))
    if reading.waiting:
        said.append(texts("learning.waiting", count=reading.waiting))
    if reading.over_budget:
        said.append(texts("learning.over_budget", count=reading.over_budget))
    if reading.learned_at is not None:
        said.append(texts("learning.last", at=texts.moment(reading.learned_at)))
    if (failure := reading.failure) is not None:
        reason = texts(f"failure.{failure.code if failure.code in _FAILURES else 'other'}")
        if failure.again_at is None:
            said.append(texts("learning.set_aside", why=reason, count=reading.parked))
        else:
            said.append(texts("learning.failed", why=reason, at=texts.moment(failure.again_at)))
    if status.tokens_in or status.tokens_out:
        cost = "" if status.cost is None else texts("cost.also", cost=lines.money(status.cost))
        said.append(texts("learning.today", tokens=status.tokens_in + status.tokens_out, cost=cost))
    return said
