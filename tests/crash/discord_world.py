"""A Discord with people in it, a bot that is killed over and over, and what is left of their talk in the end.

`python -m tests.crash.discord_world --kills 200` kills at every named point and at random under both timing models,
prints one JSON line and exits 1 when a promise is broken (the files of that world are then kept).

Invariants: those of world.py; the bot listens when the gateway has let it in. Nothing is told twice by the gateway: what
was said while no bot listened is found over REST or not at all, but for the very first words of a person to a bot that
dies of them, who writes again in the end. Each command asks for a word that nobody has said, so that its answer tells
which command it answers; the same goes for buttons, which carry such a word.
"""

from __future__ import annotations

import sys
from base64 import b85encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tests.crash.world import (
    COMMITS,
    JSON,
    MOMENTS,
    PLACEHOLDER,
    Chats,
    Deed,
    Place,
    Point,
    Rows,
    Tally,
    World,
    around,
    complain,
    killing,
    main,
)
from tests.platforms.discord.client import TOKEN, Control, running

#: Discord's ids have 15 digits at least.
_PEOPLE = range(100_000_000_000_000_001, 100_000_000_000_000_013)
_NEWCOMERS = range(200_000_000_000_000_001, 200_000_000_000_000_101)
_LETTERS = str.maketrans("0123456789", "bcdfghjklm")
#: The bot's answer where nothing is found.
_NOTHING = "I remember nothing that matches"


def _points() -> Iterator[Point]:
    for at in MOMENTS:
        yield Point(name=f"send {at}", method="send", at=at, text="Answer to")
        yield Point(name=f"history {at}", method="history", at=at)
        yield Point(name=f"placeholder {at}", method="send", at=at, text=PLACEHOLDER, deed="slow")
        # Then slow answers get time to be made: the lives up to the points that follow are short.
        yield Point(name=f"edit {at}", method="edit", at=at, text="Answer to", deed="slow", rest=True)
        yield Point(name=f"edit @original {at}", method="edit_original", at=at, deed="command", live=True)
        yield Point(name=f"callback of a press {at}", method="callback", at=at, deed="click", live=True)
        yield Point(name=f"answer to a press {at}", method="edit_original", at=at, deed="click", live=True)
        # A command that was taken and not acknowledged is answered in private.
        yield Point(name=f"callback {at}", method="callback", at=at, deed="command", live=True)
        if at == "before effect":
            yield Point(name=f"direct answer {at}", method="send", at=at, text=_NOTHING, deed="nothing")
            yield Point(name=f"direct answer {at} once more", method="open_dm", at=at, deed="nothing")
    yield from around([("receive, live", "quick", "insert into inbox")], live=True)
    yield from around([("receive a command", "command", "insert into inbox")], live=True)
    yield from around([("answer a command", "command", "insert into outbox")], live=True)
    yield from around([("first words", "first words", "insert into inbox")], live=True)
    yield from around([("keep a new place", "first words", "insert into channel_state")], live=True)
    yield from around(COMMITS)


