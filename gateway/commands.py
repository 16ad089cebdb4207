"""The table of commands: name, usage, who answers it and when; every channel and /help are made from it.

Invariants: a command's change to memory and its answer are one transaction with the end of its inbox row (who may
speak is changed before, and changing it twice does no harm); ids are looked up in the asker's scope, and another's id
answers exactly like an unknown one; "saved" is said only of rows that exist; completions, forms and pages show what
the asker may see, and only read.
"""

from __future__ import annotations

import difflib
import json
import re
from base64 import b85decode, b85encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from channels.base import Button, Channel, CommandSpec, Form, Inbound, Option, Suggestion
from gateway import phrases
from gateway.delivery import pieces
from gateway.phrases import Language
from gateway.policy import code_in, is_user_id
from gateway.questions import buttons, is_alone
from gateway.texts import CATALOGUE, Texts
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
#: Memories on one page: with their lines cut as below, it is one message everywhere.
_PAGE = 10
#: What a search looks through for its pages.
_SEARCHED = 5 * _PAGE
#: Letters shown of a source message, of a memory in a list, of the profile above it, of a memory to choose.
_EXCERPT = 120
_LINE = 100
_PROFILE = 250
_LABEL = 100
#: How many completions a platform takes, and from how many memories they are chosen, the ones that matter first.
_SUGGESTED = 25
_LOOKED_AT = 1_000
#: Room in a form, where what is there already needs no more.
_FORM_LIMIT = 2_000
#: What a button carries that turns the page: page:list:2, or page:search:2: and what is searched for in base85.
_TURN = re.compile(r"page:(list|search):([1-9][0-9]{0,4})(?::([!-~]{1,50}))?")
#: So long a query can be that the button stays within 64 bytes; a search has no more than five pages.
_QUERY_BYTES = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """An answer with something to press under it: the choices of a question, the pages of a list."""

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

    async def do(self, act: Callable[[Desk], str | Asking], *, in_place: bool = False) -> None:
        """Change memory and answer with what `act` returns, as one transaction.

        With `in_place` the answer to a press takes the place of the message whose button was pressed.
        """

        def shown(desk: Desk) -> Sequence[Piece]:
            reply = act(desk)
            if isinstance(reply, str):
                return pieces(self.channel, reply)
            return pieces(self.channel, reply.text, buttons=reply.buttons)

        edits = self.inbound.message_id if in_place and self.inbound.pressed is not None else None
        await self.memory.answer(self.context, self.inbox_id, shown, edits=edits)

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

    Those for admins are unknown to everybody else. The rest is as in `channels.base.CommandSpec`; the help of the
    options comes from the catalogue.
    """

    name: str
    usage: str
    run: Handler
    options: tuple[Option, ...] = ()
    at_once: bool = False
    admin: bool = False
    private: bool = False
    shared: bool = False
    forms: bool = False


def parse(text: str) -> tuple[str, str] | None:
    """("name", "arguments") when `text` is a command, else None. A path like /usr/bin is none."""
    if code_in(text) is not None:
        return ("start", "")  # a code of somebody who is in already, perhaps by this very code
    match = _COMMAND.fullmatch(text.strip())
    return None if match is None else (match[1].lower(), (match[2] or "").strip())


def find(name: str) -> Command | None:
    return _BY_NAME.get(name)


def specs(language: Language) -> list[CommandSpec]:
    """All commands as channels offer them, in `language` and in the others."""
    texts = Texts(language)
    return [
        CommandSpec(
            name=command.name,
            help=texts(f"help.{command.name}"),
            usage=command.usage,
            translated=_translated(f"help.{command.name}"),
            options=tuple(
                _described(option, f"option.{command.name}.{option.name}", texts) for option in command.options
            ),
            admin=command.admin,
            private=command.private,
            shared=command.shared,
            forms=command.forms,
        )
        for command in TABLE
    ]


def _described(option: Option, key: str, texts: Texts) -> Option:
    return replace(option, help=texts(key), translated=_translated(key))


def _translated(key: str) -> Mapping[str, str]:
    return {language: texts[key] for language, texts in CATALOGUE.items()}


def unknown(name: str, texts: Texts) -> str:
    """The answer to a command that does not exist, with the nearest one that does and that everybody may use."""
    near = difflib.get_close_matches(name, [command.name for command in TABLE if not command.admin], n=1)
    hint = texts("command.hint", name=near[0]) if near else ""
    return texts("command.unknown", name=name, hint=hint)


async def suggest(
    memory: Service, context: Context, texts: Texts, name: str, option: str, typed: str, arguments: str = ""
) -> Sequence[Suggestion]:
    """The ids that may complete `option` of the command `name`, each with what that memory says, best first.

    What is `typed` may be the beginning of an id or words of the memory; among equals the newest come first. Offered is
    what the person could act on. `arguments` is all that stands behind the command so far.
    """
    command = find(name)
    if command is None or not any(one.name == option and one.suggests for one in command.options):
        return ()
    if name == "memory" and arguments.partition(" ")[0].lower() in ("list", "search"):
        return ()
    words = typed[:_EXCERPT].casefold().split()
    # What is typed may end within a word, and has no spaces in some scripts.
    terms = {*words, *query_terms(" ".join(words))}
    fitting = []
    for one in await memory.memories(context, limit=_LOOKED_AT):
        if name != "memory" and not _may_change(one, context):
            continue
        said = f"{one.key}: {one.value} {phrases.tell(one, context, language=texts.language)}".casefold()
        fits = sum(term in said for term in terms) if terms else 1
        if len(words) == 1 and one.short_id.startswith((words[0], f"m_{words[0]}")):
            fits = 1_000
        if fits:
            fitting.append((fits, one.learned_at, one.id, one))
    fitting.sort(key=lambda found: found[:3], reverse=True)
    best = [memory for *_, memory in fitting[:_SUGGESTED]]
    return [Suggestion(value=memory.short_id, label=_labelled(memory, context)) for memory in best]


def _labelled(memory: Memory, context: Context) -> str:
    """A memory with its id, as one of several to choose from."""
    own = memory.subject_id is None or memory.subject_id in (context.speaker.id, *context.scope.selves)
    whose = "" if own else f"{memory.subject_name}: "
    return _excerpt(f"{memory.short_id} · {whose}{memory.key}: {memory.value}", _LABEL)


def _may_change(memory: Memory, context: Context) -> bool:
    """Whether there is a point in offering this memory to be changed; the desk decides when it is asked to."""
    theirs = (context.speaker.id, *context.scope.selves)
    return memory.owner_id in context.scope.own or memory.author_id in theirs or memory.subject_id in theirs


async def form(memory: Service, context: Context, texts: Texts, name: str, arguments: str) -> Form | None:
    """What to ask for where a command lacks its last argument; None where the command itself has the answer."""
    words = arguments.split()
    if name == "remember" and not words:
        return Form(title=texts("form.remember.title"), label=texts("form.remember.label"), limit=_FORM_LIMIT)
    if name != "correct" or len(words) != 1:
        return None
    found = await _offered(memory, context, words[0])
    if found is None or not _may_change(found, context):
        return None
    return Form(
        title=texts("form.correct.title", id=found.short_id),
        label=texts("form.correct.label"),
        value=found.value,
        limit=max(_FORM_LIMIT, len(found.value)),
    )


async def _offered(memory: Service, context: Context, short_id: str) -> Memory | None:
    """The current memory with this id, as far as it is visible here."""
    offset = 0
    while page := await memory.memories(context, limit=_LOOKED_AT, offset=offset):
        for one in page:
            if one.short_id == short_id:
                return one
        offset += len(page)
    return None


async def press(call: Call, data: str) -> bool:
    """Turn to another page, as the one who pressed may read it; False when the button is for something else."""
    match = _TURN.fullmatch(data)
    if match is None:
        return False
    kind, page, packed = match[1], int(match[2]), match[3]
    if kind == "list" and packed is None:
        await _list_page(call, page)
        return True
    query = _unpacked(packed) if kind == "search" and packed is not None else None
    if query is not None:
        await _search_page(call, query, page)
    return query is not None


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

    await call.do(act, in_place=is_alone(call.inbound.pressed or ""))


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
    await _list_page(call, int(rest) if rest.isdecimal() and len(rest) < 6 and int(rest) > 0 else 1)


async def _list_page(call: Call, page: int) -> None:
    """One page of what is remembered here, or the last one where there are fewer."""
    total = (await call.memory.status(call.context)).live
    pages = max(1, -(-total // _PAGE))
    page = min(page, pages)
    found = await call.memory.memories(call.context, limit=_PAGE, offset=(page - 1) * _PAGE)
    if not found:
        await _show_page(call, [call.texts("memory.none")])
        return
    lines = [call.texts("memory.head", shown=(page - 1) * _PAGE + len(found), total=total)]
    profile = await call.memory.profile(call.context)
    if profile and page == 1:
        short = " · ".join(f"{memory.key}: {memory.value}" for memory in profile)
        lines.append(call.texts("memory.profile", profile=_excerpt(short, _PROFILE)))
    lines += [_memory_line(call, memory) for memory in found]
    turning = _turning(call, page, pages, lambda to: f"page:list:{to}")
    if page < pages and not turning:
        lines.append(call.texts("memory.more", page=page + 1))
    await _show_page(call, lines, turning)


async def _memory_search(call: Call, query: str) -> None:
    await _search_page(call, query, 1)


async def _search_page(call: Call, query: str, page: int) -> None:
    hits = await call.memory.search(call.context, query, limit=_SEARCHED)
    terms = query_terms(query)
    # Only what was said with these words: whatever else may mean the same is for a model to weigh.
    hits = [hit for hit in hits if hit.passage is None or shares(hit, terms) > 0]
    if not hits:
        await _show_page(call, [call.texts("memory.not_found", query=_excerpt(query))])
        return
    pages = -(-len(hits) // _PAGE)
    page = min(page, pages)
    lines = [call.texts("memory.found"), *(_found(call, hit) for hit in hits[(page - 1) * _PAGE :][:_PAGE])]
    packed = _packed(query)
    turning = () if packed is None else _turning(call, page, pages, lambda to: f"page:search:{to}:{packed}")
    if page < pages and not turning:
        lines.append(call.texts("memory.more_found"))
    await _show_page(call, lines, turning)


async def _show_page(call: Call, lines: Sequence[str], turning: Sequence[Button] = ()) -> None:
    await call.do(lambda _desk: Asking(text="\n".join(lines), buttons=tuple(turning)), in_place=True)


def _turning(call: Call, page: int, pages: int, data: Callable[[int], str]) -> tuple[Button, ...]:
    """The buttons ‹ 2/5 ›, as far as there are such pages; none where there is one page, or nothing can be pressed."""
    if pages < 2 or call.channel is None or not call.channel.capabilities.buttons:
        return ()
    turns = (("‹", page - 1), (f"{page}/{pages}", page), ("›", page + 1))
    return tuple(Button(label=label, data=data(to)) for label, to in turns if 0 < to <= pages)


def _packed(query: str) -> str | None:
    """A query as a button can carry it; None when it is too long."""
    if len(query) > _QUERY_BYTES:
        return None
    written = query.encode("utf-8", "surrogatepass")
    return b85encode(written).decode("ascii") if len(written) <= _QUERY_BYTES else None


def _unpacked(packed: str) -> str | None:
    try:
        return b85decode(packed).decode("utf-8", "surrogatepass")
    except ValueError:
        return None


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
            buttons=buttons(question, call.texts, alone=True),
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
        "said": _excerpt(call.phrase(memory), _LINE),
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


def _excerpt(text: str, limit: int = _EXCERPT) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _option(name: str, *, required: bool = False, choices: tuple[str, ...] = (), suggests: bool = False) -> Option:
    return Option(name=name, help="", required=required, choices=choices, suggests=suggests)


TABLE: tuple[Command, ...] = (
    Command(name="start", usage="/start", run=_start, at_once=True),
    Command(name="help", usage="/help", run=_help, at_once=True),
    Command(name="new", usage="/new", run=_new, shared=True),
    Command(name="stop", usage="/stop", run=_stop, at_once=True, shared=True),
    Command(name="status", usage="/status", run=_status, at_once=True),
    Command(
        name="memory", usage="/memory [list|search|show|history] …", run=_memory,
        options=(_option("action", choices=("list", "search", "show", "history")), _option("rest", suggests=True)),
    ),
    Command(name="remember", usage="/remember <text>", run=_remember, options=(_option("text"),), forms=True),
    Command(
        name="correct", usage="/correct <id> <new value>", run=_correct, forms=True,
        options=(_option("id", required=True, suggests=True), _option("value")),
    ),
    Command(name="forget", usage="/forget <id>", run=_forget, options=(_option("id", required=True, suggests=True),)),
    Command(name="why", usage="/why", run=_why),
    Command(name="allow", usage="/allow <user id>|here", run=_allow, options=(_option("who"),), admin=True),
    Command(name="block", usage="/block <user id>|here", run=_block, options=(_option("who"),), admin=True),
    Command(name="pair", usage="/pair", run=_pair, admin=True, private=True),
    Command(
        name="dead", usage="/dead [purge]", run=_dead, admin=True, private=True,
        options=(_option("action", choices=("purge",)),),
    ),
)  # fmt: skip

_BY_NAME = {command.name: command for command in TABLE}
