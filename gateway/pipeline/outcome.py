"""Shows a person a turn: "typing", a placeholder that grows, and the outcome, which is also what history keeps.

Invariants: words that were shown stay, in history too, with what follows them. A placeholder's row is committed before
it is sent, and only if the turn outlasts a quick one and no earlier message waits: the answer will stand in its place.
A turn that is taken up again goes on with its placeholder. The progress neither ends the turn nor outlasts it by more
than `_GRACE` seconds: the answer itself comes with its own row.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Final, TypeVar

import structlog

from agents import agent
from agents.llm import ChatMessage, Completion, calls_from_json, calls_to_json
from channels.base import Button, Channel, ChannelError, Outbound, Place
from gateway.internet.tools import left_out
from gateway.pipeline.course import Course, obstacle
from gateway.pipeline.delivery import pieces
from gateway.pipeline.questions import buttons
from gateway.pipeline.toolbox import Toolbox
from gateway.pipeline.values import rests_on
from gateway.wording import reminder_lines
from memory.chat.outside_calls import CALL
from memory.chat.turns import Outcome
from memory.errors import StorageError
from memory.mailbox.mailbox import Mailbox
from memory.mailbox.outbox import OutboxRow
from memory.runtime import Runtime
from memory.service import Service
from memory.store.history import Utterance
from memory.store.questions import Question
from memory.store.usage import Spent

log = structlog.get_logger(__name__)

#: Seconds before "typing" is shown: quicker answers need none.
_TYPING_AFTER = 0.3
#: Seconds after which platforms take "typing" away again.
_TYPING_LASTS = 4.5
#: Seconds that a request under way may still take when the answer is there.
_GRACE = 5.0
#: The text of the placeholder until there is text of the answer.
WAITING = "…"


class Progress:
    """A context manager around the making of one answer; `on_text` takes the pieces of the answer."""

    def __init__(
        self,
        mailbox: Mailbox,
        channel: Channel,
        place: Place,
        *,
        turn_id: int,
        reply_to: str | None,
        after_seconds: float,
        safe: Callable[[str], str],
    ) -> None:
        """After `after_seconds` a placeholder is shown. `safe` returns the part of a growing text that may be shown."""
        self._mailbox = mailbox
        self._channel = channel
        self._place = place
        self._turn_id = turn_id
        self._reply_to = reply_to
        self._after_seconds = after_seconds
        self._safe = safe
        self._text = ""
        self._over = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._sending: OutboxRow | None = None

    async def __aenter__(self) -> Progress:
        self._tasks = [asyncio.create_task(self._type())]
        if self._channel.capabilities.stream == "edit":
            self._tasks.append(asyncio.create_task(self._grow()))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        try:
            if not isinstance(error, asyncio.CancelledError):
                await asyncio.wait(self._tasks, timeout=_GRACE)
        finally:
            for task in self._tasks:
                task.cancel()
            results = await asyncio.gather(*self._tasks, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                log.warning("progress.broken", turn=self._turn_id, error=repr(result))
        if self._sending is not None and not isinstance(error, asyncio.CancelledError):
            try:
                await self._mailbox.not_sent(self._sending, "dead", "orphan")
            except StorageError as exc:
                log.warning("progress.unsaved", turn=self._turn_id, error=str(exc))

    async def on_text(self, text: str) -> None:
        self._text += text

    async def _type(self) -> None:
        pause = _TYPING_AFTER
        while not await self._over_within(pause):
            await self._channel.typing(self._place)
            pause = _TYPING_LASTS

    async def _grow(self) -> None:
        reference = await self._mailbox.shown_placeholder(self._turn_id)
        if reference is None and (lost := await self._lost()) is not None:
            reference = await self._place_it(lost, retried=True)
        elif reference is None:
            if await self._over_within(self._after_seconds):
                return
            # A draft is no message: it needs no row, and vanishes by itself.
            reference = str(self._turn_id) if self._channel.drafts(self._place) else await self._placed()
        shown = ""
        while reference is not None and not await self._over_within(self._channel.capabilities.revise_seconds):
            if self._text.strip() and self._text != shown:
                shown = self._text
                await self._channel.revise(self._place, reference, await asyncio.to_thread(self._safe, shown))

    async def _lost(self) -> OutboxRow | None:
        if self._channel.capabilities.resend != "same":
            return None
        return await self._mailbox.lost_placeholder(self._turn_id)

    async def _placed(self) -> str | None:
        """Shows a placeholder once no earlier message waits. Returns None if the answer is there first, or as below."""
        key = self._place.session_key
        while (row := await self._mailbox.place_holder(key, self._turn_id, WAITING, self._reply_to)) is None:
            if await self._over_within(self._channel.capabilities.revise_seconds):
                return None
        return await self._place_it(row, retried=False)

    async def _place_it(self, row: OutboxRow, *, retried: bool) -> str | None:
        """Shows a placeholder and returns the platform's id of it; None when that failed or may have failed."""
        self._sending = row
        try:
            reference = await self._channel.send(
                Outbound(
                    id=row.id,
                    place=self._place,
                    text=WAITING,
                    turn=self._turn_id,
                    reply_to=self._reply_to,
                    made_at=row.created_at,
                    retried=retried,
                )
            )
        except ChannelError as exc:
            log.info("placeholder.failed", row=row.id, code=exc.code)
            return None
        await self._mailbox.was_sent(row, reference)
        self._sending = None
        return reference

    async def _over_within(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._over.wait(), seconds)
        except TimeoutError:
            return False
        return True


