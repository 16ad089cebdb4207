"""An hour's talk: what a person says, and what each answer holds. In four languages, and with changes of mind.

Invariant: an answer is expected only where the words leave no doubt.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Final

from tests.kit.patience import until

#: What is said, and a pattern that fits the answer.
TALK: Final = (
    ("Hi! My name is Ada and I live in Lisbon.", "Noted: your name is Ada; you live in Lisbon"),
    ("I'm allergic to walnuts.", "walnuts"),
    ("My sister is called Marta Keller", "Marta"),
    ("I was born on 3 May 1988.", "1988"),
    ("I work as a locksmith.", "locksmith"),
    ("The spare key is under the blue flowerpot.", r"\w"),
    ("Where do I live?", "Lisbon"),
    ("what am i allergic to", "walnuts"),
    ("who is marta", "sister"),
    ("what is my job?", "locksmith"),
    ("where is the spare key?", "blue flowerpot"),
    ("When was I born?", "1988"),
    ("我喜欢喝绿茶。", "绿茶"),
    ("我喜欢喝什么？", "绿茶"),
    ("Mein Hund heißt Bruno.", "Bruno"),
    ("Wie heißt mein Hund?", "Bruno"),
    ("J'habite à Lisbonne ?", r"\w"),
    ("What is the capital of Iceland?", "don't know"),
    ("thanks!", "welcome"),
    ("I moved to Braga", "Braga"),
    ("Where do I live now?", "Braga"),
    ("Where did I live before?", "Lisbon"),
    ("remind me in 2 hours to call Marta", "call Marta"),
    ("what are my reminders?", "call Marta"),
    ("/remind cancel 1", "call Marta"),
    ("/remember my locker is number 12", "Saved"),
    ("what is the number of my locker?", "12"),
    ("/memory", "What I remember"),
    ("/memory search walnuts", "walnuts"),
    ("/profile", "Your profile"),
    ("/why all", r"\w"),
    ("what do you know about me?", "walnuts"),
    ("forget that I work as a locksmith", "Forget this"),
    ("yes", "Forgotten"),
    ("/privacy", "What I learned"),
    ("/usage", r"\w"),
    ("/help", "/memory"),
    ("/help memory", "/memory"),
    ("/frobnicate", "no command|There is no command"),
    ("/new", r"\w"),
    ("where do i live", "Braga"),
    ("what am I allergic to?", "walnuts"),
)


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


async def held(ask: Callable[[str, str], Awaitable[str]]) -> list[str]:
    """Holds the talk by `ask`, which says something and returns the answer that fits a pattern. Returns all answers."""
    return [await ask(words, expected) for words, expected in TALK]
