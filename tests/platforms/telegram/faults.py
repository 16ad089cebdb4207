"""Faults made on purpose in requests to Telegram, or in its own requests to a webhook."""

from __future__ import annotations

from dataclasses import dataclass

from tests.platforms import faults
from tests.platforms.telegram.client import Deed

_OF_WEBHOOKS = ("reset", "close", "delay", "kill")
#: What is no method of the Bot API: the chat model, files, and what Telegram itself asks of a webhook.
_ELSEWHERE = ("model", "extract", "download", "webhook")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault(faults.Fault):
    """See `Control.fault`."""

    do: Deed
    chat: int | None = None
    retry_after: int = 3

    def __post_init__(self) -> None:
        if self.do == "drip" and self.method != "download":
            raise ValueError("only a download comes in drips")
        if self.method == "webhook" and self.do not in _OF_WEBHOOKS:
            raise ValueError(f"to a webhook's delivery can only happen: {', '.join(_OF_WEBHOOKS)}")

    def matches(self, method: str, place: int | None, text: str) -> bool:
        """Without a method any request of the Bot API but getUpdates matches, and nothing else."""
        if self.method is None:
            right = method not in ("getUpdates", *_ELSEWHERE)
        else:
            right = method.lower() == self.method.lower()
        return right and self.chat in (None, place) and (self.text is None or self.text in text)
