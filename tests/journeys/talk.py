"""An hour's talk: what people say, and what each answer holds. In four languages, and with changes of mind.

Invariant: an answer is expected only where the words leave no doubt.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from tests.kit.patience import until

#: What is said, and a pattern that fits the answer. Each part is a person's own and asks for nothing that another has
#: told. Nobody says more at once than the shipped limit lets through. The bot goes on in the language it was last spoken
#: to in.
TALK: Final = (
    (("Hi! My name is Ada and I live in Lisbon.", "Noted: your name is Ada; you live in Lisbon"),
     ("I'm allergic to walnuts.", "walnuts"), ("Where do I live?", "Lisbon"), ("what am i allergic to", "walnuts"),
     ("I moved to Braga", "Braga"), ("Where do I live now?", "Braga"), ("Where did I live before?", "Lisbon"),
     ("/new", r"\w"), ("where do i live", "Braga"), ("what am I allergic to?", "walnuts")),
    (("remind me in 2 hours to call Marta", "call Marta"), ("what are my reminders?", "call Marta"),
     ("/remind cancel 1", "call Marta"), ("/privacy", "What I learned"), ("/usage", r"\w"), ("/help", "/memory"),
     ("/help memory", "/memory")),
    (("My sister is called Marta Keller", "Marta"), ("who is marta", "sister"),
     ("/remember my locker is number 12", "Saved"), ("what is the number of my locker?", "12"),
     ("/memory", "What I remember"), ("/memory search locker", "12"), ("/profile", "Your profile")),
    (("I was born on 3 May 1988.", "1988"), ("When was I born?", "1988"), ("Mein Hund heißt Bruno.", "Bruno"),
     ("Wie heißt mein Hund?", "Bruno"), ("J'habite à Lisbonne ?", r"\w"),
     ("What is the capital of Iceland?", "don't know"), ("thanks!", "welcome"), ("what do you know about me?", "1988"),
     ("/why all", r"\w")),
    (("I work as a locksmith.", "locksmith"), ("The spare key is under the blue flowerpot.", r"\w"),
     ("what is my job?", "locksmith"), ("where is the spare key?", "blue flowerpot"),
     ("forget that I work as a locksmith", "Forget this"), ("yes", "Forgotten"),
     ("/frobnicate", "no command|There is no command"), ("我喜欢喝绿茶。", "绿茶"), ("我喜欢喝什么？", "绿茶")),
)  # fmt: skip

#: Who tells of somebody, and so has pages of all kinds.
LEAD: Final = 2


class Reader:
    """A person who reads a chat. `texts` returns all that the bot has written there."""

    def __init__(self, texts: Callable[[], Awaitable[list[str]]]) -> None:
        self._texts = texts
        self._seen = 0

    async def until(self, expected: str) -> str:
        """Returns what the bot has written since the last call, once that fits `expected`."""
        texts: list[str] = []

        async def fits() -> bool:
            nonlocal texts
            texts = await self._texts()
            return re.search(expected, "\n".join(texts[self._seen :])) is not None

        try:
            await until(fits)
        except AssertionError:
            raise AssertionError(f"{expected!r} was not answered, but {texts[self._seen :]}") from None
        self._seen, new = len(texts), texts[self._seen :]
        return "\n".join(new)


Ask = Callable[[str, str], Awaitable[str]]


async def held(ask: Ask) -> list[str]:
    """Holds the whole talk by `ask`, which says something and returns the answer that fits a pattern. Returns all answers."""
    return [await ask(words, expected) for part in TALK for words, expected in part]


async def held_by_many(asks: Sequence[Ask]) -> list[str]:
    """Holds the talk, each part by a person of its own, all at the same time. Returns all answers."""

    async def by(ask: Ask, part: Sequence[tuple[str, str]]) -> list[str]:
        return [await ask(words, expected) for words, expected in part]

    parts = await asyncio.gather(*(by(ask, part) for ask, part in zip(asks, TALK, strict=True)))
    return [answer for part in parts for answer in part]
