"""Plays a recorded conversation into memory, with the recording's own clock: `python -m bench.replay FILE`.

Invariants: a recording is checked as a whole before any of it is stored. A line is taken once, however often it is
replayed. During a replay, "now" is the time of the current line and never goes back. A silence in the recording counts
as a quiet gap for learning, without any actual waiting.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, TypeAlias

import click

from agents.budget import count_tokens
from bench.recording import BOT, BadRecording, Recorded, Recording, read
from channels.base import Capabilities, Channel, ChannelError, Host, Inbound, Outbound
from gateway import app
from gateway.cli.start import CONFIG, EX_DATAERR, EX_SOFTWARE, ending, fail, loaded, set_up_logs
from gateway.cli.start import progress as progress_bar
from gateway.commands import table
from gateway.config.loading import Config
from gateway.pipeline.policy import Rules
from gateway.pipeline.store import Roster
from memory.chat.identities import Where, Who
from memory.context import Context
from memory.service import Service
from memory.store.history import Utterance

#: The most lines stored before the next learning, so that a recording without any silence is read in pieces.
_STRETCH = 200


@dataclass(slots=True, kw_only=True)
class Tally:
    """The counts of a replay so far. `messages` are newly taken; `left_out` are skipped by this way of replaying."""

    messages: int = 0
    repeated: int = 0
    left_out: int = 0
    failures: int = 0
    memories: int = 0
    sessions: set[str] = field(default_factory=set)
    people: set[tuple[str, str]] = field(default_factory=set)

    def count(self, line: Recorded) -> None:
        self.messages += 1
        self.sessions.add(line.place.session_key)
        if line.role == "user":
            self.people.add((line.channel, line.author_id))


class RecordedTime:
    """The clock of a replay. It stands at the time of the current line and only moves forward."""

    def __init__(self, at: int) -> None:
        self.at = at

    def __call__(self) -> int:
        return self.at

    def reach(self, moment: int) -> None:
        self.at = max(self.at, moment)


class ReplayChannel(Channel):
    """The stand-in for a platform during a replay. Sent messages count as shown and are kept for `taken`."""

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
        """Returns the messages sent since the last call."""
        sent, self._sent = self._sent, []
        return sent


Progress: TypeAlias = Callable[[int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The parts that a replay works with. `quiet_ms` is the silence, in milliseconds, after which messages are read."""

    roster: Roster
    mask: Callable[[str], str]
    count_tokens: Callable[[str], int]
    quiet_ms: int


def setup_of(config: Config, parts: app.Opened) -> Setup:
    """Returns the setup of a replay. Each text is masked as in the pipeline."""
    quiet_ms = int(config.pace.quiet_seconds * 1000)
    return Setup(roster=parts.roster, mask=app.MASK, count_tokens=count_tokens, quiet_ms=quiet_ms)


def everybody(channels: Iterable[str]) -> dict[str, Rules]:
    """Returns rules that admit everyone on these channels, since a recording's people are in no configuration."""
    return {name: Rules(open_to_all=True) for name in channels}


async def record(setup: Setup, recording: Recording, clock: RecordedTime, progress: Progress) -> Tally:
    """Puts every line into history under its role and learns from it. Nobody is answered and no chat model is called.

    Lines of sessions in which no person ever speaks are left out, because they would belong to nobody.
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
    """Lets the agents answer every line of a person that is meant for them, one after the other.

    The recording's own answers are left out, because the agents give theirs. Raises `channels.base.NotTaken` if a line
    can't be stored; the lines before it stay, and a second replay continues from there.
    """
    tally = Tally()
    asked = [line for line in recording.lines if line.role == "user" and line.addressed]
    tally.left_out = len(recording.lines) - len(asked)
    talks = await _talks(setup, asked)
    before = await _known(talks)
    # Messages that an earlier run left unanswered come first. They are not the result of this recording's lines.
    for place in {line.place for line in asked}:
        await host.settled(place)
    for channel in channels.values():
        channel.taken()
    heard: dict[str, Recorded] = {}
    for line in asked:
        key = line.place.session_key
        for quiet in [one for one in heard.values() if line.time - one.time > setup.quiet_ms]:
            clock.reach(quiet.time + setup.quiet_ms)
            await _learn(talks[quiet.place.session_key])
            del heard[quiet.place.session_key]
        clock.reach(line.time)
        talk = talks[key][line.author_id]
        no_turn = table.parse(line.text) is not None or await talk.memory.questions.at(talk.where, talk.who) is not None
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
    """A person in a session, and the store that holds it."""

    memory: Service
    where: Where
    who: Who
    context: Context
    remembers: bool


#: The talks of all people, by session key and then by author, in the order of their first lines.
_Talks: TypeAlias = dict[str, dict[str, _Talk]]


async def _talks(setup: Setup, lines: Iterable[Recorded]) -> _Talks:
    talks: _Talks = {}
    for line in lines:
        persons = talks.setdefault(line.place.session_key, {}) if line.role == "user" else None
        if persons is not None and line.author_id not in persons:
            persons[line.author_id] = await _talk(setup, line)
    return talks


async def _talk(setup: Setup, line: Recorded) -> _Talk:
    name = setup.roster.name_for(line.inbound)
    memory = setup.roster.stores[name].memory
    where = Where(
        session_key=line.place.session_key,
        platform=line.channel,
        chat=line.chat,
        chat_kind=line.chat_kind,
        thread=line.thread,
        agent=name,
    )
    who = Who(platform=line.channel, user_id=line.author_id, name=setup.mask(line.author_name))
    remembers = setup.roster.agents[name].spec.memory.enabled
    return _Talk(
        memory=memory, where=where, who=who, context=await memory.identities.context(where, who), remembers=remembers
    )


async def _cut_off(setup: Setup) -> dict[str, int]:
    """Returns the inbox rows of lines that an earlier replay had taken but neither kept nor answered when it ended."""
    rows: dict[str, int] = {}
    for memory in [store.memory for store in setup.roster.each_store]:
        for letter in await memory.mailbox.unanswered():
            try:
                inbound = Inbound.from_json(letter.payload)
            except (ValueError, TypeError, KeyError):
                continue  # the next ordinary start sets it aside
            if inbound.bot_id == BOT and letter.turn_id is None:
                rows[inbound.update_key] = letter.id
    return rows


async def _record(setup: Setup, talk: _Talk, lines: Sequence[Recorded], tally: Tally, cut_off: dict[str, int]) -> None:
    """Stores the new ones among consecutive lines of one person and the bot."""
    inbox_ids: list[int] = []
    said: list[Utterance] = []
    for line in lines:
        inbound = replace(line.inbound, text=setup.mask(line.text), author_name=talk.who.name)
        inbox_id = cut_off.pop(inbound.update_key, None) or await talk.memory.mailbox.receive(
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
        command = table.parse(inbound.text) is not None
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
    """Reads the unread messages of a session for memories."""
    talk = next(iter(persons.values()))
    await talk.memory.learner.flush(talk.context.session.id, "quiet")


async def _answered(talk: _Talk, shown: Sequence[Outbound]) -> bool:
    """Returns whether the shown messages are a turn's answer and not a notice that something went wrong."""
    why = await talk.memory.browse.why(talk.context)
    return why is not None and why.error is None and why.turn_id in {outbound.turn for outbound in shown}


