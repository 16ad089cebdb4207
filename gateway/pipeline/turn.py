"""Runs one turn in a straight line: claim, look, ask the model, commit.

Invariants: every turn ends in one commit, whatever happens. The commit holds the answer (or a notice that says what
went wrong), what was recalled and learned, the mail, and the end of the turn's inbox rows. An interrupted turn resumes
with the model steps it already has. A turn never outlasts its deadline, and ends early when its person says stop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from typing import TypeVar

import structlog

from agents import agent, skills
from agents.budget import Allotment
from agents.foreign import ForeignTool
from agents.llm import ChatMessage, Completion, ModelError, OnText, ToolCall, calls_from_json, calls_to_json
from agents.tools import Tool
from channels.base import Button, Channel
from gateway.internet.tools import NAMES as WEB_TOOLS
from gateway.internet.tools import Web, WebTools, left_out, naming
from gateway.ops.tally import WorkTally
from gateway.pipeline import doubts
from gateway.pipeline.allowance import refusal
from gateway.pipeline.delivery import pieces
from gateway.pipeline.observed import Overheard
from gateway.pipeline.progress import Progress
from gateway.pipeline.questions import DO, buttons
from gateway.pipeline.refusals import Refusals
from gateway.pipeline.request import Agent, Heard, Limits, TurnRequest, in_words, obstacle, rests_on
from gateway.pipeline.toolbox import Toolbox
from gateway.reading.attachments import own_words
from gateway.wording import reminder_lines
from gateway.wording.texts import Texts, spoken, spoken_by, told_by, written_in
from languages import Language
from memory.chat.compaction import Bounds
from memory.chat.identities import Where, Who
from memory.chat.outside_calls import CALL
from memory.chat.turns import Outcome, Said, Turn
from memory.chat.window import TurnMaterial
from memory.learn.extractions import Afterwards
from memory.learn.revise import Revision
from memory.recall.recall import Budget
from memory.runtime import Runtime
from memory.service import Service
from memory.store.attachments import Attached
from memory.store.history import Message, Utterance
from memory.store.usage import Spent

log = structlog.get_logger(__name__)
T = TypeVar("T")

#: Attempts after which a turn is given up, because something in it seems to end the process. The limit must not be
#: lower: where the process is killed every second, a merely unlucky turn is interrupted several times (with a limit of
#: three attempts, `make crash` gave up three of 799 turns in 80 kills).
_MOST_ATTEMPTS = 8
#: The most characters kept of an answer that was stopped or failed: a model gone wrong writes without end.
_LONGEST_PARTIAL = 8_000
#: The number of the person's latest messages that are read for an answer without a model, which knows other words for a
#: question than the search does.
_LATELY = 400
#: The same for words that ask nothing: they tell whether the person was here before.
_LATELY_UNASKED = 5
#: The characters of a text that is prepared to be shown at once; of a longer one in a thread.
_SHORT = 2_000
#: The answers to a task that has nothing to tell. They are not shown.
_NOTHING = frozenset({"nothing", "heartbeat_ok", "no_reply", ""})
#: The number under which the call that a turn's messages agree to is kept beside those of its steps.
_BEFORE_STEPS = -1
#: The data of the retry button under a failed answer, without the turn's id: the command that the button runs.
_RETRY = "run:/retry"


class TurnRunner:
    """Runs turns against one store."""

    def __init__(
        self,
        memory: Service,
        *,
        limits: Limits,
        runtime: Runtime,
        masking: Callable[[Sequence[str]], Callable[[str], str]],
        defang: Callable[[str, bool], str],
        wake: Callable[[str], None],
        web: Web | None = None,
    ) -> None:
        """Takes the services that turns need.

        `masking` takes texts and returns a function that masks secrets; secrets in these texts are masked by value.
        `defang` makes addresses that carry much data harmless in a model's text; its second argument is True if the
        text is still growing. `wake` sends the queue of a session. `web` is the web for agents that may read it.
        """
        self._memory = memory
        self._limits = limits
        self._now = runtime.now
        self._new_id = runtime.new_id
        self._count_tokens = runtime.count_tokens
        self._masking = masking
        self._defang = defang
        self._wake = wake
        self._web = web
        self.tally = WorkTally()
        self._refusals = Refusals()
        self._deadlines: dict[str, asyncio.Timeout] = {}
        self._under_way: set[str] = set()
        self._stopped: set[str] = set()

    def renew(self, web: Web) -> None:
        """Gives agents that may read the web a way to it, if they had none at the start."""
        self._web = self._web or web

    @contextmanager
    def under_way(self, session_key: str) -> Iterator[None]:
        """Marks that an answer is being made in a session, so that a stop reaches it wherever it is by then."""
        self._under_way.add(session_key)
        try:
            yield
        finally:
            self._over(session_key)

    def is_under_way(self, session_key: str) -> bool:
        return session_key in self._under_way

    def stop(self, session_key: str) -> bool:
        """Ends the answer that is being made in a session, at once or where its next `deadline` begins.

        Returns False if there is none, or if it is complete and only being kept.
        """
        if session_key not in self._under_way:
            return False
        self._stopped.add(session_key)
        deadline = self._deadlines.get(session_key)
        if deadline is not None and not deadline.expired():
            deadline.reschedule(asyncio.get_running_loop().time())
        return True

    def _over(self, session_key: str) -> None:
        self._under_way.discard(session_key)
        self._stopped.discard(session_key)

    async def run(
        self,
        served: Agent,
        where: Where,
        who: Who,
        heard: Sequence[Heard],
        channel: Channel | None,
        *,
        turn_id: int | None,
        exempt: bool = False,
    ) -> None:
        """Answers `heard`, a burst of messages from one person. `turn_id` names an interrupted turn to resume.

        An `exempt` person has no allowance to keep. Raises `Withdrawn` if there is nothing to answer any more.
        """
        attached = [
            await self._memory.mailbox.attached(one.inbox_id) if one.inbound.attachments else [] for one in heard
        ]
        turn = await self._open(served, where, who, heard, attached, turn_id)
        kept = [n for n, one in enumerate(heard) if one.inbox_id in turn.inbox_ids]
        heard, attached = [heard[n] for n in kept], [attached[n] for n in kept]
        language = written_in(turn.said[-1].text, spoken(heard[-1].inbound.language, served.spec.language))
        texts = Texts(spoken(turn.context.speaker.language, language), turn.context.timezone)
        view: TurnMaterial | None = None
        course = _Course(await self._mask(served, heard))
        try:
            if told := await self._refusal(served, turn, texts, exempt=exempt):
                raise _NothingLeft(told)
            if turn.attempts > _MOST_ATTEMPTS:
                raise _GivenUp
            async with self._listener(channel, heard, turn, course) as on_text, self.deadline(where.session_key):
                course.foreign = () if served.offline else await served.foreign()
                course.shares = self._shares(served, turn, texts, course.foreign)
                view = await self.tally.timed("look", self._view(served, turn, course.shares, texts))
                shown = _language(turn, view) or spoken_by(await self._memory.turns.said_last(turn.context))
                texts = replace(texts, language=spoken(shown, texts.language))
                course.listen(on_text)
                outcome, view = await self.tally.timed(
                    "answer", self._answer(served, turn, view, heard, attached, texts, channel, course)
                )
        except ModelError as exc:
            log.error("turn.failed", session=where.session_key, turn=turn.id, code=exc.code, error=str(exc))
            self._refusals.failed(where.session_key, of_request=exc.of_request)
            told = texts(f"error.{exc.code}")
            outcome = await self._cut_off(served, channel, course, told, exc.code, retry=_retry(turn, texts))
        except TimeoutError:
            if self.was_stopped(where.session_key):
                told = texts("stop.cut" if course.streamed.strip() else "stop.done")
                outcome = await self._cut_off(served, channel, course, told, "stopped")
            else:
                log.error("turn.failed", session=where.session_key, turn=turn.id, code="deadline")
                told = texts("error.deadline", seconds=f"{self._limits.seconds:g}")
                outcome = await self._cut_off(served, channel, course, told, "deadline", retry=_retry(turn, texts))
        except _NothingLeft as exc:
            outcome = await self._cut_off(served, channel, course, str(exc), "allowance")
        except _GivenUp:
            log.error("turn.given_up", session=where.session_key, turn=turn.id, attempts=turn.attempts)
            outcome = await self._cut_off(served, channel, course, texts("error.internal"), "given_up")
        finally:
            self._over(where.session_key)
        if course.aborted:
            outcome = replace(outcome, spent=spent_on(course.aborted))
        outcome = replace(outcome, reply_to=_reply_to(heard), pictures=self._limits.pictures)
        after = await self.tally.timed(
            "commit", self._finish(served, turn, view, outcome, channel, texts, task=heard[-1].inbound.task)
        )
        if course.shares is not None and served.compacts:
            self._compact(turn, served.bounds(course.shares), after, texts, channel)

    def _compact(self, turn: Turn, bounds: Bounds, after: Afterwards, texts: Texts, channel: Channel | None) -> None:
        """Sums up the conversation in the background if its window is nearly full."""
        if not bounds.may_be_reached(after):
            return
        self._memory.compaction.soon(
            turn.context,
            bounds,
            notice=lambda done: pieces(channel, texts("compact.told", count=done.messages)),
            posted=lambda: self._wake(turn.context.session.key),
        )

    async def _finish(
        self,
        served: Agent,
        turn: Turn,
        view: TurnMaterial | None,
        outcome: Outcome,
        channel: Channel | None,
        texts: Texts,
        *,
        task: int | None,
    ) -> Afterwards:
        """Commits the outcome. A `task` that failed or has nothing to tell shows nothing.

        After an answer, the person is asked about facts in doubt, in a message of its own: neither waits for the other.
        """
        self.tally.counts["turn", outcome.error or "answered"] += 1
        self.tally.counts["recalled", ""] += len(view.recall.items) if view is not None else 0
        if task is None:
            after = await self._memory.turns.finish(turn, view, outcome)
            may_ask = after.is_any_doubt and outcome.error is None and served.spec.memory.enabled
            if may_ask and await doubts.ask(self._memory, turn.context, texts, channel):
                self._wake(turn.context.session.key)
            return after
        silent = outcome.error is not None or _is_nothing(outcome)
        ending = self._memory.reminders.task_ending(
            task,
            error=outcome.error,
            told=lambda reminder: pieces(channel, reminder_lines.switched_off(reminder)),
        )
        told = replace(outcome, pieces=()) if silent else outcome
        return await self._memory.turns.finish(turn, view, told, ending=ending)

    async def _refusal(self, served: Agent, turn: Turn, texts: Texts, *, exempt: bool) -> str:
        """Returns the words for a person who has used up the day's allowance; "" if something is left.

        A turn that was interrupted after it had begun to cost something is finished.
        """
        allowance = served.spec.allowance
        free = served.offline or (exempt and not allowance.admins)
        if free or turn.steps or not allowance.portions:
            return ""
        spending = await self._memory.stats.spending(turn.context, served.spec.timezone)
        return refusal(allowance, spending, texts)

    def was_stopped(self, session_key: str) -> bool:
        """Returns whether the person stopped the session's turn. Reports each stop only once."""
        stopped = session_key in self._stopped
        self._stopped.discard(session_key)
        return stopped

    @asynccontextmanager
    async def deadline(self, session_key: str) -> AsyncIterator[None]:
        """Raises `TimeoutError` when the turn's time is up, its person says stop, or has said so before."""
        if session_key in self._stopped:
            raise TimeoutError
        async with asyncio.timeout(self._limits.seconds) as deadline:
            self._deadlines[session_key] = deadline
            try:
                yield
            finally:
                del self._deadlines[session_key]

    @asynccontextmanager
    async def _listener(
        self, channel: Channel | None, heard: Sequence[Heard], turn: Turn, course: _Course
    ) -> AsyncIterator[OnText | None]:
        """Yields a callback that shows the growing answer in the way the channel supports, or None.

        A secret can be recognized only once it is complete, so an answer that may repeat a secret is not streamed.
        """
        place = heard[0].inbound.place
        secret = any(one.original is not None for one in heard)
        appends = channel is not None and channel.capabilities.stream == "append"
        task = heard[0].inbound.task is not None  # it may have nothing to say
        if channel is None or not channel.reachable(place) or (appends and secret) or task:
            yield None
        elif appends:

            async def on_text(text: str) -> None:
                await channel.append(place, turn.id, text)

            yield on_text
        else:
            async with Progress(
                self._memory.mailbox,
                channel,
                place,
                turn_id=turn.id,
                reply_to=_reply_to(heard),
                after_seconds=self._limits.placeholder_seconds
                if channel.capabilities.shows_after is None
                else channel.capabilities.shows_after,
                safe=lambda text: self._defang(course.mask(text), True),
            ) as progress:
                yield progress.on_text if channel.capabilities.stream == "edit" and not secret else None

    async def _mask(self, served: Agent, heard: Sequence[Heard]) -> Callable[[str], str]:
        """Returns a function that masks secrets. The secrets of `heard`, known only in RAM, are masked by value.

        An agent without a model answers with its own words and masked ones alone, so nothing is left to mask there.
        """
        if served.offline:
            return str
        return await asyncio.to_thread(self._masking, [one.original for one in heard if one.original is not None])

    async def _cut_off(
        self,
        served: Agent,
        channel: Channel | None,
        course: _Course,
        told: str,
        error: str,
        *,
        retry: Sequence[Button] = (),
    ) -> Outcome:
        """Returns the outcome of a turn that was stopped or failed.

        The shown part of the answer stays, in history too, with `told` after it. Without any, `told` is all.
        """
        # A secret that begins in what is kept may end behind it.
        streamed = course.streamed[: 2 * _LONGEST_PARTIAL]
        shown = (await asyncio.to_thread(course.mask, streamed)).strip()[:_LONGEST_PARTIAL]
        if not shown:
            return Outcome(pieces=pieces(channel, told, buttons=retry), error=error)
        said = self._utterance(ChatMessage(role="assistant", content=f"{shown} […]"))
        if channel is None or channel.capabilities.stream != "append":
            shown = self._defang(shown, True)
        cut = f"{_closed(shown)}\n\n{told}"
        return Outcome(
            pieces=pieces(channel, cut, markdown=not served.offline, buttons=retry), utterances=(said,), error=error
        )

    async def _open(
        self,
        served: Agent,
        where: Where,
        who: Who,
        heard: Sequence[Heard],
        attached: Sequence[Sequence[Attached]],
        turn_id: int | None,
    ) -> Turn:
        if turn_id is not None:
            return await self._memory.turns.resume(where, who, turn_id, [one.inbox_id for one in heard])
        texts = Texts(spoken(heard[-1].inbound.language, served.spec.language))
        words = [
            # A pressed button is the word on it.
            in_words(one.inbound.text if one.inbound.pressed is None else texts(DO), beside)
            for one, beside in zip(heard, attached, strict=True)
        ]
        said = [
            Said(
                inbox_id=one.inbox_id,
                text=text,
                tokens=self._count_tokens(text),
                said_at=one.inbound.sent_at,
                platform_ref=one.inbound.message_id or None,
                reply_to=one.inbound.reply_to,
                learn=served.spec.memory.enabled and one.is_own_talk,
                recall=served.spec.memory.enabled and one.inbound.pressed is None,
            )
            for one, text in zip(heard, words, strict=True)
        ]
        return await self._memory.turns.begin(where, who, said)

    def _toolbox(
        self,
        served: Agent,
        turn: Turn,
        texts: Texts,
        foreign: Sequence[ForeignTool],
        read: Sequence[Message] = (),
        mask: Callable[[str], str] = str,
    ) -> tuple[Toolbox, tuple[Tool, ...]]:
        web = None if self._web is None else WebTools(web=self._web, named=naming([*read, *turn.said]))
        toolbox = Toolbox(
            memory=self._memory,
            turn=turn,
            texts=texts,
            now=self._now,
            agent=served.spec.name,
            harmless=lambda text: self._defang(text, False),
            mask=mask,
            seconds=served.spec.turn.call_seconds,
            read=read,
            web=web,
        )
        skilled = (skills.tool(served.skills),) if served.skills else ()
        return toolbox, (
            *toolbox.tools(served.spec.usable_tools),
            *toolbox.of_the_web(served.spec.usable_tools),
            *skilled,
            *toolbox.foreign(foreign),
        )

    def _shares(self, served: Agent, turn: Turn, texts: Texts, foreign: Sequence[ForeignTool]) -> Allotment:
        _, tools = self._toolbox(served, turn, texts, foreign)
        return served.shares(served.gauge.room(), [tool.spec for tool in tools])

    async def _view(self, served: Agent, turn: Turn, shares: Allotment, texts: Texts) -> TurnMaterial:
        settings = served.spec.memory
        budget = Budget(
            items=settings.recall_items,
            tokens=shares.recall,
            known=settings.known_facts,
            known_tokens=min(settings.known_tokens, shares.snapshot),
            manner=settings.manner,
        )
        return await self._memory.turns.look(
            turn,
            budget if settings.enabled else None,
            window_tokens=shares.window,
            window_messages=served.spec.window.messages,
            lately=_lately(served, turn, texts.language),
            compacted=served.compacts,
            modelless=served.offline,
        )

    async def _introduction(self, turn: Turn, view: TurnMaterial, heard: Sequence[Heard]) -> str:
        """Returns the key of the text about the bot that is shown once, after its first answer."""
        if not turn.context.session.private:
            return "first.group" if heard[-1].overheard is None else "first.group_observed"
        told = view.learned if view.learned is not None else await self._memory.turns.understood(turn)
        named = any(one.draft.key in ("name", "called") for one in told.proposals)
        return "first.named" if named else "first.private"

    async def _answer(
        self,
        served: Agent,
        turn: Turn,
        view: TurnMaterial,
        heard: Sequence[Heard],
        attached: Sequence[Sequence[Attached]],
        texts: Texts,
        channel: Channel | None,
        course: _Course,
    ) -> tuple[Outcome, TurnMaterial]:
        """Returns the outcome of asking the model, and the material that was in the last prompt."""
        toolbox, tools = self._toolbox(served, turn, texts, course.foreign, view.window, course.mask)
        session_key = turn.context.session.key
        refused = self._refusals.of(session_key)
        request = TurnRequest(
            served=served,
            turn=turn,
            view=view,
            heard=heard,
            attached=attached,
            texts=texts,
            learned=view.learned or Revision(),
            limits=self._limits,
            now=self._now(),
            # With a digit, by which `agents.output` tells a copy of the mark from a person's words in brackets.
            fence=f"{self._new_id()}7",
            on_aborted=course.aborted.append,
            overheard=await self._overheard(turn, heard),
            reminders=view.reminders,
            since=refused.since,
        )

        async def keep_step(n: int, completion: Completion) -> None:
            # An offline answer is free and always the same, so its steps need not be kept for a resumed turn.
            if not served.offline:
                await self._memory.turns.keep_step(turn, n, completion.to_json(), _spent(completion))

        before = await self._agreed(turn, toolbox, course.foreign, course.mask)
        reply = await agent.run(
            served.provider,
            request,
            tools,
            limits=served.spec.turn,
            steps=agent.TurnSteps(
                stored=[Completion.from_json(step) for step in turn.steps],
                keep=keep_step,
                traffic=before,
                refused=refused.last,
                spared=refused.spared,
                room=refused.room,
            ),
            gauge=served.gauge,
            redact=course.mask,
            on_text=course.on_text,
        )
        self._refusals.answered(session_key, reply, turn.said[0].id)
        return await self._outcome(request, reply, toolbox, channel), request.entered

    async def _outcome(
        self, request: TurnRequest, reply: agent.Reply, toolbox: Toolbox, channel: Channel | None
    ) -> Outcome:
        """Returns the outcome of a turn that was answered."""
        served, turn, view, texts = request.served, request.turn, request.view, request.texts
        # A tool's question must reach the person even if the model doesn't repeat it.
        question = await self._memory.questions.open_to(turn.context) if toolbox.asked else None
        shown = await self._shown(request, reply, toolbox, channel)
        if question is not None and question.purpose == CALL and channel and not channel.capabilities.buttons:
            shown += "\n" + texts("call.type", do=texts("do"), no=texts("no"))
        cut = partial(
            pieces,
            channel,
            shown,
            markdown=not served.offline,  # an offline answer shows quotations exactly as they were said
            buttons=(
                *(buttons(question, texts) if question is not None else ()),
                *(reminder_lines.cancel_button(texts, one, numbered=True) for one in toolbox.told_back),
            ),
        )
        said = (*left_out(reply.traffic), ChatMessage(role="assistant", content=reply.text))
        return Outcome(
            pieces=await _apart(shown, cut),
            utterances=tuple(map(self._utterance, said)),
            learned=view.learned,
            spent=_spent(reply.completions[-1]) if served.offline else None,
            recall=rests_on(view.recall, reply.completions[-1].grounds) if served.offline else None,
        )

    async def _shown(self, request: TurnRequest, reply: agent.Reply, toolbox: Toolbox, channel: Channel | None) -> str:
        """Returns the words that are shown: the answer, what tools have to say, and remarks of the bot."""
        served, turn, texts = request.served, request.turn, request.texts
        # Text streamed to a terminal is already shown, and a terminal fetches no addresses.
        appended = channel is not None and channel.capabilities.stream == "append"
        said = f"{_closed(reply.shown)}\n\n{texts('answer.cut')}" if reply.cut else reply.shown
        set_back = [reminder_lines.set_back(texts, one, self._now()) for one in toolbox.told_back]
        shown = "\n".join([said, *toolbox.asked, *set_back])
        if not (served.offline or appended):
            shown = await _apart(shown, partial(self._defang, shown, False))
        longest = max((one.inbound for one in request.heard), key=lambda inbound: inbound.length)
        if longest.length:
            shown += "\n" + texts("long.kept", length=longest.length, kept=len(longest.text))
        elif request.cut:
            shown += "\n" + texts("long.told", length=max(len(message.text) for message in turn.said))
        unread = dict.fromkeys(line for beside in request.attached for line in _unread(served, beside, texts))
        shown = "\n".join([shown, *unread])
        if reply.spared == "before":
            shown += "\n\n" + texts("answer.without_history")
        if turn.first and channel is not None and channel.capabilities.introduces:
            shown += "\n\n" + texts(await self._introduction(turn, request.view, request.heard))
        return shown

    async def _agreed(
        self, turn: Turn, toolbox: Toolbox, foreign: Sequence[ForeignTool], redact: Callable[[str], str]
    ) -> list[ChatMessage]:
        """Makes the call that the messages of this turn agree to. Returns it with its result; [] if there is none."""
        agreed = await self._memory.outside_calls.agreed(turn) if foreign or toolbox.web is not None else None
        if agreed is None:
            return []
        wanted = ToolCall(id=f"agreed_{turn.id}", name=agreed.tool, arguments=agreed.arguments)
        offered = (*toolbox.foreign(foreign, agreed=True), *toolbox.of_the_web(WEB_TOOLS, agreed=True))
        result = await agent.answered(offered, wanted, redact, step=_BEFORE_STEPS, index=0)
        return agent.exchange("", (wanted,), (result,))

    async def _overheard(self, turn: Turn, heard: Sequence[Heard]) -> list[tuple[int, Overheard]]:
        """Returns people's lines to others before these messages, each with their identity, or a negative number.

        Left out are people who have opted out of learning, and a chat in which learning is off.
        """
        lines = heard[-1].overheard or ()
        if not lines or not turn.context.session.learning:
            return []
        users = list(dict.fromkeys(line.user_id for line in lines))
        known = await self._memory.privacy.speakers(heard[-1].inbound.platform, users)
        numbers = {user: known[user].id if user in known else -1 - n for n, user in enumerate(users)}
        silent = {user for user, speaker in known.items() if not speaker.learning}
        return [(numbers[line.user_id], line) for line in lines if line.user_id not in silent]

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


