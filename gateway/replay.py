"""Plays a recorded conversation into memory, with the recording's own clock.

Invariants: a recording is checked as a whole before anything of it is stored; a line is taken once, however often it
is replayed; while it runs, "now" is the time of the line in hand and never goes back; a silence in the recording is a
quiet moment for learning, without anybody waiting for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from channels.base import Capabilities, Channel, Host, Inbound, Outbound
from gateway import commands
from gateway.recording import BOT, Line, Recording
from gateway.store import Store
from gateway.turn import Agent
from memory.service import Context, Service, Utterance, Where, Who

#: The most lines stored before learning gets its turn, so that a recording without any silence is read in pieces.
_STRETCH = 200


@dataclass(slots=True, kw_only=True)
class Tally:
    """What a replay did so far. `messages` are those newly taken, `left_out` those that this way of replaying skips."""

    messages: int = 0
    repeated: int = 0
    left_out: int = 0
    failures: int = 0
    memories: int = 0
    sessions: set[str] = field(default_factory=set)
    people: set[tuple[str, str]] = field(default_factory=set)

    def count(self, line: Line) -> None:
        self.messages += 1
        self.sessions.add(line.place.session_key)
        if line.role == "user":
            self.people.add((line.channel, line.author_id))


class RecordedTime:
    """The clock of a replay: stands at the line in hand and only moves forward."""

    def __init__(self, at: int) -> None:
        self.at = at

    def __call__(self) -> int:
        return self.at

    def reach(self, moment: int) -> None:
        self.at = max(self.at, moment)


class ReplayChannel(Channel):
    """The place of a platform during a replay: what is sent there is taken as shown and kept for `taken`."""

    capabilities = Capabilities(burst_seconds=0)

    def __init__(self, name: str) -> None:
        self._name = name
        self._sent: list[Outbound] = []

    @property
    def id(self) -> str:
        return self._name

    @property
    def platform(self) -> str:
        return self._name

    async def send(self, outbound: Outbound) -> str:
        self._sent.append(outbound)
        return f"replayed-{outbound.id}"

    def taken(self) -> list[Outbound]:
        """What was sent since the last call."""
        sent, self._sent = self._sent, []
        return sent


Progress: TypeAlias = Callable[[int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a replay works with. `clean` masks a text; `quiet_ms` is the silence after which messages are read."""

    stores: Mapping[str, Store]
    agents: Mapping[str, Agent]
    route: Callable[[Inbound], str]
    clean: Callable[[str], str]
    count_tokens: Callable[[str], int]
    quiet_ms: int


async def record(setup: Setup, recording: Recording, clock: RecordedTime, progress: Progress) -> Tally:
    """Put every line into history under its role and learn from it. Nobody is answered and no chat model is called.

    Left out are lines of sessions in which no person ever speaks: they would be nobody's.
    """
    tally = Tally()
    talks = await _talks(setup, recording.lines)
    before = await _known(talks)
    cut_off = await _cut_off(setup)
    stretches = _stretches([line for line in recording.lines if line.place.session_key in talks], setup.quiet_ms)
    tally.left_out = len(recording.lines) - sum(map(len, stretches))
    progress(tally.left_out)
    for stretch in stretches:
        persons = talks[stretch[0].place.session_key]
        clock.reach(stretch[0].time)
        for author, run in _runs(stretch, next(iter(persons))):
            await _record(setup, persons[author], run, tally, cut_off)
        clock.reach(stretch[-1].time + setup.quiet_ms)
        await _learn(persons)
        progress(len(stretch))
    await _finish(tally, talks, before)
    return tally


async def answer(
    setup: Setup,
    recording: Recording,
    clock: RecordedTime,
    progress: Progress,
    *,
    host: Host,
    channels: Mapping[str, ReplayChannel],
) -> Tally:
    """Let the agents answer every line of a person that is meant for them, one after the other.

    The recording's own answers are left out: the agents give theirs. Raises `channels.base.NotTaken` when a line
    can't be stored; those before it stay, and a second replay goes on from there.
    """
    tally = Tally()
    asked = [line for line in recording.lines if line.role == "user" and line.addressed]
    tally.left_out = len(recording.lines) - len(asked)
    talks = await _talks(setup, asked)
    before = await _known(talks)
    # What an earlier run left unanswered comes first and is nothing this recording's lines brought about.
    for place in {line.place for line in asked}:
        await host.settled(place)
    for channel in channels.values():
        channel.taken()
    heard: dict[str, Line] = {}
    for line in asked:
        key = line.place.session_key
        for quiet in [one for one in heard.values() if line.time - one.time > setup.quiet_ms]:
            clock.reach(quiet.time + setup.quiet_ms)
            await _learn(talks[quiet.place.session_key])
            del heard[quiet.place.session_key]
        clock.reach(line.time)
        talk = talks[key][line.author_id]
        no_turn = commands.parse(line.text) is not None or await talk.memory.question(talk.where, talk.who) is not None
        await host.on_inbound(line.inbound)
        await host.settled(line.place)
        shown = channels[line.channel].taken()
        if not shown:
            tally.repeated += 1
        else:
            tally.count(line)
            tally.failures += not (await _answered(talk, shown) or no_turn)
            heard[key] = line
        progress(1)
    for line in heard.values():
        clock.reach(line.time + setup.quiet_ms)
        await _learn(talks[line.place.session_key])
    await _finish(tally, talks, before)
    progress(tally.left_out)
    return tally