POINTS = tuple(_points())


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A command or a press, and the word that its answer holds."""

    word: str
    interaction: int
    user: int
    channel: int
    pressed: bool = False


class DiscordWorld(World[Control]):
    """A dozen people: private chats, and two servers with a channel, another with a thread, and a forum with a post."""

    model_url = property(lambda self: self.platform.model_url)

    async def build(self) -> None:
        everybody = list(_PEOPLE)
        private = [Place(chat=await self.platform.dm(user), authors=[user]) for user in everybody]
        self._guilds: list[Place] = []
        self._forums: list[Place] = []
        servers: list[int] = []
        for n, name in enumerate(("Harbour", "Mill")):
            server, general = await self.platform.add_guild(name)
            assert general is not None
            servers.append(server)
            walks = await self.platform.add_channel("walks", guild=server)
            authors = everybody[6 * n : 6 * n + 6]
            thread = await self.platform.open_thread(walks, "Sunday", user=authors[0])
            forum = await self.platform.add_channel("questions", guild=server, kind="forum")
            post = await self.platform.forum_post(forum, "Where to?", "Anywhere.", user=authors[1])
            here = [
                Place(chat=chat, authors=authors, called=self.platform.mention) for chat in (general, walks, thread)
            ]
            self._guilds += [*here, replace(here[0], chat=post)]
            self._forums.append(replace(here[0], chat=forum))
        self.places = [*private, *self._guilds, *self._forums]
        self._asks: list[Ask] = []
        self._newcomers: list[Place] = []
        self._written_again = False
        await self._slow_down()
        bot = f"token: {TOKEN}, base_url: '{self.platform.api_url}', servers: {servers}"
        self.configure(f"discord:\n    - {{{bot}, allow: {[*everybody, *_NEWCOMERS]}}}")
        await self._begin(private)

    async def tell(self, text: str, place: Place, author: int) -> tuple[Place, int]:
        words = f"{place.called} {text}".strip()
        if place in self._forums:
            post = await self.platform.forum_post(place.chat, "Question", words, user=author)
            return replace(place, chat=post), post
        said = await self.platform.say(words, user=author, channel=place.chat)
        return place, said.message_id

    async def click(self, message_id: int, data: str, *, chat: int, user: int) -> None:
        await self.platform.press(message_id, data, user=user)

    async def listened(self) -> int:
        return int((await self.platform.state())["gateway"]["identifies"])

    async def listens(self, count: int) -> None:
        await self.platform.wait(identifies=count, connected=True)

    async def act(self) -> None:
        drawn = self.chance.random()
        if drawn < 0.05:
            await self._command(self.chance.choice([place for place in self.places if place not in self._forums]))
        elif drawn < 0.06:
            await self._press_answer()
        elif drawn < 0.07 and len(self._newcomers) < len(_NEWCOMERS):
            await self._first_words()
        else:
            await super().act()

    async def do(self, deed: Deed) -> None:
        match deed:
            case "command":
                await self._command(self.chance.choice(self._guilds))
            case "click":
                await self._press_answer()
            case "first words":
                await self._first_words()
            case _:
                await super().do(deed)

    async def write_again(self) -> None:
        self._written_again = True
        for place in self._newcomers:
            await self.say(place=place)

    def read(self, state: JSON) -> Chats:
        chats = Chats()
        for message in state["bot_messages"]:
            # Answers to commands are counted apart.
            hidden = message["deleted"] or message["loading"] or message["only_for"] is not None
            if hidden or message["content"].startswith(_NOTHING):
                continue
            buttons = [button for row in message["components"] for button in row["components"]]
            answers = (message.get("message_reference") or {}).get("message_id")
            chats.add(
                int(message["channel_id"]),
                None,
                int(message["id"]),
                message["content"],
                [button["custom_id"] for button in buttons],
                None if answers is None else int(answers),
            )
        return chats

    def missing(self, database: Rows) -> int:
        taken = {key for (key,) in database.execute("select update_key from inbox where update_key like 'm%'")}
        # Nothing tells of somebody's first words to a bot that died of them.
        unknown = () if self._written_again else self._newcomers
        return sum(f"m{told.message_id}" not in taken for told in self.told.values() if told.place not in unknown)

    def count_more(self, tally: Tally, state: JSON, database: Rows) -> Tally:
        taken = {key for (key,) in database.execute("select update_key from inbox where update_key like 'i%'")}
        lost, doubled, misplaced, unheard = [], [], [], 0
        for ask in self._asks:
            shown = _answers(state, ask)
            direct = str(_direct_channel(state, ask.user))
            right = [one for one in shown if one["only_for"] == ask.user or one["channel_id"] == direct]
            if len(right) < len(shown):
                misplaced.append(ask.word)
            if len(shown) > 1:
                doubled.append(ask.word)
            if f"i{ask.interaction}" not in taken:
                unheard += 1
            elif not shown:
                lost.append(ask.word)
        complain({"commands lost": lost, "commands doubled": doubled, "misplaced": misplaced})
        return replace(
            tally,
            commands=len(self._asks),
            lost=tally.lost + len(lost),
            doubled=tally.doubled + len(doubled),
            misplaced=len(misplaced),
            unheard=unheard,
        )

    async def _begin(self, private: Iterable[Place]) -> None:
        """The first session: what was said before it is not for the bot, nor does it know anybody's private chat."""
        await self.start()
        await self.listens(1)
        await self.platform.wait(method="put_commands", count=4, idle=0.3)
        for place in private:
            await self.say(place=place)
        await self._rested(1)
        await self._end()

    async def _first_words(self) -> None:
        """Somebody writes to the bot for the first time."""
        user = _NEWCOMERS[len(self._newcomers)]
        place = Place(chat=await self.platform.dm(user), authors=[user])
        self._newcomers.append(place)
        await self.say(place=place)

    async def _command(self, place: Place) -> None:
        word, user = self._word(), self.chance.choice(place.authors)
        options = {"action": "search", "rest": word}
        number = await self.platform.slash("memory", options, user=user, channel=place.chat)
        self._asks.append(Ask(word=word, interaction=number, user=user, channel=place.chat))

    def _word(self) -> str:
        """A word that nobody has said; in letters, for a number stands in things too."""
        return "quest" + f"{len(self._asks):05}".translate(_LETTERS)

    async def _press_answer(self) -> None:
        """Somebody turns a page of what a command has found, though it has none; without one they use a command."""
        state = await self.platform.state()
        for ask in reversed(self._asks):
            shown = _answers(state, ask)
            if shown and not ask.pressed and int(shown[0]["channel_id"]) == ask.channel:
                word = self._word()
                page = f"page:search:1:{b85encode(word.encode()).decode()}"
                number = await self.platform.press(int(shown[0]["id"]), page, user=ask.user, stale=True)
                self._asks.append(replace(ask, word=word, interaction=number, pressed=True))
                return
        await self._command(self.chance.choice(self._guilds))


def _answers(state: JSON, ask: Ask) -> list[JSON]:
    """The messages that hold, or held before a press, the answer to a command."""
    return [
        message
        for message in state["bot_messages"]
        if not message["deleted"] and any(ask.word in text for text in (message["content"], *message["edits"]))
    ]


def _direct_channel(state: JSON, user: int) -> int:
    return next((int(number) for number, one in state["channels"].items() if one["recipient"] == user), 0)


world = killing(DiscordWorld, running)


if __name__ == "__main__":
    sys.exit(main("tests.crash.discord_world", __doc__, POINTS, world))