T = TypeVar("T")

#: The most characters kept of an answer that was stopped or failed: a model gone wrong writes without end.
_LONGEST_PARTIAL: Final = 8_000
#: The characters of a text that is prepared to be shown at once; of a longer one in a thread. So much of the Markdown
#: that costs most takes 6 ms, of prose .5 ms; 2,000 characters take 23 and 2 ms.
_SHORT: Final = 500
#: The answers to a task that has nothing to tell. They are not shown.
_NOTHING: Final = frozenset({"nothing", "heartbeat_ok", "no_reply", ""})
#: The data of the retry button under a failed answer, without the turn's id: the command that the button runs.
_RETRY: Final = "run:/retry"


class Outcomes:
    def __init__(self, memory: Service, *, runtime: Runtime, defang: Callable[[str, bool], str]) -> None:
        """`defang` makes addresses that carry much data harmless; its second argument is True for a growing text."""
        self._memory = memory
        self._now = runtime.now
        self._count_tokens = runtime.count_tokens
        self._defang = defang

    async def cut_off(self, course: Course, notice: str, error: str, *, retry: bool = False) -> Outcome:
        """Returns the outcome of a turn that was stopped or failed: what was shown of the answer, and `notice`."""
        offered = (Button(label=course.texts("retry.button"), data=f"{_RETRY} {course.turn.id}"),) if retry else ()
        # A secret that begins in what is kept may end behind it.
        streamed = "".join(course.streamed)[: 2 * _LONGEST_PARTIAL]
        shown = (await asyncio.to_thread(course.mask, streamed)).strip()[:_LONGEST_PARTIAL]
        if not shown:
            return Outcome(pieces=pieces(course.channel, notice, buttons=offered), error=error)
        kept = self._utterance(ChatMessage(role="assistant", content=f"{shown} […]"))
        if not course.appends:
            shown = await asyncio.to_thread(self._defang, shown, True)
        cut = partial(pieces, course.channel, f"{_closed(shown)}\n\n{notice}", buttons=offered)
        return Outcome(
            pieces=await asyncio.to_thread(cut, markdown=not course.served.offline), utterances=(kept,), error=error
        )

    async def answered(self, course: Course, reply: agent.Reply, toolbox: Toolbox, *, shortened: bool) -> Outcome:
        """Returns the outcome of a turn with a `reply`; `shortened` tells that the model did not read it whole."""
        assert course.view is not None
        offline, texts = course.served.offline, course.texts
        # A tool's question must reach the person even if the model doesn't repeat it.
        question = await self._memory.questions.open_to(course.turn.context) if toolbox.asked else None
        shown = await self._shown(course, reply, toolbox, question, shortened=shortened)
        cut = partial(
            pieces,
            course.channel,
            shown,
            markdown=not offline,  # an offline answer shows quotations exactly as they were said
            buttons=(
                *(buttons(question, texts) if question is not None else ()),
                *(reminder_lines.cancel_button(texts, one, numbered=True) for one in toolbox.told_back),
            ),
        )
        traffic = reply.traffic if toolbox.web is None else left_out(reply.traffic)
        kept = (*traffic, ChatMessage(role="assistant", content=reply.text))
        last = reply.completions[-1] if offline else None
        return Outcome(
            pieces=await _apart(shown, cut),
            utterances=tuple(map(self._utterance, kept)),
            learned=course.view.learned,
            spent=spent(last) if last is not None else None,
            recall=rests_on(course.view.recall, last.grounds) if last is not None else None,
        )

    async def _shown(
        self, course: Course, reply: agent.Reply, toolbox: Toolbox, question: Question | None, *, shortened: bool
    ) -> str:
        """Returns the words that are shown: the answer, what tools have to say, and remarks of the bot."""
        turn, texts, channel = course.turn, course.texts, course.channel
        answer = f"{_closed(reply.shown)}\n\n{texts('answer.cut')}" if reply.cut else reply.shown
        set_back = [reminder_lines.set_back(texts, one, self._now()) for one in toolbox.told_back]
        shown = "\n".join([answer, *toolbox.asked, *set_back])
        if not (course.served.offline or course.appends):
            shown = await _apart(shown, partial(self._defang, shown, False))
        lines = [shown]
        longest = max((one.inbound for one in course.heard), key=lambda inbound: inbound.length)
        if longest.length:
            lines.append(texts("long.kept", length=longest.length, kept=len(longest.text)))
        elif shortened:
            lines.append(texts("long.told", length=max(len(message.text) for message in turn.said)))
        lines += dict.fromkeys(_unread(course))
        if reply.spared == "before":
            lines.append("\n" + texts("answer.without_history"))
        if turn.first and channel is not None and channel.capabilities.introduces:
            lines.append("\n" + texts(await self._introduction(course)))
        if question is not None and question.purpose == CALL and channel and not channel.capabilities.buttons:
            lines.append(texts("call.type", do=texts("do"), no=texts("no")))
        return "\n".join(lines)

    async def _introduction(self, course: Course) -> str:
        """Returns the key of the text about the bot that is shown once, after its first answer."""
        if not course.turn.context.session.private:
            return "first.group" if course.heard[-1].overheard is None else "first.group_observed"
        learned = None if course.view is None else course.view.learned
        if learned is None:
            learned = await self._memory.turns.understood(course.turn)
        named = any(one.draft.key in ("name", "called") for one in learned.proposals)
        return "first.named" if named else "first.private"

    def _utterance(self, message: ChatMessage) -> Utterance:
        calls = calls_to_json(message)
        opaque = calls_from_json(calls)[1]
        return Utterance(
            role=message.role,
            text=message.content,
            tokens=self._count_tokens(message.content + (opaque.text if opaque is not None else "")),
            said_at=self._now(),
            tool_calls=calls,
            tool_call_id=message.tool_call_id,
        )


