"""Commands about the conversation itself: start anew, stop, retry, undo, its agent, task, usage, status."""

from __future__ import annotations

from gateway.commands import jobs
from gateway.commands.call import Call, excerpt
from gateway.commands.texts import Texts
from memory.service import Edits, Status, Used

#: Longest task, in characters: it stands in every prompt.
_TASK = 300
#: Purposes for which models are called by day; all other calls are made by night jobs.
_TALK = frozenset({"chat", "extract"})
#: The argument of /agent that leaves the choice to the routing of the configuration.
_BY_RULES = "default"
#: Words that end a task when typed after the command, in either language.
_ENDED = frozenset({"done", "off", "none", "完成", "结束", "没有"})


async def start(call: Call) -> None:
    await call.say(call.texts("start.done", name=call.agent.spec.name))


async def stop(call: Call) -> None:
    await call.say(call.texts("stop.asked" if await call.stop() else "stop.nothing"))


async def new(call: Call) -> None:
    def act(edits: Edits) -> str:
        edits.start_window()
        return call.texts("new.done")

    await call.do(act)
    call.memory.learn_soon(call.context, "session ended")


async def retry(call: Call) -> None:
    """Answers the person's last messages anew."""
    meant = _turn(call)
    turn_id = await call.memory.turns.again(call.context, call.inbox_id, failed=meant)
    if turn_id is None:
        await call.say(call.texts("retry.nothing" if meant is None else "answer.over"))
    else:
        await call.rerun(turn_id)


async def undo(call: Call) -> None:
    """Takes back the person's last turn, with the memories learned from it."""

    def act(edits: Edits) -> str:
        meant = _turn(call)
        undone = edits.undo(meant)
        if undone is None:
            return call.texts("undo.nothing" if meant is None else "answer.over")
        gone = "; ".join(call.phrase(memory) for memory in undone.memories)
        taught = call.texts("undo.taught", list=gone) if gone else call.texts("undo.plain")
        return call.texts("undo.done", date=call.texts.moment(undone.said_at), taught=taught)

    await call.do(act)


def _turn(call: Call) -> int | None:
    """Returns the id of the turn that a button was made for, else None.

    Pressed later or by somebody else, the button must not mean another turn.
    """
    given = call.arguments.strip()
    return int(given[:18]) if given.isdecimal() else None


async def task(call: Call) -> None:
    """Shows, sets or ends the task of this session."""
    wanted = call.arguments.strip()
    current = call.context.session.active_task
    if not wanted:
        none = call.texts("task.none", usage=call.usage)
        await call.say(none if current is None else call.texts("task.now", task=current))
        return
    ended = wanted.casefold() in _ENDED

    if len(wanted) > _TASK:
        await call.say(call.texts("task.long", most=_TASK))
        return

    def act(edits: Edits) -> str:
        edits.set_task(None if ended else wanted)
        if not ended:
            return call.texts("task.set", task=excerpt(wanted))
        return call.texts("task.none", usage=call.usage) if current is None else call.texts("task.done", task=current)

    await call.do(act)


async def agent(call: Call) -> None:
    """Shows which agent answers here, or lets another agent of the same database answer.

    In a group only admins choose, because everybody there gets the chosen agent's answers.
    """
    texts, wanted, roster = call.texts, call.arguments.strip(), call.roster
    now, names = call.agent.spec.name, roster.beside(call.agent.spec.name)
    named = next((name for name in (*names, _BY_RULES) if name.casefold() == wanted.casefold()), None)
    if not wanted:
        others = ", ".join(name for name in names if name != now)
        more = texts("agent.others", names=others, usage=call.usage) if others else texts("agent.only")
        await call.say(texts("agent.now", name=now, more=more))
    elif named is None:
        await call.say(texts("agent.unknown", name=excerpt(wanted), names=", ".join(names)))
    elif call.inbound.chat_kind != "private" and not call.admin:
        await call.say(texts("agent.admins"))
    else:
        chosen = None if named == _BY_RULES and named not in names else named

        def act(edits: Edits) -> str:
            edits.choose_agent(chosen)
            return texts("agent.rules" if chosen is None else "agent.chosen", name=chosen or roster.route(call.inbound))

        await call.do(act)
        roster.choose(call.inbound, chosen)


async def usage(call: Call) -> None:
    """Shows what model calls took here, and to admins also what they took with this agent everywhere."""
    lines = []
    for where in ("here", "everywhere") if call.admin else ("here",):
        for days in (1, 30):
            used = await call.memory.stats.usage(call.context, days=days, everywhere=where == "everywhere")
            lines.append(call.texts(f"usage.{where}.{days}"))
            lines += [_used(call.texts, one) for one in used] or [call.texts("usage.none")]
    await call.say("\n".join(lines))


def _used(texts: Texts, used: Used) -> str:
    cost = "" if used.cost is None else texts("usage.cost", cost=f"{used.cost:.4f}")
    return texts(
        "usage.line",
        purpose=texts(f"usage.purpose.{used.purpose}") if used.purpose in _TALK else jobs.job_name(texts, used.purpose),
        model=used.model,
        calls=used.calls,
        tokens_in=used.input_tokens,
        tokens_out=used.output_tokens,
        cost=cost,
    )


async def status(call: Call) -> None:
    texts, spec = call.texts, call.agent.spec
    model = texts("status.offline") if call.agent.offline else call.agent.provider.name
    remembers = spec.memory.enabled
    standing = await call.memory.stats.status(call.context)
    learned_at = standing.reading.learned_at
    lines = [
        texts("status.agent", agent=spec.name, model=model),
        texts("status.session", key=call.context.session.key),
        texts("status.memory", live=standing.live, total=standing.total) if remembers else texts("status.memory_off"),
        texts(
            "status.window",
            messages=standing.window_messages,
            tokens=standing.window_tokens,
            limit=spec.window_tokens,
        ),
        texts(
            "status.learning",
            unread=standing.unread,
            waiting=standing.reading.waiting,
            parked=standing.reading.parked,
            budget=standing.reading.over_budget,
            last=texts("status.never") if learned_at is None else texts.moment(learned_at),
        ),
        _meaning(texts, standing),
        # The inbox row of this command is itself still waiting.
        texts("status.mail", inbound=max(0, standing.inbound - 1), outbound=standing.outbound),
        texts("status.usage", tokens_in=standing.tokens_in, tokens_out=standing.tokens_out),
        *jobs.next_line(call),
        *([texts("status.store", path=standing.path, sqlite=standing.sqlite)] if call.trusted else []),
    ]  # fmt: skip
    await call.say("\n".join(lines))


def _meaning(texts: Texts, standing: Status) -> str:
    """Returns lines telling by what memory is searched besides words, and how many vectors have been made."""
    if standing.embedding is None:
        return texts("status.words_only")
    found = standing.embedding
    if not found.model:
        return texts("status.no_embedder")
    lines = [texts("status.embedding", model=found.model, done=found.done, total=found.total)]
    if found.refused:
        lines.append(texts("status.embedding_refused", refused=found.refused))
    if found.trouble:
        lines.append(texts("status.embedding_paused"))
    return "\n".join(lines)