async def _apart(text: str, act: Callable[[], T]) -> T:
    """Does something with a text, in a thread if it is long."""
    return await asyncio.to_thread(act) if len(text) > _SHORT else act()


class _NothingLeft(Exception):
    """Raised when a portion of the day is used up, with the words for the person."""


class _GivenUp(Exception):
    """Raised when a turn has ended the process too often."""


def _is_nothing(outcome: Outcome) -> bool:
    """Returns whether the answer to a task says that there is nothing to tell."""
    said = outcome.utterances[-1].text.strip(' \n.!*_`"“”。！').casefold() if outcome.utterances else ""
    return said in _NOTHING


def _reply_to(heard: Sequence[Heard]) -> str | None:
    """Returns the id of the message that an answer in a group points to; None in private."""
    last = heard[-1].inbound
    return (last.message_id or last.reply_to) if last.chat_kind == "group" else None


class _Course:
    """The course of a turn so far: the shown part of the answer, and the calls that cost something and gave nothing.

    `mask` removes the secrets from a text of the model or a tool. A long text takes it long, so it runs in a
    thread. `foreign` are the tools that are not ours, as they are when the turn begins, `shares` those of its first
    request.
    """

    def __init__(self, mask: Callable[[str], str]) -> None:
        self.mask = mask
        self.foreign: tuple[ForeignTool, ...] = ()
        self.on_text: OnText | None = None
        self.shares: Allotment | None = None
        self.aborted: list[Completion] = []
        self._streamed: list[str] = []

    def listen(self, on_text: OnText | None) -> None:
        """Passes each piece of the answer on to `on_text`, if there is one, and notes it."""

        async def note(text: str) -> None:
            self._streamed.append(text)
            assert on_text is not None
            await on_text(text)

        self.on_text = None if on_text is None else note

    @property
    def streamed(self) -> str:
        return "".join(self._streamed)


