"""Commands about the conversation itself: start anew, stop, retry, undo, sum up, task, agent, model, usage, status."""

from __future__ import annotations

from gateway.commands import jobs, keys, learning
from gateway.commands.call import Call, excerpt
from gateway.commands.why import NO_MODEL
from gateway.pipeline import limits
from gateway.wording.texts import Texts, means
from memory.chat.edits import Edits
from memory.chat.stats import Status, Used
from memory.chat.summary import SECTIONS as SUMMARY_SECTIONS

#: Longest task, in characters: it stands in every prompt.
_TASK = 300
#: Purposes for which models are called by day; all other calls are made by night jobs.
_TALK = frozenset({"chat", "extract", "compact", "task", "title"})
#: The argument of /agent and /model that leaves the choice to the configuration.
_BY_RULES = "default"


async def start(call: Call) -> None:
    await call.say(call.texts("start.done", name=call.agent.spec.name))


async def stop(call: Call) -> None:
    if not await call.stop(lambda: call.say(call.texts("stop.asked"))):
        await call.say(call.texts("stop.nothing"))


async def new(call: Call) -> None:
    await call.done(call.texts("new.done"), Edits.start_window)
    call.memory.learner.soon(call.context.session.id, "session ended")


async def retry(call: Call) -> None:
    meant = _turn(call)
    turn_id = await call.memory.turns.again(call.context, call.inbox_id, failed=meant)
    if turn_id is None:
        await call.say(call.texts("retry.nothing" if meant is None else "retry.over"))
    else:
        await call.rerun(turn_id)


async def undo(call: Call) -> None:
    """Takes back the person's last turn, with the memories learned from it."""

    def take_back(edits: Edits) -> str:
        meant = _turn(call)
        undone = edits.undo(meant)
        if undone is None:
            return call.texts("undo.nothing" if meant is None else "undo.over")
        gone, again = ("; ".join(map(call.phrase, some)) for some in (undone.memories, undone.again))
        taught = call.texts("undo.taught", list=gone) if gone else ""
        taught += call.texts("undo.again", list=again) if again else ""
        date = call.texts.moment(undone.said_at)
        return call.texts("undo.done", date=date, taught=taught or call.texts("undo.plain"))

    await call.do(take_back)


def _turn(call: Call) -> int | None:
    """Returns the turn that a button was made for, else None: later, or by another person, it must not mean another."""
    given = call.arguments.strip()
    return int(given[:18]) if given.isdecimal() else None


async def model(call: Call) -> None:
    """Shows the agent's models in order, or puts another first. In a group only admins choose: it holds for all."""
    texts, wanted = call.texts, call.arguments.strip()
    names = [f"{model.provider}/{model.model}" for model in call.agent.spec.models if model.provider != "offline"]
    first = call.context.session.chosen_model
    fitting = [
        name
        for name in (*names, _BY_RULES)
        if wanted.casefold() in (name.casefold(), name.casefold().partition("/")[2])
    ]
    if not names:
        await call.say(texts("model.none"))
    elif not wanted:
        order = sorted(names, key=lambda name: name != first)
        await call.say(texts("model.now", names=" → ".join(order), usage=call.usage))
    elif not fitting:
        await call.say(texts("model.unknown", name=excerpt(wanted), names=", ".join(names)))
    elif call.inbound.chat_kind != "private" and not call.admin:
        await call.say(texts("model.admins"))
    else:
        chosen = None if fitting[0] == _BY_RULES else fitting[0]
        await call.done(texts("model.chosen", name=chosen or names[0]), lambda edits: edits.choose_model(chosen))


async def task(call: Call) -> None:
    wanted = call.arguments.strip()
    current = call.context.session.active_task
    if not wanted:
        none = call.texts("task.none")
        await call.say(none if current is None else call.texts("task.now", task=current))
        return
    ended = means(wanted, "done")
    if len(wanted) > _TASK:
        await call.say(call.texts("task.long", most=_TASK))
    elif not ended:
        await call.done(call.texts("task.set", task=excerpt(wanted)), lambda edits: edits.set_task(wanted))
    else:
        text = call.texts("task.none") if current is None else call.texts("task.done", task=current)
        await call.done(text, lambda edits: edits.set_task(None))


