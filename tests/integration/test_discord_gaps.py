"""Everything said on Discord while nobody listened is answered, once and in its order: the whole product over gaps."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.kit.patience import until
from tests.kit.served import ADA, BEN, Clock, Served
from tests.platforms.discord import Control, reached, serving

pytestmark = pytest.mark.campaign

#: Direct chats by the names that places have here, with those who write there.
DIRECT = {"ada": ADA, "ben": BEN}
#: Where people go on whatever happens.
TALKING = ("general", "thread", "post", "ada")
MARK = re.compile(r"#(\w+)-(\d+)")


class Lake:
    """A server with the bot in it, and everything that is said to it in each of its places."""

    def __init__(self, discord: Control, clock: Clock, server: int, general: int) -> None:
        self.discord = discord
        self.clock = clock
        self.server = server
        self.general = general
        #: By place the marks of what was said to the bot, in order.
        self.asked: dict[str, list[str]] = {}
        self.places: dict[str, int] = {}
        self.messages: dict[str, int] = {}

    async def ask(self, name: str) -> str:
        """Has somebody say something to the bot at the place called `name`; returns its mark.

        In a channel two people take turns, four lines each, who speak nowhere else.
        """
        marks = self.asked.setdefault(name, [])
        mark = f"#{name}-{len(marks)}"
        if name in DIRECT:
            said = await self.discord.say(mark, user=DIRECT[name])
        else:
            text = f"{self.discord.mention} {mark}"
            said = await self.discord.say(text, user=self.speaker(name), channel=self.places[name])
        self.places[name] = said.channel
        self.messages[mark] = said.message_id
        marks.append(mark)
        return mark

    async def post(self, name: str, forum: int) -> None:
        """Somebody opens a post whose first words are for the bot."""
        text = f"{self.discord.mention} #{name}-0"
        self.places[name] = await self.discord.forum_post(forum, name, text, user=self.speaker(name))
        self.asked[name] = [f"#{name}-0"]

    def speaker(self, name: str) -> int:
        return 10_000 + 10 * len(name) + ord(name[0]) * 1_000 + len(self.asked.get(name, ())) // 4 % 2

    async def minutes(self, count: float) -> None:
        """Time passes, for Discord as for the product."""
        await self.discord.pass_time(count * 60)
        self.clock.shift += count * 60

    async def turns(self) -> list[str]:
        """Returns the questions to the model, in order."""
        return list((await self.discord.state())["model"]["asked"])

    async def answered(self) -> None:
        """Wait until nothing more is answered, and see that each was answered once, in its order, at its place.

        Messages that one person sent in one go are answered together: as one turn that holds all of them.
        """
        wanted = {mark for marks in self.asked.values() for mark in marks}

        async def all_are_answered() -> bool:
            turns = [marks for text in await self.turns() if (marks := marks_of(text))]
            texts = [text for place in self.places.values() for text in await self.discord.texts(place)]
            shown = {mark for text in texts for mark in marks_of(text)}
            return wanted <= {mark for marks in turns for mark in marks} and {marks[-1] for marks in turns} <= shown

        await until(all_are_answered)
        await self.discord.wait(idle=0.7)
        state = await self.discord.state()
        assert state["model"]["repaid"] == {}
        turns: dict[str, list[list[str]]] = {}
        for text in state["model"]["asked"]:
            if found := marks_of(text):
                turns.setdefault(name_of(found[0]), []).append(found)
        assert {name: [mark for turn in found for mark in turn] for name, found in turns.items()} == self.asked
        for name, held in turns.items():
            shown = [mark for text in await self.discord.texts(self.places[name]) for mark in marks_of(text)]
            assert shown == [turn[-1] for turn in held], name
        assert state["violations"] == []


def marks_of(text: str) -> list[str]:
    return [found[0] for found in MARK.finditer(text)]


def name_of(mark: str) -> str:
    return mark[1:].partition("-")[0]


@pytest.fixture
async def discord() -> AsyncIterator[Control]:
    async with serving(model_ms=0) as control:
        with reached(control):
            yield control


@pytest.fixture
async def lake(discord: Control) -> Lake:
    server, general = await discord.add_guild("Lake")
    assert general is not None
    return Lake(discord, Clock(), server, general)


@pytest.fixture
def served(lake: Lake, tmp_path: Path) -> Served:
    discord = lake.discord
    return Served(tmp_path, discord=discord, server=lake.server, now=lake.clock, model_url=discord.model_url)


async def before(lake: Lake) -> int:
    """Opens the places and has something said and answered in each before any gap; returns the id of a forum."""
    await lake.discord.wait(connected=True)
    forum = await lake.discord.add_channel("forum", guild=lake.server, kind="forum")
    lake.places["general"] = lake.general
    lake.places["second"] = await lake.discord.add_channel("second", guild=lake.server)
    lake.places["thread"] = await lake.discord.open_thread(lake.general, "Thread", user=ADA)
    await lake.post("post", forum)
    for name in ("general", "second", "thread", "post", *DIRECT):
        await lake.ask(name)
    await lake.answered()
    return forum


async def gap(lake: Lake, forum: int, *, rounds: int) -> None:
    """Ten minutes in which people talk everywhere: to the bot, to each other, and change what they said."""
    discord = lake.discord
    lake.places["fresh"] = await discord.open_thread(lake.general, "Fresh", user=BEN)
    await lake.post("idea", forum)
    for number in range(rounds):
        for _ in range(4):
            await lake.ask("general")
            await discord.say(f"just talk {number}", user=BEN, channel=lake.general)
        for name in ("second", "thread", "post", "fresh", "idea", *DIRECT):
            await lake.ask(name)
        if number % 5 == 0:
            # A question is put in other words, and one is taken back.
            mark = lake.asked["second"][-1]
            await discord.edit(lake.messages[mark], f"{discord.mention} {mark} in other words")
            gone = await discord.say(f"{discord.mention} #nothing-0", user=ADA, channel=lake.general)
            await discord.delete(gone.message_id)
        await lake.minutes(10 / rounds)


async def in_other_words(lake: Lake) -> int:
    """How many changed questions were answered as they were in the end."""
    return sum(text.count("in other words") for text in await lake.turns())


async def test_a_gap_after_which_the_session_is_over_is_caught_up(lake: Lake, served: Served) -> None:
    """More than three hundred messages of ten minutes, more than a page of them in one channel: each is answered."""
    async with served.running():
        forum = await before(lake)
        already = sum(map(len, lake.asked.values()))
        async with lake.discord.offline(resumable=True):
            await gap(lake, forum, rounds=30)
        await lake.answered()
        state = await lake.discord.state()
        assert state["gateway"]["invalid"] >= 1, "the session was refused"
        assert await in_other_words(lake) == 6
    assert served.code == 0
    assert sum(map(len, lake.asked.values())) - already >= 300 and len(lake.asked["general"]) > 100


async def test_what_was_said_while_the_process_was_stopped_is_answered_at_its_start(lake: Lake, served: Served) -> None:
    """An update of the machine takes ten minutes too; what it had answered before is not answered again."""
    async with served.running():
        forum = await before(lake)
    await gap(lake, forum, rounds=6)
    async with served.running():
        await lake.answered()
        assert await in_other_words(lake) == 2
    # A start right after the last answer reads the last seconds once more: the inbox knows them.
    pages = len(await lake.discord.requests("history"))
    async with served.running():
        await lake.discord.wait(method="history", count=pages + 1)
        await lake.answered()


async def test_a_session_that_goes_on_tells_all_of_a_gap_itself(lake: Lake, served: Served) -> None:
    await lake.discord.gateway(resume_seconds=3_600)
    async with served.running():
        forum = await before(lake)
        pages = len(await lake.discord.requests("history"))
        async with lake.discord.offline(resumable=True):
            await gap(lake, forum, rounds=6)
        await lake.answered()
        state = await lake.discord.state()
        assert (state["gateway"]["resumes"], state["gateway"]["identifies"]) == (1, 1)
        assert len(await lake.discord.requests("history")) == pages


async def test_a_new_session_in_the_middle_of_talk_loses_and_doubles_nothing(lake: Lake, served: Served) -> None:
    """A message that comes in while history is read back is told twice, in two orders."""
    async with served.running():
        await before(lake)
        await lake.discord.fault("delay", method="history", seconds=0.3, times=0)
        over = asyncio.Event()
        talking = asyncio.create_task(talk(lake, over))
        await until(lambda: all(len(lake.asked[name]) > 1 for name in TALKING))
        await lake.discord.drop_connection(resumable=False)
        # A new session after the first one begins five seconds later: that is the library's own pace.
        await lake.discord.wait(identifies=2)
        reads = len(await lake.discord.requests("history"))
        await lake.discord.wait(method="history", count=reads + 1)
        over.set()
        await talking
        await lake.discord.heal()
        await lake.answered()


async def talk(lake: Lake, over: asyncio.Event) -> None:
    """People go on, whatever happens."""
    while not over.is_set():
        for name in TALKING:
            await lake.ask(name)
        await asyncio.sleep(0.1)


async def test_one_person_in_two_places_is_heard_in_both_after_a_gap(lake: Lake, tmp_path: Path) -> None:
    """Messages from minutes apart do not count as too fast though their places are read back beside each other."""
    served = Served(tmp_path, discord=lake.discord, server=lake.server, now=lake.clock, limits="{burst_seconds: 0}")
    discord = lake.discord
    async with served.running():
        for channel in (None, lake.general):
            said = await discord.say(f"{discord.mention} hello", user=ADA, channel=channel)
            await discord.wait(bot_messages=1, channel=said.channel)
    direct = await discord.dm(ADA)
    # In the channel first: it is read back while nothing of the direct chat is.
    await discord.fault("delay", method="history", place=direct, seconds=1)
    for number in range(5):
        await discord.say(f"{discord.mention} here {number}", user=ADA, channel=direct)
        await lake.minutes(1)
    for number in range(5):
        await discord.say(f"{discord.mention} there {number}", user=ADA, channel=lake.general)
        await lake.minutes(1)
    async with served.running():
        for place in (direct, lake.general):
            await discord.wait(bot_messages=2, channel=place)
        await discord.wait(idle=1.5)
    said_too_fast = [
        text for place in (direct, lake.general) for text in await discord.texts(place) if "faster" in text
    ]
    assert said_too_fast == []