def is_nothing(outcome: Outcome) -> bool:
    """Returns whether the answer to a task says that there is nothing to tell."""
    text = outcome.utterances[-1].text.strip(' \n.!*_`"“”。！').casefold() if outcome.utterances else ""
    return text in _NOTHING


def spent_on(completions: Sequence[Completion]) -> Spent:
    every = [spent(completion) for completion in completions]
    costs = [one.cost for one in every if one.cost is not None]
    return replace(
        every[-1],
        input_tokens=sum(one.input_tokens for one in every),
        output_tokens=sum(one.output_tokens for one in every),
        cached_tokens=sum(one.cached_tokens for one in every),
        estimated=any(one.estimated for one in every),
        cost=sum(costs) if costs else None,
    )


def spent(completion: Completion) -> Spent:
    usage = completion.usage
    own = completion.provider == completion.model
    return Spent(
        model=completion.model if own else f"{completion.provider}/{completion.model}",
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cached_tokens,
        estimated=usage.estimated,
        cost=usage.cost,
    )


async def _apart(text: str, prepare: Callable[[], T]) -> T:
    """Prepares a text, in a thread if it is long."""
    return await asyncio.to_thread(prepare) if len(text) > _SHORT else prepare()


def _closed(shown: str) -> str:
    """Returns a text that may have been cut off within a code block, with its end: what follows is no code."""
    open_block = sum(line.lstrip().startswith("```") for line in shown.splitlines()) % 2
    return f"{shown}\n```" if open_block else shown


def _unread(course: Course) -> list[str]:
    served, lines = course.served, []
    for attached in (attached for beside in course.attached for attached in beside):
        if (why := obstacle(attached, blind=not served.sees)) is not None:
            why = "no_model" if why == "no_sight" and served.offline else why
            lines.append(course.texts(f"attach.{why}", name=course.texts.attachment(attached.kind, attached.name)))
    return lines
