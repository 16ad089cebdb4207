"""The tools that an agent gets in one turn: those of memory, for one scope, and those that are not ours.

Invariants: a tool reads and writes only the turn's own scope. A tool call of a turn changes memory at most once, even
if the turn is resumed after a crash. A tool says "saved" only after its commit. A model can't forget a memory, nor use
a tool that is not ours and changes something, nor fetch an address that it has made up: it can only ask for the
person's consent. A statement by a tool that is not ours is kept as a memory only if the person said it, too, even when
the result is summed up; a turn that has read the web changes nothing in memory, and no existing reminder.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Literal

from pydantic import BaseModel, Field

from agents.prompt import is_outside
from agents.tools import CALL_SECONDS, ForeignTool, Run, Tool, ToolError
from gateway.actions.memory import (
    ACTIONS,
    FORGET,
    MASK,
    Action,
    Arguments,
    CorrectMemory,
    NoArguments,
    NothingKept,
    OneEntity,
    OneMemory,
    SearchMemory,
    ToForget,
)
from gateway.internet.tools import FETCH, FetchArguments, WebTools
from gateway.pipeline.questions import DO
from gateway.wording import reminder_lines
from gateway.wording.texts import REFUSALS, Texts
from memory.browse.browse import About
from memory.chat.edits import Edits
from memory.chat.outside_calls import CALL
from memory.chat.stats import ScopeStats
from memory.chat.turns import Turn
from memory.errors import NotFound, TooManyReminders
from memory.learn.own_words import own_words
from memory.recall.recall import excerpt
from memory.recall.search import Hit
from memory.reminders.reminders import due_of
from memory.reminders.reminding import LONGEST as LONGEST_REMINDER
from memory.reminders.reminding import Reminder
from memory.service import Service
from memory.store.entities import Entity
from memory.store.history import Message
from memory.store.memories import Memory
from memory.text.times.phrases import Reading

#: The longest arguments that a person is asked about, in characters: nobody agrees to what they can't read.
_LONGEST_ASKED = 3_000
_NOT_CALLED = "Nothing is done yet. The person is being asked, and decides. If they agree, it is done and you go on."
_NOT_THEIRS = (
    "Not saved: this has words that a tool returned, or that the person quoted, forwarded or sent in a file, and that"
    " they have not said themselves. They can have it kept by typing /remember and the words."
)
_MAY_BE_A_PAGES = (
    "nothing was changed: this answer has read the web, and what a page says changes nothing. If the person wants it,"
    " they can say so in their next message, or type /remember or /remind."
)
_NOTHING_LEARNED = "Not saved: this person wants nothing learned. What they type behind /remember is kept."
_NO_SECRETS = "What looks like a password, code or key is masked and not kept. Tell the person."
_WORD = re.compile(r"\w+")
#: The messages to the model about a time that can't be read.
_UNREAD: Final = {
    "none": "No time can be read there. Ask the person when.",
    "vague": "That time is not clear. Ask the person when exactly.",
    "past": "That time is over. Ask the person when.",
    "impossible": "There is no such time. Ask the person when.",
}
#: The beginning of the result of forget_fact. The question that the person is shown follows it.
_ASKED = "Nothing is forgotten yet. The person is being asked, and decides: "


class RemindersArguments(BaseModel):
    action: Literal["set", "list", "change", "cancel"] = Field(description="what to do")
    text: str = Field(default="", description="set: what to remind them of", max_length=LONGEST_REMINDER)
    when: str = Field(
        default="",
        description="set, change: their own words, such as tomorrow at 9, or local time 2026-11-30T09:00",
        max_length=100,
    )
    repeat: str = Field(default="", description="such as every weekday; empty for once", max_length=100)
    number: int = Field(default=0, description="change, cancel: the reminder's number", ge=0, le=1_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolbox:
    """The tools of one turn, for the agent of this name. One call takes at most `seconds`.

    `read` are the messages that the model reads beside the turn's own, and the results of tools that were summed up;
    `files` are the texts of files that it may read or that were summed up, and others' words that are quoted. A summary
    or an answer may repeat either. `asked` collects the questions that must reach the person with the reply,
    `told_back` the reminders to be said back with it. `harmless` removes addresses that carry data from a text of the
    model, `mask` secrets from the results of tools. Without `web` the web is not read.
    """

    memory: Service
    turn: Turn
    texts: Texts
    now: Callable[[], int]
    agent: str
    seconds: float = CALL_SECONDS
    read: Sequence[Message] = ()
    files: Sequence[str] = ()
    harmless: Callable[[str], str] = str
    mask: Callable[[str], str] = str
    web: WebTools | None = None
    asked: list[str] = field(default_factory=list)
    returned: list[str] = field(default_factory=list)
    told_back: list[Reminder] = field(default_factory=list)

    def tools(self, names: Sequence[str]) -> tuple[Tool, ...]:
        offered: dict[str, tuple[str, type[BaseModel], Run]] = {
            action.tool: (action.purpose, action.tool_arguments or action.arguments, partial(self._do, action))
            for action in ACTIONS.values()
        }
        offered["now"] = ("The date and time where the person lives.", NoArguments, self.tell_time)
        offered["reminders"] = (
            "Remind the person of something at a time; list, change or cancel their reminders.",
            RemindersArguments,
            self.reminders,
        )
        return tuple(
            Tool(name=name, description=description, arguments=arguments, run=run, seconds=self.seconds)
            for name, (description, arguments, run) in ((name, offered[name]) for name in names if name in offered)
        )

    def foreign(self, tools: Sequence[ForeignTool], *, agreed: bool = False) -> tuple[Tool, ...]:
        """Returns tools that are not ours as the model gets them, or as they are once a person has `agreed`."""
        return tuple(
            Tool(
                name=tool.name,
                description=tool.description if tool.reads else f"{tool.description}\n(The person is asked first.)",
                arguments=tool.arguments,
                run=partial(self._use if tool.reads or agreed else self._ask, tool),
                beside=tool.reads,
                origin=tool.origin if tool.reads or agreed else "",
                # The tool itself keeps its time, and knows better how the call ended.
                seconds=self.seconds + 5,
            )
            for tool in tools
            if not tool.off
        )

    def of_the_web(self, names: Sequence[str], *, agreed: bool = False) -> tuple[Tool, ...]:
        offered = self.web.tools(names) if self.web is not None else ()
        return tuple(
            replace(tool, run=partial(self._fetch, tool)) if tool.name == FETCH and not agreed else tool
            for tool in offered
        )

    async def _fetch(self, tool: Tool, n: int, i: int, arguments: FetchArguments) -> str:
        """Fetches an address that was named. Asks the person about another, unless a page may have made it up."""
        assert self.web is not None
        if self.web.may_ask(arguments):
            asking = ForeignTool(
                name=tool.name,
                origin=tool.origin,
                description=tool.description,
                arguments=FetchArguments,
                reads=False,
                call=partial(self.web.fetch, n, i),
            )
            return await self._ask(asking, n, i, arguments)
        self.web.check(arguments)
        return await self.web.fetch(n, i, arguments)

    async def _use(self, tool: ForeignTool, n: int, i: int, arguments: Any) -> str:
        calls = self.memory.outside_calls
        result = await calls.begin(self.turn, n, i, tool.name)
        if result is None:
            try:
                result = await tool.call(arguments)
            except ToolError as exc:
                result = f"Error: {exc}"
            result = await asyncio.to_thread(self.mask, result)
            await calls.end(self.turn, n, i, tool.name, result)
        self.returned.append(result)
        return result

    async def _ask(self, tool: ForeignTool, n: int, i: int, arguments: Any) -> str:
        if self.asked:
            raise ToolError("The person is already being asked about something. Ask again when they have answered.")
        shown = _plainly(arguments)
        if len(shown) > _LONGEST_ASKED:
            raise ToolError(
                f"These arguments are too long to show to the person (at most {_LONGEST_ASKED} characters)."
            )

        def act(edits: Edits) -> str:
            edits.ask(CALL, {"turn": self.turn.id, "n": n, "i": i}, choices=(DO, "no"), preset="no")
            return _NOT_CALLED

        result = await self.memory.turns.act(self.turn, n, i, tool.name, act)
        if result == _NOT_CALLED:
            self.asked.append(self.texts("call.ask", tool=tool.name, origin=tool.origin, arguments=_fenced(shown)))
        return result

    def _repeats_others(self, text: str) -> bool:
        """Returns whether a statement has a word that the person has not said, but a tool, or somebody they quote."""
        context = self.turn.context
        learning = context.speaker.learning and context.session.learning
        said = [message for message in (*self.read, *self.turn.said) if message.author_id == context.speaker.id]
        # While people may be learned from, a message that may not be is forwarded.
        own = [own_words(message.text) for message in said if message.learn or not learning]
        others = [
            *self.returned,
            *self.files,
            *(message.text for message in said),
            *(message.text for message in self.read if message.role == "tool" and is_outside(message.text)),
        ]
        mine, theirs = " ".join(own).casefold(), " ".join(others).casefold()
        return any(word not in mine and word in theirs for word in _WORD.findall(text.casefold()))

    async def tell_time(self, _n: int, _i: int, _arguments: NoArguments) -> str:
        return f"{self.texts.moment(self.now())} ({self.texts.timezone})"

    async def _do(self, action: Action, n: int, i: int, given: Arguments) -> str:
        """Carries out an action on memory. Tells the model if that can't be done."""
        if action.needs == "write":
            self._is_their_wish()
        if self._repeats_others(given.words):
            raise ToolError(_NOT_THEIRS)
        if action.name == FORGET and self.asked:
            raise ToolError("The person is already being asked about a memory. Ask again when they have answered.")
        try:
            result = await self._result(action, n, i, given)
        except NothingKept:
            learning = self.turn.context.speaker.learning
            return "Not saved: there is nothing in it to keep." if learning else _NOTHING_LEARNED
        except REFUSALS as exc:
            short_id = given.id if isinstance(given, OneMemory) else ""
            raise ToolError(Texts("en", self.texts.timezone).refusal(short_id, exc)) from exc
        if action.name == FORGET:
            # The question is asked even if the call already ran before a crash, as the person has not seen it yet.
            self.asked.append(result.removeprefix(_ASKED))
        return result

    async def _result(self, action: Action, n: int, i: int, given: Arguments) -> str:
        if not action.reads:
            return await self.memory.turns.act(
                self.turn, n, i, action.tool, lambda edits: _TOLD[action.name](self, given, action.run(edits, given))
            )
        read = await action.run(self.memory, self.turn.context, given)
        lines = _TOLD[action.name](self, given, read)
        if not isinstance(given, SearchMemory) or not read:
            return lines

        def use(edits: Edits) -> str:
            edits.use([hit.memory.id for hit in read if hit.memory is not None])
            return lines

        return await self.memory.turns.act(self.turn, n, i, action.tool, use)

    def _hits(self, given: SearchMemory, hits: Sequence[Hit]) -> str:
        return "\n".join(f"- {self._found(hit, given.query.strip())}" for hit in hits) or "Nothing in memory matches."

    def _about(self, given: OneEntity, about: About | None) -> str:
        if about is None:
            return f"Nothing is known here of {given.name!r}."
        return "\n".join([_headed(about.entity), *(f"- {self._line(memory)}" for memory in about.memories)])

    def _counted(self, _given: NoArguments, stats: ScopeStats) -> str:
        kinds = ", ".join(f"{count} {kind}{'' if count == 1 else 's'}" for kind, count in stats.kinds.items())
        text = f"Current: {kinds or 'nothing'}. Replaced or archived: {stats.past}. Messages: {stats.messages}."
        return text if stats.since is None else f"{text} The oldest was told {self.texts.date(stats.since)}."

    def _corrected(self, given: CorrectMemory, versions: tuple[Memory, Memory]) -> str:
        old, new = versions
        if old is new:
            return f"Nothing changed: {given.id} says just that."
        return f"Corrected: {_said(new)} [{new.short_id}], instead of {_said(old)}.{_masked(new)}"

    def _saved(self, _given: Arguments, kept: Sequence[Memory]) -> str:
        return f"Saved: {'; '.join(f'{_said(memory)} [{memory.short_id}]' for memory in kept)}{_masked(*kept)}"

    def _asked(self, given: OneMemory, asked: ToForget) -> str:
        return _ASKED + asked.text(self.texts, self.turn.context, given)

    async def reminders(self, n: int, i: int, arguments: RemindersArguments) -> str:
        if arguments.action == "list":
            every = await self.memory.reminders.every(self.turn.context)
            lines = [self._due(reminder) for reminder in every if reminder.next_at is not None]
            return "\n".join(lines) or "There are no reminders here."
        if arguments.action in ("change", "cancel"):
            self._is_their_wish()
        reading = self._named_time(arguments) if arguments.action in ("set", "change") else None
        number = await self._numbered(n, i, arguments, reading)
        if number is None:
            return f"Cancelled: reminder {arguments.number}."
        # Said back even if the call already ran before a crash, as the person has not seen it yet.
        made = next(
            reminder for reminder in await self.memory.reminders.every(self.turn.context) if reminder.number == number
        )
        self.told_back.append(made)
        return f"Set. The person is shown it below your answer: {self._due(made)}"

    async def _numbered(self, n: int, i: int, arguments: RemindersArguments, reading: Reading | None) -> int | None:
        """Carries out the call and returns the number of the reminder; None for one that was cancelled."""

        def act(edits: Edits) -> str:
            reminding = edits.reminding
            due = None if reading is None else due_of(reading)
            if arguments.action == "set":
                text = self.harmless(arguments.text.strip())
                ref = self.turn.said[-1].platform_ref
                return str(reminding.add(text, due, language=self.texts.language, asked_ref=ref).number)
            meant = reminding.numbered(arguments.number)
            if reading is None:
                reminding.cancel(meant)
                return ""
            return str(reminding.change(meant, self.memory.reminders.retimed(meant, reading)).number)

        try:
            result = await self.memory.turns.act(self.turn, n, i, "reminders", act)
        except NotFound as exc:
            raise ToolError(f"There is no reminder {arguments.number} here. List them first.") from exc
        except TooManyReminders as exc:
            raise ToolError(str(exc)) from exc
        return int(result) if result else None

    def _named_time(self, arguments: RemindersArguments) -> Reading:
        """Returns the time for a reminder. Tells the model if it can't be read surely."""
        if arguments.action == "set" and not arguments.text.strip():
            raise ToolError("Say what to remind the person of.")
        reminders, context = self.memory.reminders, self.turn.context
        named = f"{arguments.repeat} {arguments.when}".strip()
        reading = reminders.at(context, named) or reminders.read_time(context, named, language=self.texts.language)
        if not isinstance(reading, Reading):
            raise ToolError(_UNREAD["none" if reading is None else reading.reason])
        if reading.what:
            raise ToolError(f"“{reading.what}” can't be read as part of a time. Leave it out, or ask the person when.")
        return reading

    def _due(self, reminder: Reminder) -> str:
        return f"{reminder.number}. {reminder_lines.due(self.texts, reminder, self.now())}: {reminder.text}"

    def _is_their_wish(self) -> None:
        if self.web is not None and self.web.used:
            raise ToolError(_MAY_BE_A_PAGES)

    def _found(self, hit: Hit, query: str) -> str:
        if hit.memory is not None:
            return self._line(hit.memory)
        assert hit.passage is not None
        message = hit.passage.message
        by = self.agent if message.author_id is None else message.author_name
        quoted = f"{by} said: “{excerpt(hit.passage, query, assistant=self.agent)}”"
        outdated = ", no longer true" if hit.passage.outdated else ""
        return f"{quoted} ({self.texts.date(message.said_at)}{outdated})"

    def _line(self, memory: Memory) -> str:
        until = f", until {self.texts.date(memory.valid_until)}" if memory.valid_until is not None else ""
        told = f"told {self.texts.date(memory.learned_at)}{until}"
        return f"{_said(memory)} ({told}) [{memory.short_id}]"


