"""The course of a turn: the agent that answers, what it answers, what is found for it and shown so far, and its end.

Invariants: a message's original text and what was overheard before it are in RAM only. So is which conversations a
model refuses to read, for so many conversations: a forgotten one is refused once more and then goes on again.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from agents import budget, prompt
from agents.agent import Reply, Spared
from agents.budget import Allotment, Gauge
from agents.llm import Completion, Provider, ToolSpec
from agents.prompt import Voice
from agents.skills import Skill
from agents.spec import AgentSpec
from agents.tools import ForeignTool, ToolSource
from channels.base import Channel, Inbound
from gateway.pipeline.observed import Overheard
from gateway.reading.attachments import label
from gateway.wording.texts import Texts
from memory.chat.compaction import Bounds
from memory.chat.turns import Turn
from memory.chat.window import TurnMaterial, WindowSize
from memory.store.attachments import QUOTED, Attached

#: The tokens of a profile and a directive, beside the known facts.
_PROFILE_TOKENS: Final = 500
#: The tokens of a summary if nothing is remembered; otherwise it takes half of a snapshot's share.
_SUMMARY_TOKENS: Final = 1_000
#: The share of a full window at which its older part is summed up, early enough that the next turns fit, and the
#: messages that stay as they are.
_COMPACT_AT: Final = 0.75
_KEPT_MESSAGES: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """A configured agent that is ready to answer. `offline` is true if it has no language model.

    `gauge` tells how much its models can read, `sources` provide the tools that are not ours. `skills` are instructions
    that it can read. `asks` tells whether a text in a language asks it anything, for an agent without a model.
    """

    spec: AgentSpec
    provider: Provider
    offline: bool
    gauge: Gauge = field(default_factory=Gauge)
    sources: tuple[ToolSource, ...] = ()
    skills: tuple[Skill, ...] = ()
    asks: Callable[[str, str], bool] | None = None

    async def foreign(self) -> tuple[ForeignTool, ...]:
        """Returns its tools that are not ours, those that are off included."""
        by_source = await asyncio.gather(*(source.tools() for source in self.sources))
        return tuple({tool.name: tool for tools in by_source for tool in tools}.values())

    @property
    def reads_values(self) -> bool:
        """Returns whether it may be answered for without a model, which reads values and no prompt."""
        return self.offline or any(model.provider == "offline" for model in self.spec.models)

    @property
    def sees(self) -> bool:
        return not self.offline and any(model.sees for model in self.spec.models)

    @property
    def voice(self) -> Voice:
        return Voice(
            name=self.spec.name, persona=self.spec.persona, rules=self.spec.rules, remembers=self.spec.memory.enabled
        )

    def shares(self, room: int, tools: Sequence[ToolSpec]) -> Allotment:
        """Returns the shares of a request of at most `room` tokens, of what is configured."""
        memory, count = self.spec.memory, self.gauge.count
        longest = next((model.max_tokens for model in self.spec.models if model.max_tokens), budget.USUAL_ANSWER)
        wanted = Allotment(
            answer=longest,
            tools=budget.tools_size(tools, count),
            snapshot=memory.known_tokens + _PROFILE_TOKENS if memory.enabled else 2 * _SUMMARY_TOKENS * self.compacts,
            newer=memory.known_tokens if memory.enabled else 0,
            recall=memory.recall_tokens if memory.enabled else 0,
            window=self.spec.window_tokens,
        )
        return budget.shares(room, wanted, system=budget.PER_MESSAGE + count(prompt.system(self.voice)))

    @property
    def compacts(self) -> bool:
        return not self.offline

    def bounds(self, shares: Allotment) -> Bounds:
        return Bounds(
            size=WindowSize(tokens=shares.window, messages=self.spec.window.messages),
            at=_COMPACT_AT,
            keep=_KEPT_MESSAGES,
            tokens=prompt.summary_room(shares),
            all_said=not self.spec.memory.enabled,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of a turn.

    `seconds` bounds a whole turn. `message_chars` is the number of characters of one message that the model sees. A
    turn that takes longer than `placeholder_seconds` shows a placeholder, if the channel can edit it. The model reads
    at most `text_tokens` tokens of the files in a window, newest first, and sees the newest `pictures` pictures.
    """

    seconds: float
    message_chars: int
    placeholder_seconds: float = 1.5
    text_tokens: int = 8_000
    pictures: int = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """An inbound message and its inbox row.

    `original` is its text before secrets were masked, `overheard` holds people's lines to others before it; both are
    kept in RAM only. `overheard` is None if the bot does not observe the place.
    """

    inbox_id: int
    inbound: Inbound
    original: str | None = None
    overheard: tuple[Overheard, ...] | None = None

    @property
    def is_own_talk(self) -> bool:
        """Returns whether the person said it now: not before, not pressed, not forwarded, and no task that is due."""
        said = self.inbound
        return not (said.forwarded or said.told) and said.pressed is None and said.task is None


