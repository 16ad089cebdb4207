"""The table of commands: name, usage, who answers it and when; every channel and /help are made from it.

Invariants: a command's change to memory and its answer are one transaction with the end of its inbox row (who may
speak is changed before, and changing it twice does no harm); ids are looked up in the asker's scope, and another's id
answers exactly like an unknown one; "saved" is said only of rows that exist.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from channels.base import Button, Channel, CommandSpec, Inbound
from gateway import phrases
from gateway.delivery import pieces
from gateway.phrases import Language
from gateway.policy import code_in, is_user_id
from gateway.questions import buttons
from gateway.texts import Texts
from gateway.toolbox import FORGET
from gateway.turn import Agent
from memory.errors import MemoryFault, NotFound
from memory.service import (
    Context,
    Desk,
    Door,
    Entry,
    Hit,
    Memory,
    Message,
    Piece,
    Question,
    Service,
    Shown,
    Status,
    Why,
    query_terms,
    shares,
)

_COMMAND = re.compile(r"/([a-z][a-z0-9_]{0,31})(?:@\w{1,64})?(?:\s+([\s\S]*))?", re.IGNORECASE)
_PAGE = 15
_FOUND = 10
#: Words of a source message shown beside a memory.
_EXCERPT = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """An answer that is a question, with its choices as buttons."""

    text: str
    buttons: tuple[Button, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One command from one person, said as `inbound` on `channel` (None when that is not configured any more).

    `admin` tells whether this person may do what only admins do; `stop` ends the answer that is being made here;
    `new_code` makes a pairing code; `is_admin` knows an admin of this channel by id.
    """

    arguments: str
    inbox_id: int
    inbound: Inbound
    channel: Channel | None
    context: Context
    memory: Service
    agent: Agent
    texts: Texts
    door: Door
    admin: bool
    stop: Callable[[], Awaitable[bool]]
    new_code: Callable[[], str]
    is_admin: Callable[[str], bool]

    async def say(self, text: str) -> None:
        """Answer without changing anything."""
        await self.do(lambda _desk: text)

    async def do(self, act: Callable[[Desk], str | Asking]) -> None:
        """Change memory and answer with what `act` returns, as one transaction."""

        def shown(desk: Desk) -> Sequence[Piece]:
            reply = act(desk)
            if isinstance(reply, str):
                return pieces(self.channel, reply)
            return pieces(self.channel, reply.text, buttons=reply.buttons)

        await self.memory.answer(self.context, self.inbox_id, shown)

    def phrase(self, memory: Memory) -> str:
        """A memory on one line, as said to the person who asks."""
        return " ".join(phrases.tell(memory, self.context, language=self.texts.language).split())

    def quote(self, message: Message) -> str:
        """What was said, on one line."""
        return phrases.quote(message, self.context, _excerpt(message.text), language=self.texts.language)

    def refusal(self, short_id: str, error: MemoryFault) -> str:
        """Why nothing was done to the memory called `short_id`."""
        return self.texts.refusal(_excerpt(short_id), error)


