"""A single command from one person, and the means to answer it.

Invariants: a command's change to memory, its answer and the end of its inbox row are one transaction. Commands that
take longer or concern other people (erasing, opting out, letting in, links, backups) do their work before that
transaction; doing that work twice does no harm. Ids are looked up in the asker's scope, and another person's id gets
exactly the answer of an unknown id. A text for the asker's eyes alone is never shown in a group.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from channels.base import Button, Channel, File, Inbound, Option, Place
from channels.ids import IdFormat
from gateway.ops.night_clock import Worker
from gateway.ops.reloading import Reload
from gateway.pipeline.course import Agent
from gateway.pipeline.delivery import RUN, pieces
from gateway.pipeline.questions import holds_the_question
from gateway.pipeline.store import Roster
from gateway.wording import phrases
from gateway.wording.texts import CATALOGUE, Texts, part_of
from memory.chat.edits import Edits
from memory.context import Context
from memory.errors import MemoryFault, UnknownFilter, UnreadFilter
from memory.mailbox.outbox import Part
from memory.people.access import Access
from memory.service import Service
from memory.store.history import Message
from memory.store.memories import Memory
from memory.store.questions import Question
from memory.typed_filters import Filters

#: Characters shown of a source message or of the words a person typed.
EXCERPT = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """An answer with buttons under it or files attached; `reminder` is the id of the reminder that it is about."""

    text: str
    buttons: tuple[Button, ...] = ()
    files: tuple[File, ...] = ()
    reminder: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A single command from one person, said as `inbound` on `channel`.

    `channel` is None when it is no longer configured. `usage` is the syntax of the command. `admin` is True if this
    person may do what only admins may do, `trusted` if they may know about the machine. `stop` ends the answer that
    is being made here, once the person is told; it returns False if there is none. `unhear` drops this person's
    messages to others, which are kept in RAM only. `new_code` makes a code that nobody guesses. `administers` is the
    channel that this person's rights as an admin are for, and `account` their id there: on the page those of the
    account that signed in. `is_admin` recognises an admin of that channel by id; `ids` is its id format. `wake` sends
    the queue of another session. `rerun` answers the messages of a turn that was made for them. `roster` holds all
    agents with their stores. `nights` runs the night jobs. `reload` reads the configuration anew. `observes` is True
    if people's messages to others serve as context. With `discreet` the answer is for the asker's eyes alone; `aside`
    is added below it.
    """

    arguments: str
    inbox_id: int
    inbound: Inbound
    channel: Channel | None
    context: Context
    memory: Service
    agent: Agent
    texts: Texts
    access: Access
    admin: bool
    administers: str
    account: str
    stop: Callable[[Callable[[], Awaitable[None]]], Awaitable[bool]]
    new_code: Callable[[], str]
    unhear: Callable[[], None]
    is_admin: Callable[[str], bool]
    ids: IdFormat
    wake: Callable[[str], None]
    rerun: Callable[[int], Awaitable[None]]
    trusted: bool
    roster: Roster
    nights: Worker | None = None
    reload: Reload | None = None
    observes: bool = False
    usage: str = ""
    discreet: bool = False
    aside: str = ""

    @property
    def pressed_on(self) -> str | None:
        """The message whose button was pressed; None if none was, or if it was pressed elsewhere than in its chat."""
        return (self.inbound.message_id or None) if self.inbound.pressed is not None else None

    @property
    def administered(self) -> str:
        return Place(channel=self.administers, chat="").session_key.partition(":")[0]

    async def say(self, text: str) -> None:
        await self.do(lambda _edits: text)

    async def done(self, text: str, change: Callable[[Edits], object]) -> None:
        def change_and_say(edits: Edits) -> str:
            change(edits)
            return text

        await self.do(change_and_say)

    async def do(self, change: Callable[[Edits], str | Asking], *, in_place: bool = False) -> None:
        """Changes memory and answers, in one transaction. `in_place` replaces the message whose button was pressed."""

        def shown(edits: Edits) -> Sequence[Part]:
            reply = change(edits)
            asking = Asking(text=reply) if isinstance(reply, str) else reply
            text = f"{asking.text}\n\n{self.aside}" if self.aside else asking.text
            made = pieces(self.channel, text, buttons=asking.buttons, files=asking.files)
            return [replace(part, reminder_id=asking.reminder) for part in made]

        to, notice = await self._elsewhere() if self.discreet else (None, None)
        edits = self.pressed_on if in_place else None
        if notice is not None:
            # If the person can't be reached in private, no part of the answer is made.
            around = pieces(self.channel, notice)
            await self.memory.requests.answer(
                self.context, self.inbox_id, shown if to else lambda _: (), edits=edits, to=to, around=around
            )
        else:
            await self.memory.requests.answer(self.context, self.inbox_id, shown, edits=edits)
        if to is not None:
            self.wake(to)

    @property
    def on_question(self) -> bool:
        """True if a button was pressed on a message that holds nothing but its question; the answer may replace it."""
        return holds_the_question(self.inbound.pressed or "")

    async def decline(self, question: Question, taken: str, key: str) -> None:
        await self.do(
            lambda edits: self.texts(key if edits.settle(question, taken) else "answer.over"), in_place=self.on_question
        )

    async def _elsewhere(self) -> tuple[str | None, str | None]:
        """Returns the session for an answer that only the asker may see, and the notice shown here about it.

        Both are None where the answer can be given here.
        """
        can = self.channel.capabilities if self.channel is not None else None
        # A command typed as a message is answered by a message, which everybody sees.
        hidden = can is not None and can.hidden and bool(self.inbound.ticket) and self.inbound.pressed is None
        if self.inbound.chat_kind == "private" or can is None or hidden:
            return None, None
        if can.hidden:
            return None, self.texts("private.hidden")
        private = Place(channel=self.inbound.channel, chat=self.inbound.author_id).session_key
        if can.direct and await self.memory.identities.is_there(private):
            return private, self.texts("private.sent")
        return None, self.texts("private.first")

    async def filters(self, text: str) -> Filters | None:
        """Returns the words and filters of a typed text; None after an answer that a filter can't be read."""
        try:
            return await self.memory.browse.filters(self.context, text, group_of=part_of)
        except (UnknownFilter, UnreadFilter) as exc:
            await self.say(self.texts.unread(exc))
            return None

    async def none_met(self, asked: Filters, count: Callable[[Filters], Awaitable[int]]) -> str:
        """Returns the answer if nothing meets all filters, with those that alone removed everything."""
        lines = [self.texts("filter.none", filters=excerpt(asked.written))]
        for given in dict.fromkeys(asked.given):
            rest = asked.without(given)
            if (rest.given or rest.words) and (left := await count(rest)):
                lines.append(self.texts("filter.without", filter=excerpt(given.written), count=left))
        return "\n".join(lines)

    def phrase(self, memory: Memory) -> str:
        return " ".join(phrases.tell(memory, self.context, language=self.texts.language).split())

    def quote(self, message: Message) -> str:
        return phrases.quote(message, self.context, excerpt(message.text), language=self.texts.language)

    def refusal(self, short_id: str, error: MemoryFault) -> str:
        return self.texts.refusal(excerpt(short_id), error)

    def usage_line(self) -> str:
        tried = examples(self.texts, self.usage[1:].split()[0]) if "|" in self.usage else []
        return "\n".join([self.texts("command.usage", usage=self.usage), *tried])

    def button(self, label: str, command: str) -> Button | None:
        """Returns a button that acts like typing `command`; None if the channel has none or the command is too long."""
        data = f"{RUN}{command}"
        pressable = self.channel is not None and self.channel.capabilities.buttons
        return Button(label=label, data=data) if pressable and data.isascii() and len(data) <= 64 else None


