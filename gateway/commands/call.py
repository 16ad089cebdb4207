"""One command from one person, and how it is answered.

Invariants: a command's change to memory and its answer are one transaction with the end of its inbox row, but for what
takes longer or concerns others (erasing, opting out, letting in, links, backups), which is done before and does no harm
done twice; ids are looked up in the asker's scope, and another's id answers exactly like an unknown one; what is for
the asker's eyes alone is never shown in a group.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from channels.base import Button, Channel, File, Inbound, Option, Place
from gateway import phrases
from gateway.delivery import pieces
from gateway.jobs import Worker
from gateway.texts import Texts
from gateway.turn import Agent
from memory.errors import MemoryFault
from memory.service import Context, Desk, Door, Memory, Message, Piece, Service

#: Letters shown of a source message, of what was asked for.
EXCERPT = 120
#: What a button carries that stands for a command, as if whoever presses it had typed that.
RUN = "run:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """An answer with something to press under it, such as the choices of a question, or with files behind it."""

    text: str
    buttons: tuple[Button, ...] = ()
    files: tuple[File, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One command from one person, said as `inbound` on `channel` (None when that is not configured any more).

    `usage` is how the command is written. `admin` tells whether this person may do what only admins do, `trusted`
    whether they may know of the machine; `stop` ends the answer that is being made here; `new_code` makes a code
    that nobody guesses; `is_admin` knows an admin of this channel by id; `wake` has what was queued for another
    session sent; `rerun` answers the messages of a turn that was made for them. `agents` are all there are, and
    `default_agent` names the one that answers where no rule says otherwise. `nights` does the work of the night. With
    `discreet` the answer is for the asker's eyes alone; `aside` is said under it.
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
    wake: Callable[[str], None]
    rerun: Callable[[int], Awaitable[None]]
    trusted: bool
    agents: Sequence[Agent]
    default_agent: str
    nights: Worker | None = None
    usage: str = ""
    discreet: bool = False
    aside: str = ""

    async def say(self, text: str) -> None:
        """Answer without changing anything."""
        await self.do(lambda _desk: text)

    async def do(self, act: Callable[[Desk], str | Asking], *, in_place: bool = False) -> None:
        """Change memory and answer with what `act` returns, as one transaction.

        With `in_place` the answer to a press takes the place of the message whose button was pressed.
        """

        def shown(desk: Desk) -> Sequence[Piece]:
            reply = act(desk)
            said = Asking(text=reply) if isinstance(reply, str) else reply
            text = f"{said.text}\n\n{self.aside}" if self.aside else said.text
            return pieces(self.channel, text, buttons=said.buttons, files=said.files)

        to, notice = await self._elsewhere() if self.discreet else (None, None)
        edits = self.inbound.message_id if in_place and self.inbound.pressed is not None else None
        if notice is not None:
            # Where the person can't be reached in private, nothing of the answer is made.
            around = pieces(self.channel, notice)
            await self.memory.answer(
                self.context, self.inbox_id, shown if to else lambda _: (), edits=edits, to=to, around=around
            )
        else:
            await self.memory.answer(self.context, self.inbox_id, shown, edits=edits)
        if to is not None:
            self.wake(to)

    async def _elsewhere(self) -> tuple[str | None, str | None]:
        """The session for the asker's eyes alone and what is said here of it; nothing where here will do."""
        can = self.channel.capabilities if self.channel is not None else None
        # What was typed as a message is answered by one, which everybody sees.
        hidden = can is not None and can.hidden and bool(self.inbound.ticket) and self.inbound.pressed is None
        if self.inbound.chat_kind == "private" or can is None or hidden:
            return None, None
        if can.hidden:
            return None, self.texts("private.hidden")
        private = Place(channel=self.inbound.channel, chat=self.inbound.author_id).session_key
        if can.direct and await self.memory.is_there(private):
            return private, self.texts("private.sent")
        return None, self.texts("private.first")

    def phrase(self, memory: Memory) -> str:
        """A memory on one line, as said to the person who asks."""
        return " ".join(phrases.tell(memory, self.context, language=self.texts.language).split())

    def quote(self, message: Message) -> str:
        """What was said, on one line."""
        return phrases.quote(message, self.context, excerpt(message.text), language=self.texts.language)

    def refusal(self, short_id: str, error: MemoryFault) -> str:
        """Why nothing was done to the memory called `short_id`."""
        return self.texts.refusal(excerpt(short_id), error)

    def usage_line(self) -> str:
        """How this command is to be written."""
        return self.texts("command.usage", usage=self.usage)

    def button(self, label: str, command: str) -> Button | None:
        """A button that does what typing `command` does; None where nothing can be pressed, or it does not fit."""
        data = f"{RUN}{command}"
        pressable = self.channel is not None and self.channel.capabilities.buttons
        return Button(label=label, data=data) if pressable and data.isascii() and len(data) <= 64 else None


Handler: TypeAlias = Callable[[Call], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """`at_once` commands are answered while a turn runs; others wait their turn in the session's lane.

    Those for admins are unknown to everybody else. With `discreet` the answer is for the asker's eyes alone. The rest
    is as in `channels.base.CommandSpec`; the help of the options comes from the catalogue.
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
    discreet: bool = False


def excerpt(text: str, limit: int = EXCERPT) -> str:
    """`text` on one line, at most `limit` letters of it."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
