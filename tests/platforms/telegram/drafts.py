"""Texts that are shown while they grow and are no messages: what a private chat shows, and when it vanishes.

Invariants: a chat's thread shows one draft at a time; it goes when the bot's message arrives there, when another takes
its place, or after 30 seconds (Bot API, sendMessageDraft).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tests.platforms.telegram.updates import JSON

_SHOWN_SECONDS = 30


@dataclass(slots=True)
class Draft:
    """One state of a draft, as it came. `gone` says what took its place on the screen."""

    chat: int
    thread: int | None
    draft_id: int
    text: str
    entities: list[JSON]
    at: float
    gone: Literal["", "message", "draft"] = ""


class Drafts:
    """All drafts a bot showed, in order. `now` is in seconds. With `allowed` False no bot may."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.allowed = True
        self.seen: list[Draft] = []
        self._now = now

    def show(self, chat: int, thread: int | None, draft_id: int, text: str, entities: list[JSON]) -> None:
        self._take_away(chat, thread, "draft")
        self.seen.append(Draft(chat, thread, draft_id, text, entities, self._now()))

    def message_came(self, chat: int, thread: int | None) -> None:
        self._take_away(chat, thread, "message")

    def standing(self) -> list[Draft]:
        """Returns the drafts that can be read now."""
        return [one for one in self.seen if not one.gone and self._now() - one.at < _SHOWN_SECONDS]

    def _take_away(self, chat: int, thread: int | None, by: Literal["message", "draft"]) -> None:
        for one in self.seen:
            if (one.chat, one.thread) == (chat, thread) and not one.gone:
                one.gone = by