def _plainly(arguments: Any) -> str:
    """Returns arguments as a person reads them: one per line, with every invisible character as an escape."""
    given = arguments.model_dump(mode="json") if isinstance(arguments, BaseModel) else arguments
    text = json.dumps(given, ensure_ascii=False, indent=2)
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def _fenced(text: str) -> str:
    """Returns a text as a block of code that the text itself can't end."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _said(memory: Memory) -> str:
    """Returns a memory as every part of a prompt tells it: of whom it is first."""
    whose = memory.subject or memory.subject_name
    return f"{f'{whose}: ' if whose else ''}{memory.key}: {memory.value}"


def _masked(*kept: Memory) -> str:
    return f"\n{_NO_SECRETS}" if any(MASK in memory.value for memory in kept) else ""


def _headed(entity: Entity) -> str:
    aliases = f", also called {', '.join(entity.aliases)}" if entity.aliases else ""
    times = "once" if entity.mentions == 1 else f"{entity.mentions} times"
    return f"{entity.name} ({entity.type}{aliases}), mentioned {times}:"


#: How the model is told the result of each action that it has as a tool.
_TOLD: Final[dict[str, Callable[[Toolbox, Any, Any], str]]] = {
    "search_memory": Toolbox._hits,
    "get_entity": Toolbox._about,
    "memory_stats": Toolbox._counted,
    "remember": Toolbox._saved,
    "correct": Toolbox._corrected,
    "confirm": lambda _box, _given, memory: f"Confirmed: {_said(memory)}. It will not fade.",
    FORGET: Toolbox._asked,
}