@dataclass(frozen=True, slots=True, kw_only=True)
class _Talk:
    """One person in one session, and the store that holds it."""

    memory: Service
    where: Where
    who: Who
    context: Context
    remembers: bool


#: Everybody's talk, by session key and then by author, in the order of their first lines.
_Talks: TypeAlias = dict[str, dict[str, _Talk]]


async def _talks(setup: Setup, lines: Iterable[Line]) -> _Talks:
    talks: _Talks = {}
    for line in lines:
        persons = talks.setdefault(line.place.session_key, {}) if line.role == "user" else None
        if persons is not None and line.author_id not in persons:
            persons[line.author_id] = await _talk(setup, line)
    return talks


async def _talk(setup: Setup, line: Line) -> _Talk:
    name = setup.route(line.inbound)
    memory = setup.stores[name].memory
    where = Where(
        session_key=line.place.session_key,
        platform=line.channel,
        chat=line.chat,
        chat_kind=line.chat_kind,
        thread=line.thread,
        agent=name,
    )
    who = Who(platform=line.channel, user_id=line.author_id, name=setup.clean(line.author_name))
    remembers = setup.agents[name].spec.memory.enabled
    return _Talk(memory=memory, where=where, who=who, context=await memory.context(where, who), remembers=remembers)


async def _cut_off(setup: Setup) -> dict[str, int]:
    """The inbox rows of lines that an earlier replay had taken when it ended, and neither kept nor answered."""
    rows: dict[str, int] = {}
    for memory in {id(store): store.memory for store in setup.stores.values()}.values():
        for letter in await memory.mail.unanswered():
            try:
                inbound = Inbound.from_json(letter.payload)
            except (ValueError, TypeError, KeyError):
                continue  # the next ordinary start sets it aside
            if inbound.bot_id == BOT and letter.turn_id is None:
                rows[inbound.update_key] = letter.id
    return rows


async def _record(setup: Setup, talk: _Talk, lines: Sequence[Line], tally: Tally, cut_off: dict[str, int]) -> None:
    """Store lines that one person and the bot said in a row, those that are new."""
    inbox_ids: list[int] = []
    said: list[Utterance] = []
    for line in lines:
        inbound = replace(line.inbound, text=setup.clean(line.text), author_name=talk.who.name)
        inbox_id = cut_off.pop(inbound.update_key, None) or await talk.memory.mail.receive(
            platform=inbound.platform,
            bot_id=inbound.bot_id,
            update_key=inbound.update_key,
            session_key=talk.where.session_key,
            payload=inbound.to_json(),
        )
        if inbox_id is None:
            tally.repeated += 1
            continue
        tally.count(line)
        inbox_ids.append(inbox_id)
        command = commands.parse(inbound.text) is not None
        said.append(
            Utterance(
                role=line.role,
                text=inbound.text,
                tokens=setup.count_tokens(inbound.text),
                said_at=line.time,
                learn=talk.remembers and line.role == "user" and not command,
                recall=talk.remembers and not command,
                platform_ref=line.id,
                reply_to=line.reply_to,
            )
        )
    if said:
        await talk.memory.turns.record(talk.where, talk.who, said, inbox_ids=inbox_ids)


async def _learn(persons: Mapping[str, _Talk]) -> None:
    """Read what a session left unread."""
    talk = next(iter(persons.values()))
    await talk.memory.flush(talk.context, "quiet")


async def _answered(talk: _Talk, shown: Sequence[Outbound]) -> bool:
    """Whether a turn brought what was shown, and not a notice that something went wrong."""
    why = await talk.memory.why(talk.context)
    return why is not None and why.error is None and why.turn_id in {outbound.turn for outbound in shown}


async def _known(talks: _Talks) -> set[str]:
    """The ids of all memories these people can see where they talk."""
    return {
        memory.short_id
        for persons in talks.values()
        for talk in persons.values()
        for memory in await talk.memory.memories(talk.context, limit=1_000_000)
    }


async def _finish(tally: Tally, talks: _Talks, before: set[str]) -> None:
    """Count what was learned, and what could not be read."""
    tally.memories = len(await _known(talks) - before)
    for persons in talks.values():
        talk = next(iter(persons.values()))
        reading = (await talk.memory.figures.status(talk.context)).reading
        tally.failures += reading.waiting + reading.parked


def _runs(lines: Iterable[Line], first: str) -> Iterator[tuple[str, list[Line]]]:
    """Cut where another person begins to speak; what the bot says goes with the person before, else with `first`."""
    author, run = first, list[Line]()
    for line in lines:
        if line.role == "user" and line.author_id != author:
            if run:
                yield author, run
            author, run = line.author_id, []
        run.append(line)
    yield author, run


def _stretches(lines: Iterable[Line], quiet_ms: int) -> list[list[Line]]:
    """The lines of each session, cut at its silences, in the order in which they end."""
    open_: dict[str, list[Line]] = {}
    stretches: list[list[Line]] = []
    for line in lines:
        key = line.place.session_key
        stretch = open_.get(key)
        if stretch is None or line.time - stretch[-1].time > quiet_ms or len(stretch) >= _STRETCH:
            stretch = open_[key] = []
            stretches.append(stretch)
        stretch.append(line)
    return sorted(stretches, key=lambda stretch: stretch[-1].time)
