"""A Telegram with people in it, a bot that is killed over and over, and what is left of their talk in the end.

`python -m tests.crash.telegram_world --kills 200` kills at every named point and at random under both timing models,
prints one JSON line and exits 1 when a promise is broken (the files of that world are then kept).

Invariants: those of world.py; the bot listens when it polls.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from tests.crash.world import (
    COMMITS,
    JSON,
    MOMENTS,
    PLACEHOLDER,
    Chats,
    Deed,
    Place,
    Point,
    World,
    around,
    killing,
    main,
)
from tests.platforms.telegram.client import Control, running

BOT = "123456789:" + "Aa0_-" * 7
_PEOPLE = range(5_001, 5_041)
_PLAIN_GROUP, _FORUM, _OTHER_FORUM = -5_001, -1_001_000_000_001, -1_001_000_000_002
_CALLED = "@remora_test_bot"


def _points() -> Iterator[Point]:
    for at in MOMENTS:
        yield Point(name=f"sendMessage {at}", method="sendMessage", at=at, text="Answer to")
    for at in MOMENTS:
        yield Point(name=f"getUpdates {at}", method="getUpdates", at=at)
        yield Point(name=f"placeholder {at}", method="sendMessage", at=at, text=PLACEHOLDER, deed="slow")
        yield Point(name=f"editMessageText {at}", method="editMessageText", at=at, text="Answer to", deed="slow")
        yield Point(name=f"answerCallbackQuery {at}", method="answerCallbackQuery", at=at, deed="press")
        yield Point(name=f"model {at}", method="model", at=at)
        yield Point(name=f"extract {at}", method="extract", at=at, rest=True)
    *asked, extracting, extracted = COMMITS
    yield from around(asked)
    # The row in doubt may be one that is repeated without asking. An answer that was being sent is always offered.
    yield Point(name="sendMessage before an offer", method="sendMessage", at="before effect", text="Answer to")
    yield from around((*_OFFERS, extracting, extracted))


#: The commits of an offer: an answer that was taken and not sent is in doubt, so it is offered.
_OFFERS: Sequence[tuple[str, Deed, str]] = (
    ("offer", "quick", "offered = 1 where"),
    ("show again", "press", "set state = 'pending', offered = 0"),
)
POINTS: Sequence[Point] = tuple(_points())


class TelegramWorld(World[Control]):
    """Forty people: private chats, a group, and two forums with topics."""

    @property
    def model_url(self) -> str:
        return self.platform.model_url

    async def build(self) -> None:
        everybody = list(_PEOPLE)
        self.places = [Place(chat=person, authors=[person]) for person in everybody]
        await self.platform.group(_PLAIN_GROUP, kind="group", title="Walkers")
        self.places.append(Place(chat=_PLAIN_GROUP, authors=everybody[:5], called=_CALLED))
        for n, forum in enumerate((_FORUM, _OTHER_FORUM)):
            await self.platform.group(forum, title=f"Forum {n}", forum=True)
            authors = everybody[5 + 5 * n : 10 + 5 * n]
            topics = [await self.platform.topic(forum, f"Topic {t}") for t in range(2)]
            self.places += [
                Place(chat=forum, thread=thread, authors=authors, called=_CALLED) for thread in (None, *topics)
            ]
        await self._slow_down()
        groups = f"groups: [{_PLAIN_GROUP}, {_FORUM}, {_OTHER_FORUM}]"
        self.configure(
            f"telegram:\n    - {{token: '{BOT}', base_url: '{self.platform.url}', allow: {everybody}, {groups}}}"
        )

    async def tell(self, text: str, place: Place, author: int) -> tuple[Place, int]:
        words = f"{place.called} {text}".strip()
        said = await self.platform.say(words, user=author, chat=place.chat, thread=place.thread)
        return place, said.message_id

    async def click(self, message_id: int, data: str, *, chat: int, user: int) -> None:
        await self.platform.press(message_id, data, chat=chat, user=user)

    async def listened(self) -> int:
        return int((await self.platform.state())["requests"].get("getUpdates", 0))

    async def listens(self, count: int) -> None:
        await self.platform.wait(method="getUpdates", count=count)

    def read(self, state: JSON) -> Chats:
        chats = Chats()
        for chat, known in state["chats"].items():
            for message in known["messages"]:
                if not message["by_bot"] or message["deleted"]:
                    continue
                rows = message.get("reply_markup", {}).get("inline_keyboard", [])
                data = [button["callback_data"] for row in rows for button in row]
                thread = message.get("message_thread_id") if message.get("is_topic_message") else None
                answers: dict[str, Any] = message.get("reply_to_message") or {}
                text = str(message.get("text", ""))
                chats.add(int(chat), thread, message["message_id"], text, data, answers.get("message_id"))
        return chats


world = killing(TelegramWorld, running, token=BOT)


if __name__ == "__main__":
    sys.exit(main("tests.crash.telegram_world", __doc__, POINTS, world))