async def compact(call: Call) -> None:
    texts = call.texts
    bounds = call.agent.bounds(call.agent.shares(call.agent.gauge.room(), ()))
    done = await call.memory.compaction.now(call.context, bounds)
    if done is None:
        await call.say(texts("compact.nothing"))
        return
    headings = {heading: texts(f"compact.part.{name}") for name, heading in SUMMARY_SECTIONS.items()}
    lines = [headings.get(line, line) for line in done.summary.text.splitlines()]
    task = [texts("task.now", task=done.summary.task)] if done.summary.task else []
    await call.say("\n".join([texts("compact.done", count=done.messages, kept=done.kept), *lines, *task]))


async def agent(call: Call) -> None:
    """Shows which agent answers here, or lets another one answer. In a group only admins choose: it holds for all."""
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

        def choose(edits: Edits) -> str:
            edits.choose_agent(chosen)
            return texts("agent.rules" if chosen is None else "agent.chosen", name=chosen or roster.route(call.inbound))

        await call.do(choose)
        roster.choose(call.inbound, chosen)


async def usage(call: Call) -> None:
    spec = call.agent.spec
    lines = []
    if spec.allowance.portions and not call.agent.offline:
        spending = await call.memory.stats.spending(call.context, spec.timezone)
        lines += limits.allowance_lines(spec.allowance, spending, call.texts)
    for where in ("here", "everywhere") if call.admin else ("here",):
        for days in (1, 30):
            used = await call.memory.stats.usage(call.context, days=days, everywhere=where == "everywhere")
            calls = [_used(call.texts, row) for row in used if row.model != NO_MODEL]
            lines += [call.texts(f"usage.{where}.{days}"), *calls] if calls else []
    if call.inbound.chat_kind == "private" and (made := await call.memory.keys.of(call.context)):
        lines += [call.texts("usage.keys"), *(keys.told(call.texts, key) for key in made)]
    await call.say("\n".join(lines) or call.texts("usage.nothing"))


def _used(texts: Texts, used: Used) -> str:
    cost = "" if used.cost is None else texts("usage.cost", cost=f"{used.cost:.4f}")
    return texts(
        "usage.line",
        purpose=purpose_name(texts, used.purpose),
        model=used.model,
        calls=used.calls,
        tokens_in=used.input_tokens,
        tokens_out=used.output_tokens,
        cost=cost,
    )


def purpose_name(texts: Texts, purpose: str) -> str:
    return texts(f"usage.purpose.{purpose}") if purpose in _TALK else jobs.job_name(texts, purpose)


async def status(call: Call) -> None:
    texts, spec = call.texts, call.agent.spec
    model = texts("status.offline") if call.agent.offline else call.agent.provider.name
    remembers, summary = spec.memory.enabled, call.context.session.summary
    standing = await call.memory.stats.status(call.context)
    memory = texts("status.memory", live=standing.live, total=standing.total) if remembers else ""
    window = texts(
        "status.window", messages=standing.window_messages, tokens=standing.window_tokens, limit=spec.window_tokens
    )
    lines = [
        texts("status.agent", agent=spec.name, model=model),
        *([memory] if memory else []),
        " · ".join(learning.standing(call, standing)),
        window,
        *([texts("status.summary", length=len(summary))] if summary else []),
        _meaning(texts, standing),
    ]
    # The inbox row of this command is itself still waiting.
    inbound = max(0, standing.inbound - 1)
    if inbound or standing.outbound:
        lines.append(texts("status.mail", inbound=inbound, outbound=standing.outbound))
    lines += jobs.next_line(call)
    if call.trusted:
        lines.append(texts("status.session", key=call.context.session.key))
        lines.append(texts("status.store", path=standing.path, sqlite=standing.sqlite))
        if standing.processes > 1:
            lines.append(texts("status.processes", count=standing.processes))
        if standing.muted and call.context.session.private:
            lines.append(texts("status.muted", chats=", ".join(standing.muted)))
    await call.say("\n".join(lines))


def _meaning(texts: Texts, standing: Status) -> str:
    if standing.embedding is None:
        return texts("status.words_only")
    embedding = standing.embedding
    if not embedding.model:
        return texts("status.no_embedder")
    lines = [texts("status.embedding", model=embedding.model, done=embedding.done, total=embedding.total)]
    if embedding.refused:
        lines.append(texts("status.embedding_refused", refused=embedding.refused))
    if embedding.trouble:
        lines.append(texts("status.embedding_paused"))
    return "\n".join(lines)
