"""The switch for learning from this conversation, and the state of learning."""

from __future__ import annotations

from gateway.commands import jobs, lines
from gateway.commands.call import Call
from memory.chat.stats import Status

#: Failures of reading that have a text of their own; all others get "failure.other".
_FAILURES = frozenset({"model_failed", "TimeoutError", "unreadable_answer"})


async def switch(call: Call, _rest: str, *, on: bool) -> None:
    """Switches learning from this session on or off; in a group, for all members, so only an admin may."""
    if not call.agent.spec.memory.enabled:
        await call.say(call.texts("memory.off"))
        return
    where = "private" if call.context.session.private else "group"
    if where == "group" and not call.admin:
        await call.say(call.texts("learning.admins"))
        return

    notices = [call.texts(f"learning.{'on' if on else 'off'}.{where}")]
    if on and not call.context.speaker.learning:
        notices.append(call.texts("learning.out"))
    await call.done("\n".join(notices), lambda edits: edits.set_learning(on))


async def status(call: Call, _rest: str) -> None:
    texts = call.texts
    if not call.agent.spec.memory.enabled:
        await call.say(texts("memory.off"))
        return
    stats = await call.memory.stats.stats(call.context)
    kinds = [f"{texts(f'kinds.{kind}')} {count}" for kind, count in stats.kinds.items()]
    notices = [
        texts("memory.stats", kinds=", ".join(kinds) or texts("memory.nothing_yet"), past=stats.past),
        texts("memory.messages", count=stats.messages),
    ]
    if stats.since is not None:
        notices.append(texts("memory.since", date=texts.date(stats.since)))
    notices += standing(call, await call.memory.stats.status(call.context))
    await call.say("\n".join([*notices, *jobs.next_line(call)]))


def standing(call: Call, status: Status) -> list[str]:
    """Returns lines: whether anything is learned, what waits, what went wrong, and the tokens that it took today."""
    texts, reading = call.texts, status.reading
    if not call.agent.spec.memory.enabled:
        return [texts("memory.off")]
    if not call.context.speaker.learning:
        states = [texts("learning.out")]
    else:
        states = [texts("learning.is_on" if call.context.session.learning else "learning.is_off")]
    if status.unread:
        states.append(texts("learning.unread", count=status.unread))
    if reading.waiting:
        states.append(texts("learning.waiting", count=reading.waiting))
    if reading.over_budget:
        states.append(texts("learning.over_budget", count=reading.over_budget))
    if reading.learned_at is not None:
        states.append(texts("learning.last", at=texts.moment(reading.learned_at)))
    if (failure := reading.failure) is not None:
        reason = texts(f"failure.{failure.code if failure.code in _FAILURES else 'other'}")
        if failure.again_at is None:
            states.append(texts("learning.set_aside", why=reason, count=reading.parked))
        else:
            states.append(texts("learning.failed", why=reason, at=texts.moment(failure.again_at)))
    if status.tokens_in or status.tokens_out:
        cost = "" if status.cost is None else texts("cost.also", cost=lines.money(status.cost))
        states.append(texts("learning.today", tokens=status.tokens_in + status.tokens_out, cost=cost))
    return states