def _closed(shown: str) -> str:
    """Returns a text that may have been cut off within a code block, with its end: what follows is no code."""
    open_block = sum(line.lstrip().startswith("```") for line in shown.splitlines()) % 2
    return f"{shown}\n```" if open_block else shown


def _lately(served: Agent, turn: Turn, language: Language) -> int:
    """Returns how many of the person's latest messages are read: few if they ask an agent without a model nothing.

    They may ask in their own language or in `language`.
    """
    if served.asks is None:
        return 0
    said = own_words("\n".join(message.text for message in turn.said))
    languages = {language, spoken(turn.context.speaker.language, language)}
    # Where the words don't show their language, that of earlier ones decides.
    asks = told_by(said) is None or any(served.asks(said, code) for code in languages)
    return _LATELY if asks else _LATELY_UNASKED


def _retry(turn: Turn, texts: Texts) -> tuple[Button, ...]:
    return (Button(label=texts("retry.button"), data=f"{_RETRY} {turn.id}"),)


def _unread(served: Agent, beside: Sequence[Attached], texts: Texts) -> list[str]:
    """Returns a line for the person about each attachment that could not be read or seen."""
    lines = []
    for one in beside:
        if (why := obstacle(one, blind=not served.sees)) is not None:
            why = "no_model" if why == "no_sight" and served.offline else why
            lines.append(texts(f"attach.{why}", name=texts.attachment(one.kind, one.name)))
    return lines


