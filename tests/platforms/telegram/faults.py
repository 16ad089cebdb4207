"""Faults made on purpose in requests to Telegram, or in its own requests to a webhook."""

from __future__ import annotations

from dataclasses import dataclass

from tests.platforms import faults
from tests.platforms.telegram.client import Deed

_OF_WEBHOOKS = ("reset", "close", "delay", "kill")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault(faults.Fault):
    """A delivery ("webhook") can be `reset` before its effect (nothing comes) or after it (the answer is lost, and it comes
    again); with `kill` before its effect the bot dies `seconds` into handling it.
    """

    #: The Bot API's polls, and what is no method of it: the chat model, files, what Telegram itself asks of a webhook.
    apart = frozenset({"getUpdates", "model", "extract", "download", "webhook"})

    do: Deed
    retry_after: int = 3

    def __post_init__(self) -> None:
        if self.do == "drip" and self.method != "download":
            raise ValueError("only a download comes in drips")
        if self.method == "webhook" and self.do not in _OF_WEBHOOKS:
            raise ValueError(f"to a webhook's delivery can only happen: {', '.join(_OF_WEBHOOKS)}")
