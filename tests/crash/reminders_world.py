"""People whose reminders come every second, a bot that is killed over and over, and which of them came in the end.

`python -m tests.crash.reminders_world --kills 200` kills at every named point and at random under both timing models,
prints one JSON line and exits 1 when a reminder was lost or came twice (the files of that world are then kept).

Invariants: those of world.py; a reminder whose time is over before the bot has read it is refused, and must not come.
What may have been shown when the bot died is offered: the person asks for it only where nothing stands.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from tests.crash.telegram_world import BOT, TelegramWorld
from tests.crash.world import MOMENTS, Deed, Place, Point, Tally, Told, around, complain, killing, main
from tests.platforms.telegram.client import running

_PEOPLE = range(5_001, 5_021)
#: Seconds from the request to the reminder: some come while the bot starts, which takes longer on a busy machine.
_AHEAD = (1.0, 20.0)
_THING = re.compile(r"thing\d{5}")
_COMMITS: Sequence[tuple[str, Deed, str]] = (
    ("remind", "quick", "insert into reminders"),
    ("move on", "quick", "update reminders set due_at"),
    ("take", "quick", "set state = 'sending'"),
    ("sent", "quick", "set state = 'sent'"),
)


def _points() -> Iterator[Point]:
    for at in MOMENTS:
        yield Point(name=f"sendMessage {at}", method="sendMessage", at=at, text="⏰")
    yield from around(_COMMITS)


POINTS: Sequence[Point] = tuple(_points())


class RemindersWorld(TelegramWorld):
    """Twenty people in private, each with many reminders."""

    async def build(self) -> None:
        self.places = [Place(chat=person, authors=[person]) for person in _PEOPLE]
        self.configure(f"telegram:\n    - {{token: '{BOT}', base_url: '{self.platform.url}', allow: {list(_PEOPLE)}}}")

    async def say(self, *, slow: bool = False, place: Place | None = None) -> str:
        """Somebody asks for a reminder in some seconds; the thing that it is about."""
        place = place or self.chance.choice(self.places)
        thing = f"thing{len(self.told):05}"
        self.told[thing] = Told(thing=thing, place=place, message_id=0)
        at = datetime.now(UTC) + timedelta(seconds=self.chance.uniform(*_AHEAD))
        await self.tell(f"/remind {at.isoformat(timespec='seconds')} {thing}", place, place.authors[0])
        return thing

    async def press(self, *, most: int, old: bool = False) -> int:
        """People press so many of the buttons "show again" whose reminder stands nowhere; returns how many."""
        state = await self.platform.state()
        chats, (said, _, came) = self.read(state), await self._stands()
        pressed = 0
        for chat, message_id, data, _ in chats.offers:
            with self._autopsy() as database:
                found = database.execute(
                    "select text from outbox where id = ? and state = 'unknown'", (data.rpartition(":")[2],)
                ).fetchone()
            thing = _THING.search(found[0]) if found is not None else None
            is_shown = thing is not None and (came if found[0].startswith("⏰") else said)[thing[0]]
            if pressed == most or thing is None or is_shown:
                continue
            await self.click(message_id, data, chat=chat, user=chat)
            pressed += 1
        return pressed

    def _left(self) -> dict[str, int]:
        with self._autopsy() as database:
            (due,) = database.execute("select count(*) from reminders where due_at is not null").fetchone()
        return {**super()._left(), "due": due}

    async def _stands(self) -> tuple[Counter[str], Counter[str], Counter[str]]:
        """How often each thing stands in the chats: said back, refused, and come."""
        said, refused, came = Counter[str](), Counter[str](), Counter[str]()
        for known in (await self.platform.state())["chats"].values():
            for message in known["messages"]:
                text = str(message.get("text", ""))
                if message["by_bot"] and not message["deleted"] and (thing := _THING.search(text)) is not None:
                    where = came if text.startswith("⏰") else said if text.startswith("Reminder") else refused
                    where[thing[0]] += 1
        return said, refused, came

    async def _count(self) -> Tally:
        said, refused, came = await self._stands()
        lost = [thing for thing in self.told if not came[thing] and not refused[thing]]
        doubled = [thing for thing, many in came.items() if many > 1 or refused[thing]]
        unsaid = [thing for thing in self.told if not said[thing] and not refused[thing]]
        twice = [thing for thing, many in said.items() if many > 1]
        complain({"lost": lost, "doubled": doubled, "not said back": unsaid, "said back twice": twice})
        with self._autopsy() as database:
            integrity = self._integrity(database)
        return Tally(
            messages=len(self.told),
            kills=self.kills,
            lost=len({*lost, *unsaid}),
            doubled=len({*doubled, *twice}),
            unheard=len(refused),
            integrity=integrity,
        )


world = killing(RemindersWorld, running, token=BOT)


if __name__ == "__main__":
    sys.exit(main("tests.crash.reminders_world", __doc__, POINTS, world))
