"""Runs one turn in a straight line: claim, look, ask the model, commit.

Invariants: every turn ends in one commit, whatever happens. The commit holds the answer (or a notice that says what
went wrong), what was recalled and learned, the mail, and the end of the turn's inbox rows. An interrupted turn resumes
with the model steps it already has. A turn never outlasts its deadline, and ends early when its person says stop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import structlog

from agents import agent, skills
from agents.llm import ChatMessage, Completion, ModelError, OnText, ToolCall
from agents.spans import WorkTally
from agents.tools import Tool
from channels.base import Channel
from gateway.internet.tools import NAMES as WEB_TOOLS
from gateway.internet.tools import Web, WebTools, naming
from gateway.pipeline.course import Agent, Course, Heard, Limits, Refusals, Stops, in_words
from gateway.pipeline.delivery import pieces
from gateway.pipeline.limits import refusal
from gateway.pipeline.marks import Marks
from gateway.pipeline.observed import Overheard
from gateway.pipeline.outcome import Outcomes, Progress, is_nothing, spent, spent_on
from gateway.pipeline.questions import DO, ask_doubt
from gateway.pipeline.request import TurnRequest
from gateway.pipeline.toolbox import Toolbox
from gateway.reading.attachments import own_words
from gateway.wording import reminder_lines
from gateway.wording.texts import Texts, spoken, spoken_by, told_by, written_in
from languages import Language
from memory.chat.identities import Where, Who
from memory.chat.turns import Outcome, Said, Turn
from memory.chat.window import TurnMaterial
from memory.learn.extractions import Afterwards
from memory.recall.recall import Budget
from memory.runtime import Runtime
from memory.service import Service
from memory.store.attachments import Attached

log = structlog.get_logger(__name__)

#: Attempts after which a turn is given up, because something in it seems to end the process. The limit must not be
#: lower: where the process is killed every second, a merely unlucky turn is interrupted several times (with a limit of
#: three attempts, `make crash` gave up three of 799 turns in 80 kills).
_MOST_ATTEMPTS = 8
#: The number of the person's latest messages that are read for an answer without a model, which knows other words for a
#: question than the search does.
_LATELY = 400
#: The same for words that ask nothing: they tell whether the person was here before.
_LATELY_UNASKED = 5
#: The number under which the call that a turn's messages agree to is kept beside those of its steps.
_BEFORE_STEPS = -1


class TurnRunner:
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
        self.stops = Stops(limits.seconds)
        self._refusals = Refusals()
        self._marks = Marks()
        self._outcomes = Outcomes(memory, runtime=runtime, defang=defang)

    def renew(self, web: Web) -> None:
        """Gives agents that may read the web a way to it, if they had none at the start."""
        self._web = self._web or web

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
        """Answers a burst of messages of a person. `turn_id` names a turn to resume. Raises `Withdrawn` without any."""
        course = await self._opened(served, where, who, heard, channel, turn_id)
        with self._marks.shown(course):
            try:
                may_write = await self._memory.mailbox.may_write(course.turn.context.session)
                outcome = await self._outcome(course, exempt=exempt) if may_write else Outcome(pieces=(), error="muted")
            finally:
                self.stops.over(where.session_key)
            if course.aborted:
                outcome = replace(outcome, spent=spent_on(course.aborted))
            outcome = replace(outcome, reply_to=course.reply_to, pictures=self._limits.pictures)
            after = await self.tally.timed("commit", self._finish(course, outcome))
        self._compact(course, after)
        if outcome.error is None and channel is not None and channel.capabilities.lists:
            place = course.heard[0].inbound.place
            self._memory.titles.soon(course.turn.context, named=lambda: channel.relist(place))

    async def _opened(
        self,
        served: Agent,
        where: Where,
        who: Who,
        heard: Sequence[Heard],
        channel: Channel | None,
        turn_id: int | None,
    ) -> Course:
        attached = [await self._memory.mailbox.attached(one.inbox_id) if one.inbound.brings else [] for one in heard]
        if turn_id is None:
            turn = await self._memory.turns.begin(where, who, self._said(served, heard, attached))
        else:
            turn = await self._memory.turns.resume(where, who, turn_id, [one.inbox_id for one in heard])
        kept = [n for n, one in enumerate(heard) if one.inbox_id in turn.inbox_ids]
        heard = [heard[n] for n in kept]
        language = written_in(turn.said[-1].text, spoken(heard[-1].inbound.language, served.spec.language))
        return Course(
            served=served,
            turn=turn,
            heard=heard,
            attached=[attached[n] for n in kept],
            channel=channel,
            texts=Texts(spoken(turn.context.speaker.language, language), turn.context.timezone),
            mask=await self._mask(served, heard),
        )

    def _said(self, served: Agent, heard: Sequence[Heard], attached: Sequence[Sequence[Attached]]) -> list[Said]:
        do = Texts(spoken(heard[-1].inbound.language, served.spec.language))(DO)
        remembers, messages = served.spec.memory.enabled, []
        for one, beside in zip(heard, attached, strict=True):
            inbound = one.inbound
            text = in_words(inbound.text if inbound.pressed is None else do, beside)  # a button is the word on it
            messages.append(
                Said(
                    inbox_id=one.inbox_id,
                    text=text,
                    tokens=self._count_tokens(text),
                    said_at=inbound.sent_at,
                    platform_ref=inbound.message_id or None,
                    reply_to=inbound.reply_to,
                    learn=remembers and one.is_own_talk,
                    recall=remembers and inbound.pressed is None,
                )
            )
        return messages

    async def _mask(self, served: Agent, heard: Sequence[Heard]) -> Callable[[str], str]:
        """Returns a function that masks secrets; those of `heard` by value. Without a model nothing is left to mask."""
        if served.offline:
            return str
        return await asyncio.to_thread(self._masking, [one.original for one in heard if one.original is not None])

    async def _outcome(self, course: Course, *, exempt: bool) -> Outcome:
        """Returns the outcome of a turn: its answer, or a notice that says why there is none."""
        turn, key, cut_off = course.turn, course.session_key, self._outcomes.cut_off
        if notice := await self._refusal(course, exempt=exempt):
            return await cut_off(course, notice, "allowance")
        if turn.attempts > _MOST_ATTEMPTS:
            log.error("turn.given_up", session=key, turn=turn.id, attempts=turn.attempts)
            return await cut_off(course, course.texts("error.internal"), "given_up")
        try:
            async with self._listener(course) as on_text, self.stops.deadline(key, turn.id):
                return await self._answered(course, on_text)
        except ModelError as exc:
            log.error("turn.failed", session=key, turn=turn.id, code=exc.code, error=str(exc))
            self._refusals.failed(key, of_request=exc.of_request)
            return await cut_off(course, course.texts(f"error.{exc.code}"), exc.code, retry=True)
        except TimeoutError:
            if self.stops.was_stopped(key):
                notice = course.texts("stop.cut" if "".join(course.streamed).strip() else "stop.done")
                return await cut_off(course, notice, "stopped")
            log.error("turn.failed", session=key, turn=turn.id, code="deadline")
            notice = course.texts("error.deadline", seconds=f"{self._limits.seconds:g}")
            return await cut_off(course, notice, "deadline", retry=True)

    async def _refusal(self, course: Course, *, exempt: bool) -> str:
        """Returns words for a used-up allowance, else ""; a turn that has begun to cost something is finished."""
        served, allowance = course.served, course.served.spec.allowance
        free = served.offline or (exempt and not allowance.admins)
        if free or course.turn.steps or not allowance.portions:
            return ""
        spending = await self._memory.stats.spending(course.turn.context, served.spec.timezone)
        return refusal(allowance, spending, course.texts)

    @asynccontextmanager
    async def _listener(self, course: Course) -> AsyncIterator[OnText | None]:
        """Yields a callback that shows the growing answer, or None: one that may repeat a secret is not streamed."""
        channel, place, turn_id = course.channel, course.heard[0].inbound.place, course.turn.id
        secret = any(one.original is not None for one in course.heard)
        may_be_silent = course.heard[0].inbound.task is not None
        # What needs no message grows for whoever comes meanwhile, as to a page that nobody had open.
        seen = channel is not None and (channel.drafts(place) or channel.reachable(place))
        if channel is None or not seen or (course.appends and secret) or may_be_silent:
            yield None
            return

        def noting(show: OnText) -> OnText:
            async def note(text: str) -> None:
                course.streamed.append(text)
                await show(text)

            return note

        if course.appends:
            yield noting(lambda text: channel.append(place, turn_id, text))
            return
        shows_after = channel.capabilities.shows_after
        async with Progress(
            self._memory.mailbox,
            channel,
            place,
            turn_id=turn_id,
            reply_to=course.reply_to,
            after_seconds=self._limits.placeholder_seconds if shows_after is None else shows_after,
            safe=lambda text: self._defang(course.mask(text), True),
        ) as progress:
            yield noting(progress.on_text) if channel.capabilities.stream == "edit" and not secret else None

    async def _answered(self, course: Course, on_text: OnText | None) -> Outcome:
        served = course.served
        course.foreign = () if served.offline else await served.foreign()
        tools = self._tools(course, self._toolbox(course))
        course.shares = served.shares(served.gauge.room(), [tool.spec for tool in tools])
        course.view = view = await self.tally.timed("look", self._view(course))
        language = _language(course.turn, view) or spoken_by(await self._memory.turns.said_last(course.turn.context))
        course.texts = replace(course.texts, language=spoken(language, course.texts.language))
        return await self.tally.timed("answer", self._answer(course, view, on_text))

    async def _view(self, course: Course) -> TurnMaterial:
        served, settings, shares = course.served, course.served.spec.memory, course.shares
        assert shares is not None
        budget = Budget(
            items=settings.recall_items,
            tokens=shares.recall,
            known=settings.known_facts,
            known_tokens=min(settings.known_tokens, shares.snapshot),
            manner=settings.manner,
        )
        return await self._memory.turns.look(
            course.turn,
            budget if settings.enabled else None,
            window_tokens=shares.window,
            window_messages=served.spec.window.messages,
            lately=_lately(served, course.turn, course.texts.language),
            compacted=served.compacts,
            modelless=served.offline,
        )

    async def _answer(self, course: Course, view: TurnMaterial, on_text: OnText | None) -> Outcome:
        """Asks the model. In the course stays what was in the last prompt."""
        served, turn = course.served, course.turn
        refused = self._refusals.of(course.session_key)
        toolbox = self._toolbox(course)
        request = TurnRequest(
            course=course,
            view=view,
            limits=self._limits,
            now=self._now(),
            # With a digit, by which `agents.output` tells a copy of the mark from a person's words in brackets.
            fence=f"{self._new_id()}7",
            overheard=await self._overheard(course),
            since=refused.since,
        )

        async def keep_step(n: int, completion: Completion) -> None:
            # An offline answer is free and always the same, so its steps need not be kept for a resumed turn.
            if not served.offline:
                await self._memory.turns.keep_step(turn, n, completion.to_json(), spent(completion))

        reply = await agent.run(
            served.provider,
            request,
            self._tools(course, toolbox),
            limits=served.spec.turn,
            steps=agent.TurnSteps(
                stored=[Completion.from_json(step) for step in turn.steps],
                keep=keep_step,
                traffic=await self._agreed(course, toolbox),
                refused=refused.last,
                spared=refused.spared,
                room=refused.room,
            ),
            gauge=served.gauge,
            redact=course.mask,
            on_text=on_text,
        )
        self._refusals.answered(course.session_key, reply, turn.said[0].id)
        course.view = request.entered
        return await self._outcomes.answered(course, reply, toolbox, shortened=request.cut)

    def _toolbox(self, course: Course) -> Toolbox:
        """Makes the tools for a turn; those made before the look know none of the messages that the model reads."""
        view = course.view
        read = view.window if view is not None else ()
        return Toolbox(
            memory=self._memory,
            turn=course.turn,
            texts=course.texts,
            now=self._now,
            agent=course.served.spec.name,
            harmless=lambda text: self._defang(text, False),
            mask=course.mask,
            seconds=course.served.spec.turn.call_seconds,
            read=read if view is None else (*view.results, *read),
            files=() if view is None else view.file_texts,
            web=None if self._web is None else WebTools(web=self._web, named=naming([*read, *course.turn.said])),
        )

    def _tools(self, course: Course, toolbox: Toolbox) -> tuple[Tool, ...]:
        """Returns the tools that the model is offered; nobody reads them without a model."""
        served = course.served
        if served.offline:
            return ()
        names = served.spec.usable_tools
        skilled = (skills.tool(served.skills),) if served.skills else ()
        return (*toolbox.tools(names), *toolbox.of_the_web(names), *skilled, *toolbox.foreign(course.foreign))

    async def _agreed(self, course: Course, toolbox: Toolbox) -> list[ChatMessage]:
        """Makes the call that the messages of this turn agree to. Returns it with its result; [] if there is none."""
        turn, foreign = course.turn, course.foreign
        agreed = await self._memory.outside_calls.agreed(turn) if foreign or toolbox.web is not None else None
        if agreed is None:
            return []
        wanted = ToolCall(id=f"agreed_{turn.id}", name=agreed.tool, arguments=agreed.arguments)
        offered = (*toolbox.foreign(foreign, agreed=True), *toolbox.of_the_web(WEB_TOOLS, agreed=True))
        result = await agent.answered(offered, wanted, course.mask, step=_BEFORE_STEPS, index=0)
        return agent.exchange("", (wanted,), (result,))

    async def _overheard(self, course: Course) -> list[tuple[int, Overheard]]:
        """Returns people's lines to others before these messages, without those of people who opted out of learning."""
        last = course.heard[-1]
        lines = last.overheard or ()
        if not lines or not course.turn.context.session.learning:
            return []
        users = list(dict.fromkeys(line.user_id for line in lines))
        known = await self._memory.privacy.speakers(last.inbound.platform, users)
        numbers = {user: known[user].id if user in known else -1 - n for n, user in enumerate(users)}
        silent = {user for user, speaker in known.items() if not speaker.learning}
        return [(numbers[line.user_id], line) for line in lines if line.user_id not in silent]

    async def _finish(self, course: Course, outcome: Outcome) -> Afterwards:
        """Commits the outcome. After an answer, the person is asked about facts in doubt in a message of its own."""
        turn, view, texts = course.turn, course.view, course.texts
        self.tally.counts["turn", outcome.error or "answered"] += 1
        self.tally.counts["recalled", ""] += len(view.recall.items) if view is not None else 0
        if course.task is None:
            after = await self._memory.turns.finish(turn, view, outcome)
            may_ask = after.is_any_doubt and outcome.error is None and course.served.spec.memory.enabled
            if may_ask and await ask_doubt(self._memory, turn.context, texts, course.channel):
                self._wake(course.session_key)
            return after
        ending = self._memory.reminders.task_ending(
            course.task,
            error=outcome.error,
            told=lambda reminder: pieces(course.channel, reminder_lines.switched_off(reminder)),
        )
        silent = outcome.error is not None or is_nothing(outcome)
        shown = replace(outcome, pieces=()) if silent else outcome
        return await self._memory.turns.finish(turn, view, shown, ending=ending)

    def _compact(self, course: Course, after: Afterwards) -> None:
        if course.shares is None or not course.served.compacts:
            return
        bounds, texts, channel = course.served.bounds(course.shares), course.texts, course.channel
        if bounds.may_be_reached(after):
            self._memory.compaction.soon(
                course.turn.context,
                bounds,
                notice=lambda done: pieces(channel, texts("compact.told", count=done.messages)),
                posted=lambda: self._wake(course.session_key),
            )


def _lately(served: Agent, turn: Turn, language: Language) -> int:
    """Returns how many of the latest messages are read: few if they ask an agent without a model nothing."""
    if served.asks is None:
        return 0
    text = own_words("\n".join(message.text for message in turn.said))
    languages = {language, spoken(turn.context.speaker.language, language)}
    # Where the words don't show their language, that of earlier ones decides.
    asks = told_by(text) is None or any(served.asks(text, code) for code in languages)
    return _LATELY if asks else _LATELY_UNASKED


def _language(turn: Turn, view: TurnMaterial) -> str | None:
    """Returns the person's own language, else the one they wrote last, in earlier conversations if need be."""
    if chosen := spoken(turn.context.speaker.language, ""):
        return chosen
    recalled = {item.passage.message.id: item.passage.message for item in view.recall.items if item.passage is not None}
    messages = [*(message for _, message in sorted(recalled.items())), *view.window, *turn.said]
    return spoken_by(message.text for message in reversed(messages) if message.author_id == turn.context.speaker.id)