async def _known(talks: _Talks) -> set[str]:
    """Returns the ids of all memories that these people can see where they talk."""
    return {
        memory.short_id
        for persons in talks.values()
        for talk in persons.values()
        for memory in await talk.memory.browse.memories(talk.context, limit=1_000_000)
    }


async def _finish(tally: Tally, talks: _Talks, before: set[str]) -> None:
    """Counts the new memories and the messages that could not be read."""
    tally.memories = len(await _known(talks) - before)
    for persons in talks.values():
        talk = next(iter(persons.values()))
        reading = (await talk.memory.stats.status(talk.context)).reading
        tally.failures += reading.waiting + reading.parked


def _runs(lines: Iterable[Recorded], first: str) -> Iterator[tuple[str, list[Recorded]]]:
    """Cuts the lines where another person begins to speak.

    The bot's lines go with the person before them, or with `first` if there is none.
    """
    author, run = first, list[Recorded]()
    for line in lines:
        if line.role == "user" and line.author_id != author:
            if run:
                yield author, run
            author, run = line.author_id, []
        run.append(line)
    yield author, run


def _stretches(lines: Iterable[Recorded], quiet_ms: int) -> list[list[Recorded]]:
    """Returns the lines of each session, cut at its silences, in the order in which the stretches end."""
    open_: dict[str, list[Recorded]] = {}
    stretches: list[list[Recorded]] = []
    for line in lines:
        key = line.place.session_key
        stretch = open_.get(key)
        if stretch is None or line.time - stretch[-1].time > quiet_ms or len(stretch) >= _STRETCH:
            stretch = open_[key] = []
            stretches.append(stretch)
        stretch.append(line)
    return sorted(stretches, key=lambda stretch: stretch[-1].time)


@click.command()
@CONFIG
@click.argument("file", type=click.File("rb"))
@click.option("--record-only", is_flag=True, help="Store and learn, but don't answer or call a chat model.")
def main(config_path: Path | None, file: BinaryIO, record_only: bool) -> None:
    """Play a recorded conversation (JSON lines, see docs/replay.md) into memory, at the times it was held."""
    config = loaded(config_path)
    try:
        recording = read(file.read())
    except BadRecording as exc:
        fail(f"{exc}\nNothing from {file.name} was stored.", EX_DATAERR)
    if recording.unknown:
        click.echo(f"Ignoring unknown fields: {', '.join(recording.unknown)}.", err=True)
    with ending(stopped="Stopped. Run the same command to continue."):
        try:
            asyncio.run(_replay(config, recording, record_only))
        except ChannelError as exc:
            fail(f"{exc} Run the same command to continue.", EX_SOFTWARE)


async def _replay(config: Config, recording: Recording, record_only: bool) -> None:
    set_up_logs(config)
    began = time.monotonic()
    clock = RecordedTime(recording.lines[0].time)
    channels = {name: ReplayChannel(name) for name in recording.channels}
    async with app.opened(config, channels, now=clock) as parts:
        setup = setup_of(config, parts)
        with progress_bar(len(recording.lines), "Replaying", "messages") as advance:
            if record_only:
                tally = await record(setup, recording, clock, advance)
            else:
                admission = everybody(channels)
                async with app.answering(config, channels, parts, now=clock, admission=admission) as router:
                    tally = await answer(setup, recording, clock, advance, host=router, channels=channels)
    done = "recorded" if record_only else "answered"
    click.echo(
        f"{tally.messages} messages {done} ({tally.repeated} already there, {tally.left_out} left out), "
        f"{len(tally.sessions)} sessions, {len(tally.people)} people, {tally.memories} memories learned, "
        f"{tally.failures} failures, {time.monotonic() - began:.1f} seconds."
    )
    if tally.failures:
        sys.exit(EX_SOFTWARE)


if __name__ == "__main__":
    main()