def _language(turn: Turn, view: TurnMaterial) -> str | None:
    """Returns the person's own language, else the one they wrote last; None if they wrote none that shows.

    Right after a new conversation began, recalled messages of earlier ones show it.
    """
    recalled = {item.passage.message.id: item.passage.message for item in view.recall.items if item.passage is not None}
    said = [*(message for _, message in sorted(recalled.items())), *view.window, *turn.said]
    own = [message.text for message in said if message.author_id == turn.context.speaker.id]
    return spoken(turn.context.speaker.language, "") or spoken_by(reversed(own))


def spent_on(completions: Sequence[Completion]) -> Spent:
    """Returns the cost of several calls under the name of the last one's model."""
    every = [_spent(completion) for completion in completions]
    costs = [one.cost for one in every if one.cost is not None]
    return replace(
        every[-1],
        input_tokens=sum(one.input_tokens for one in every),
        output_tokens=sum(one.output_tokens for one in every),
        cached_tokens=sum(one.cached_tokens for one in every),
        estimated=any(one.estimated for one in every),
        cost=sum(costs) if costs else None,
    )


def _spent(completion: Completion) -> Spent:
    usage = completion.usage
    return Spent(
        model=f"{completion.provider}/{completion.model}"
        if completion.provider != completion.model
        else completion.model,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cached_tokens,
        estimated=usage.estimated,
        cost=usage.cost,
    )