@dataclass(slots=True, kw_only=True)
class Course:
    """The course of a turn so far.

    `mask` removes the secrets from a text of the model or a tool; it takes long for a long one, which goes to a thread.
    `foreign` are the tools that are not ours, as they are when the turn begins, `shares` those of its first request.
    `view` is what was looked up for it, in the end only what was in the last prompt. `aborted` are the calls that cost
    something and gave nothing, `streamed` the pieces of the answer that were shown.
    """

    served: Agent
    turn: Turn
    heard: Sequence[Heard]
    attached: Sequence[Sequence[Attached]]
    channel: Channel | None
    texts: Texts
    mask: Callable[[str], str]
    foreign: tuple[ForeignTool, ...] = ()
    shares: Allotment | None = None
    view: TurnMaterial | None = None
    aborted: list[Completion] = field(default_factory=list)
    streamed: list[str] = field(default_factory=list)

    @property
    def session_key(self) -> str:
        return self.turn.context.session.key

    @property
    def task(self) -> int | None:
        """The task that is due, if these are its words."""
        return self.heard[-1].inbound.task

    @property
    def reply_to(self) -> str | None:
        """The id of the message that an answer in a group or in a topic points to; else None."""
        last = self.heard[-1].inbound
        return (last.message_id or last.reply_to) if last.chat_kind == "group" or last.thread is not None else None

    @property
    def appends(self) -> bool:
        """True if what is streamed is shown for good, as on a terminal, which fetches no addresses either."""
        return self.channel is not None and self.channel.capabilities.stream == "append"


class Stops:
    """The answers under way, `seconds` each; a stop reaches them at once, or where the next `deadline` begins."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._deadlines: dict[str, asyncio.Timeout] = {}
        self._under_way: set[str] = set()
        self._stopped: set[str] = set()
        self._turns: dict[str, int] = {}

    @contextmanager
    def under_way(self, session_key: str) -> Iterator[None]:
        self._under_way.add(session_key)
        try:
            yield
        finally:
            self.over(session_key)

    def is_under_way(self, session_key: str) -> bool:
        return session_key in self._under_way

    def over(self, session_key: str) -> None:
        """Notes that an answer is complete and only being kept, which can't be stopped."""
        self._under_way.discard(session_key)
        self._stopped.discard(session_key)
        self._turns.pop(session_key, None)

    def stop(self, session_key: str, turn_id: int | None = None) -> bool:
        """Ends the answer that is being made in a session, or only that of a turn. Returns False if there is none."""
        if session_key not in self._under_way or turn_id not in (None, self._turns.get(session_key)):
            return False
        self._stopped.add(session_key)
        deadline = self._deadlines.get(session_key)
        if deadline is not None and not deadline.expired():
            deadline.reschedule(asyncio.get_running_loop().time())
        return True

    def was_stopped(self, session_key: str) -> bool:
        """Returns whether the person stopped the session's turn. Reports each stop only once."""
        stopped = session_key in self._stopped
        self._stopped.discard(session_key)
        return stopped

    @asynccontextmanager
    async def deadline(self, session_key: str, turn_id: int | None = None) -> AsyncIterator[None]:
        """Raises `TimeoutError` when the turn's time is up, its person says stop, or has said so before."""
        if turn_id is not None:
            self._turns[session_key] = turn_id
        if session_key in self._stopped:
            raise TimeoutError
        async with asyncio.timeout(self._seconds) as deadline:
            self._deadlines[session_key] = deadline
            try:
                yield
            finally:
                del self._deadlines[session_key]


def obstacle(attached: Attached, *, blind: bool) -> str | None:
    """Returns why an attachment is not read or seen; None if it is, or if there is nothing in it to read.

    Of what is quoted only a picture is worth a word: the person did not send it now.
    """
    if attached.state == "picture" and blind:
        return "no_sight"
    return None if attached.kind.startswith(QUOTED) else attached.why or None


def in_words(text: str, beside: Sequence[Attached]) -> str:
    """Returns a message as history keeps it: its text, its voice transcripts and the names of its other attachments.

    What it quotes stays beside it, so that nothing is learned from it or found by it.
    """
    own = [piece for piece in beside if not piece.kind.startswith(QUOTED)]
    named = [f"{label(piece)} {piece.text}" if piece.state == "spoken" else label(piece) for piece in own]
    return "\n".join([text, *named] if text.strip() else named)


#: The most conversations that are remembered, those last that were refused last.
_MOST: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sparing:
    """The parts of a conversation that a model refuses.

    `last` is true if it has refused its last turn. `spared` is what its requests are made without, and `since` is the
    message before which nothing is read to it any more. `room` is the most tokens of a request, if longer ones were
    refused. `doubted` is true if the last failure may have been an outage.
    """

    last: bool = False
    spared: Spared = ""
    since: int | None = None
    room: int | None = None
    doubted: bool = False


class Refusals:
    """The conversations of a store that a model has refused, by session key."""

    def __init__(self) -> None:
        self._of: OrderedDict[str, Sparing] = OrderedDict()

    def of(self, session_key: str) -> Sparing:
        return self._of.get(session_key, Sparing())

    def failed(self, session_key: str, *, of_request: bool) -> None:
        """Notes that a turn has failed, by a refusal that may be due to what its request held, or otherwise."""
        if of_request:
            self._put(session_key, replace(self.of(session_key), last=True))

    def answered(self, session_key: str, reply: Reply, message_id: int) -> None:
        """Notes that a turn was answered. After a failure that may pass, the next turn is read whole once more."""
        known = self.of(session_key)
        if reply.spared == "before":
            # Later turns are read from this one on, with their calls.
            outage = reply.passing and not known.doubted
            self._put(session_key, Sparing(last=True, since=None if outage else message_id, doubted=outage))
        elif reply.spared:
            self._put(session_key, replace(known, last=False, spared=reply.spared, room=reply.room))
        elif known != Sparing() or reply.room is not None:
            self._put(session_key, replace(known, last=False, doubted=False, room=reply.room))

    def _put(self, session_key: str, sparing: Sparing) -> None:
        self._of[session_key] = sparing
        self._of.move_to_end(session_key)
        while len(self._of) > _MOST:
            self._of.popitem(last=False)