Handler: TypeAlias = Callable[[Call], Awaitable[None]]
#: What a command does by its first word, "" for none: the form of what follows that word, and who takes it.
Actions: TypeAlias = Mapping[str, tuple[str, Callable[[Call, str], Awaitable[None]]]]


async def by_action(call: Call, actions: Actions) -> None:
    """Does what the first word of the arguments names; says how the command is used if it or the rest does not fit."""
    name, _, rest = call.arguments.strip().partition(" ")
    form, do = actions.get(name.lower(), ("", None))
    if do is None or not re.fullmatch(form, rest.strip(), re.DOTALL | re.IGNORECASE):
        await call.say(call.usage_line())
    else:
        await do(call, rest.strip())


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """An entry of the command table.

    Commands with `at_once` are answered while a turn runs; the others wait in the session's lane. Commands with
    `admin` are unknown to everybody but admins. Outside of private chats those that have a text `elsewhere` answer with
    that. With `discreet` the answer is for the asker's eyes alone. The other
    attributes are those of `channels.base.CommandSpec`; the help of the options comes from the catalogue.
    """

    name: str
    usage: str
    run: Handler
    options: tuple[Option, ...] = ()
    at_once: bool = False
    admin: bool = False
    private: bool = False
    elsewhere: str = ""
    shared: bool = False
    forms: bool = False
    discreet: bool = False


def examples(texts: Texts, name: str) -> list[str]:
    key = f"example.{name}"
    if key not in CATALOGUE[texts.language]:
        return []
    return [texts("help.examples"), *(f"  {example}" for example in texts(key).splitlines())]


def excerpt(text: str, limit: int = EXCERPT) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