Handler: TypeAlias = Callable[[Call], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """`at_once` commands are answered while a turn runs; others wait their turn in the session's lane.

    Those for admins are unknown to everybody else.
    """

    name: str
    usage: str
    run: Handler
    at_once: bool = False
    admin: bool = False


def parse(text: str) -> tuple[str, str] | None:
    """("name", "arguments") when `text` is a command, else None. A path like /usr/bin is none."""
    if code_in(text) is not None:
        return ("start", "")  # a code of somebody who is in already, perhaps by this very code
    match = _COMMAND.fullmatch(text.strip())
    return None if match is None else (match[1].lower(), (match[2] or "").strip())


def find(name: str) -> Command | None:
    return _BY_NAME.get(name)


def specs(language: Language) -> list[CommandSpec]:
    """What channels offer everybody; what only admins may do is not listed."""
    texts = Texts(language)
    return [
        CommandSpec(name=command.name, help=texts(f"help.{command.name}"), usage=command.usage)
        for command in TABLE
        if not command.admin
    ]


def unknown(name: str, texts: Texts) -> str:
    """The answer to a command that does not exist, with the nearest one that does and that everybody may use."""
    near = difflib.get_close_matches(name, [command.name for command in TABLE if not command.admin], n=1)
    hint = texts("command.hint", name=near[0]) if near else ""
    return texts("command.unknown", name=name, hint=hint)


async def answer(call: Call, question: Question, taken: str) -> None:
    """Act on the answer to a stored question: whether to forget a memory, so far the only one that is asked."""
    assert question.purpose == FORGET

    def act(desk: Desk) -> str:
        if not desk.settle(question, taken):
            return call.texts("answer.over")
        if taken != "yes":
            return call.texts("forget.kept")
        gone = desk.forget(json.loads(question.payload)["memory"])
        return call.texts("forget.gone") if gone is None else call.texts("forget.done", id=gone.short_id)

    await call.do(act)


async def _help(call: Call) -> None:
    shown = [command for command in TABLE if call.admin or not command.admin]
    lines = [f"{command.usage} – {call.texts(f'help.{command.name}')}" for command in shown]
    await call.say("\n".join([call.texts("help.head"), *lines]))


async def _start(call: Call) -> None:
    await call.say(call.texts("start.done", name=call.agent.spec.name))


async def _stop(call: Call) -> None:
    await call.say(call.texts("stop.asked" if await call.stop() else "stop.nothing"))


async def _new(call: Call) -> None:
    def act(desk: Desk) -> str:
        desk.start_window()
        return call.texts("new.done")

    await call.do(act)
    call.memory.learn_soon(call.context, "session ended")


async def _status(call: Call) -> None:
    texts, spec = call.texts, call.agent.spec
    model = texts("status.offline") if call.agent.offline else call.agent.provider.name
    remembers = spec.memory.enabled
    status = await call.memory.status(call.context)
    lines = [
        texts("status.agent", agent=spec.name, model=model),
        texts("status.session", key=call.context.session.key),
        texts("status.memory", live=status.live, total=status.total) if remembers else texts("status.memory_off"),
        texts("status.window", messages=status.window_messages, tokens=status.window_tokens, limit=spec.window_tokens),
        texts(
            "status.learning",
            unread=status.unread,
            waiting=status.waiting,
            parked=status.parked,
            budget=status.over_budget,
            last=texts("status.never") if status.learned_at is None else texts.moment(status.learned_at),
        ),
        _meaning(texts, status),
        # This command itself is one of the rows that wait.
        texts("status.mail", inbound=max(0, status.inbound - 1), outbound=status.outbound),
        texts("status.usage", tokens_in=status.tokens_in, tokens_out=status.tokens_out),
        texts("status.store", path=status.path, sqlite=status.sqlite),
    ]  # fmt: skip
    await call.say("\n".join(lines))


def _meaning(texts: Texts, status: Status) -> str:
    """By what memory is searched beside words, and how far the making of vectors has come."""
    if status.embedding is None:
        return texts("status.words_only")
    if not status.embedding.model:
        return texts("status.no_embedder")
    return texts(
        "status.embedding", model=status.embedding.model, done=status.embedding.done, total=status.embedding.total
    )


async def _memory(call: Call) -> None:
    action, _, rest = call.arguments.partition(" ")
    actions: Mapping[str, Callable[[Call, str], Awaitable[None]]] = {
        "": _memory_list,
        "list": _memory_list,
        "search": _memory_search,
        "show": _memory_show,
        "history": _memory_history,
    }
    act = actions.get(action.lower())
    if act is None or (action.lower() in ("search", "show", "history") and not rest.strip()):
        await call.say(_usage(call, "memory"))
        return
    await act(call, rest.strip())


async def _memory_list(call: Call, rest: str) -> None:
    page = int(rest) if rest.isdecimal() and len(rest) < 7 and int(rest) > 0 else 1
    found = await call.memory.memories(call.context, limit=_PAGE, offset=(page - 1) * _PAGE)
    if not found:
        await call.say(call.texts("memory.none"))
        return
    status = await call.memory.status(call.context)
    upto = (page - 1) * _PAGE + len(found)
    lines = [call.texts("memory.head", shown=upto, total=status.live)]
    profile = await call.memory.profile(call.context)
    if profile and page == 1:
        short = " · ".join(f"{memory.key}: {memory.value}" for memory in profile)
        lines.append(call.texts("memory.profile", profile=short))
    lines += [_memory_line(call, memory) for memory in found]
    if upto < status.live:
        lines.append(call.texts("memory.more", page=page + 1))
    await call.say("\n".join(lines))


async def _memory_search(call: Call, query: str) -> None:
    hits = await call.memory.search(call.context, query, limit=2 * _FOUND)
    terms = query_terms(query)
    # Only what was said with these words: whatever else may mean the same is for a model to weigh.
    hits = [hit for hit in hits if hit.passage is None or shares(hit, terms) > 0][:_FOUND]
    if not hits:
        await call.say(call.texts("memory.not_found", query=query[:_EXCERPT]))
        return
    await call.say("\n".join([call.texts("memory.found"), *(_found(call, hit) for hit in hits)]))


def _found(call: Call, hit: Hit) -> str:
    if hit.memory is not None:
        return _memory_line(call, hit.memory)
    assert hit.passage is not None
    return f"  {call.texts.date(hit.passage.message.said_at)}  {call.quote(hit.passage.message)}"


async def _memory_show(call: Call, short_id: str) -> None:
    def act(desk: Desk) -> str:
        try:
            return "\n".join(_shown(call, desk.show(short_id)))
        except NotFound as exc:
            return call.refusal(short_id, exc)

    await call.do(act)


async def _memory_history(call: Call, short_id: str) -> None:
    def act(desk: Desk) -> str:
        try:
            return "\n".join(_versions(call, desk.show(short_id).versions))
        except NotFound as exc:
            return call.refusal(short_id, exc)

    await call.do(act)


async def _remember(call: Call) -> None:
    if not call.arguments:
        await call.say(_usage(call, "remember"))
        return
    if not call.agent.spec.memory.enabled:
        await call.say(call.texts("memory.off"))
        return

    def act(desk: Desk) -> str:
        kept = desk.remember(call.arguments)
        if not kept:
            return call.texts("remember.nothing")
        said = "; ".join(f"{memory.short_id} {call.phrase(memory)}" for memory in kept)
        return call.texts("remember.done", list=said)

    await call.do(act)


async def _correct(call: Call) -> None:
    short_id, _, value = call.arguments.partition(" ")
    value = value.strip()
    if not value:
        await call.say(_usage(call, "correct"))
        return

    def act(desk: Desk) -> str:
        try:
            old, new = desk.correct(short_id, value)
        except MemoryFault as exc:
            return call.refusal(short_id, exc)
        if old is new:
            return call.texts("correct.same", id=short_id)
        return call.texts(
            "correct.done",
            new=call.phrase(new),
            new_id=new.short_id,
            old=call.phrase(old),
            old_id=old.short_id,
        )

    await call.do(act)


async def _forget(call: Call) -> None:
    short_id = call.arguments.strip()
    if not short_id or " " in short_id:
        await call.say(_usage(call, "forget"))
        return

    def act(desk: Desk) -> str | Asking:
        try:
            memory = desk.may_forget(short_id)
        except MemoryFault as exc:
            return call.refusal(short_id, exc)
        question = desk.ask(FORGET, {"memory": memory.id}, choices=("yes", "no"), preset="yes")
        return Asking(
            text=call.texts("forget.ask", id=short_id, said=call.phrase(memory)),
            buttons=buttons(question, call.texts),
        )

    await call.do(act)


async def _why(call: Call) -> None:
    texts = call.texts
    why = await call.memory.why(call.context)
    if why is None:
        await call.say(texts("why.none"))
        return
    lines = [texts("why.head" if why.entries else "why.nothing")]
    for placed, heading in (("recalled", "why.found"), ("known", "why.known"), ("unused", "why.unused")):
        entries = [(entry, named) for entry, named in why.entries if entry.placed == placed]
        if entries:
            lines.append(texts(heading))
        lines += [f"  {_reason(call, why, entry, named)}" for entry, named in entries]
    lines += [
        texts("why.cost", model=spent.model, tokens_in=spent.input_tokens, tokens_out=spent.output_tokens)
        for spent in why.spent
    ]
    await call.say("\n".join(lines))


def _reason(call: Call, why: Why, entry: Entry, named: Memory | Message | None) -> str:
    """One line of /why: what entered the reply, its score, and where it comes from."""
    texts = call.texts
    if named is None:
        return texts("why.forgotten")
    parts = ", ".join(f"{name} {value:g}" for name, value in entry.parts.items())
    score = "" if entry.score is None else texts("why.score", score=f"{entry.score:.2f}", parts=parts)
    if isinstance(named, Message):
        return texts("why.quote", said=call.quote(named), date=texts.date(named.said_at), score=score)
    source = next((s.text for s in why.sources.get(named.id, ()) if s.text is not None), None)
    return texts(
        "why.line",
        id=named.short_id,
        said=call.phrase(named),
        date=texts.date(named.learned_at),
        score=score,
        source="" if source is None else texts("why.source", text=_excerpt(source)),
    )


async def _allow(call: Call) -> None:
    await _let(call, "allow")


async def _block(call: Call) -> None:
    await _let(call, "block")


async def _let(call: Call, action: Literal["allow", "block"]) -> None:
    """Let in or shut out a person by id, or with "here" the group this is said in."""
    named, channel, by = call.arguments.strip(), call.inbound.channel, call.inbound.author_id
    in_group = call.inbound.chat_kind == "group"
    subject: Literal["person", "group"] = "group" if named == "here" and in_group else "person"
    reference = call.inbound.chat if subject == "group" else named
    if not named and not in_group:
        grants = await call.door.grants(channel)
        lines = [call.texts(f"grant.{grant.state}.{grant.subject}", id=grant.reference) for grant in grants]
        await call.say("\n".join([_usage(call, action), *lines]))
        return
    if subject == "person" and not is_user_id(reference):
        await call.say(_usage(call, action))
        return
    if action == "block" and subject == "person" and call.is_admin(reference):
        await call.say(call.texts("block.admin", id=reference))
        return
    decide = call.door.allow if action == "allow" else call.door.block
    changed = await decide(channel, subject, reference, by=by)
    await call.say(call.texts(f"{action}.{subject}" if changed else f"{action}.already", id=reference))


async def _pair(call: Call) -> None:
    if call.inbound.chat_kind != "private":
        await call.say(call.texts("pair.private"))
        return
    code = call.new_code()
    pairing = await call.door.open_pairing(call.inbound.channel, code)
    if pairing.opened:
        await call.say(call.texts("pair.done", code=code))
    else:
        await call.say(call.texts("pair.many", until=call.texts.moment(pairing.until)))


async def _dead(call: Call) -> None:
    if call.inbound.chat_kind != "private":
        await call.say(call.texts("dead.private"))
        return
    channel = call.inbound.place.session_key.partition(":")[0]
    if call.arguments.strip().lower() == "purge":
        await call.do(lambda desk: call.texts("dead.purged", count=desk.purge_dead(channel)))
        return
    rows = await call.memory.mail.dead(channel, limit=_PAGE)
    if not rows:
        await call.say(call.texts("dead.none"))
        return
    lines = [
        call.texts(
            "dead.line",
            id=row.id,
            key=row.session_key,
            date=call.texts.moment(row.created_at),
            why=row.error or row.state,
        )
        for row in rows
    ]
    await call.say("\n".join([call.texts("dead.head"), *lines, call.texts("dead.hint")]))


def _usage(call: Call, name: str) -> str:
    return call.texts("command.usage", usage=_BY_NAME[name].usage)


def _memory_line(call: Call, memory: Memory) -> str:
    fields = {
        "id": memory.short_id,
        "said": call.phrase(memory),
        "date": call.texts.date(memory.learned_at),
    }
    if memory.valid_until is not None:
        return call.texts("memory.old_line", **fields, until=call.texts.date(memory.valid_until))
    return call.texts("memory.line", **fields)


def _shown(call: Call, shown: Shown) -> list[str]:
    texts, memory = call.texts, shown.memory
    state = ""
    if memory.valid_until is not None:
        state = texts("memory.state.replaced", until=texts.date(memory.valid_until))
    elif memory.archived_at is not None:
        state = texts("memory.state.archived")
    head = texts(
        "memory.show",
        id=memory.short_id,
        said=call.phrase(memory),
        kind=memory.kind,
        category=memory.category,
        key=memory.key,
        value=memory.value,
        date=texts.date(memory.learned_at),
        origin=texts(f"memory.origin.{memory.origin}"),
        times=texts("memory.times", count=memory.reinforced_count) if memory.reinforced_count else "",
        state=state,
    )
    lines = [head]
    if memory.flags:
        lines.append(texts("memory.flags", flags=", ".join(memory.flags)))
    for source in shown.sources:
        date = texts.date(source.said_at)
        if source.text is None:
            lines.append(texts("memory.source_erased", date=date))
        else:
            lines.append(texts("memory.source", date=date, text=_excerpt(source.text)))
    return lines + (_versions(call, shown.versions) if len(shown.versions) > 1 else [])


def _versions(call: Call, versions: Sequence[Memory]) -> list[str]:
    lines = [call.texts("memory.history")]
    for memory in versions:
        said = {"id": memory.short_id, "said": call.phrase(memory)}
        if memory.valid_until is None:
            lines.append("  " + call.texts("memory.version_now", **said, since=call.texts.date(memory.valid_from)))
        else:
            since, until = call.texts.span(memory.valid_from, memory.valid_until)
            lines.append("  " + call.texts("memory.version", **said, since=since, until=until))
    return lines


def _excerpt(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _EXCERPT else line[: _EXCERPT - 1] + "…"


TABLE: tuple[Command, ...] = (
    Command(name="start", usage="/start", run=_start, at_once=True),
    Command(name="help", usage="/help", run=_help, at_once=True),
    Command(name="new", usage="/new", run=_new),
    Command(name="stop", usage="/stop", run=_stop, at_once=True),
    Command(name="status", usage="/status", run=_status, at_once=True),
    Command(name="memory", usage="/memory [list|search|show|history] …", run=_memory),
    Command(name="remember", usage="/remember <text>", run=_remember),
    Command(name="correct", usage="/correct <id> <new value>", run=_correct),
    Command(name="forget", usage="/forget <id>", run=_forget),
    Command(name="why", usage="/why", run=_why),
    Command(name="allow", usage="/allow <user id>|here", run=_allow, admin=True),
    Command(name="block", usage="/block <user id>|here", run=_block, admin=True),
    Command(name="pair", usage="/pair", run=_pair, admin=True),
    Command(name="dead", usage="/dead [purge]", run=_dead, admin=True),
)

_BY_NAME = {command.name: command for command in TABLE}
