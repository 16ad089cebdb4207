"""Decides whether a person's, a chat's or an agent's portion of the day is used up. Pure.

A turn is asked about before it begins, and one that began is finished: so each portion may be exceeded by one answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agents.spec import AllowanceSpec, PortionOfDay
from gateway.wording.texts import Texts
from memory.chat.stats import Spending, Taken


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A portion and the part of it that is used. `whose` is "person", "chat" or "agent"."""

    whose: str
    portion: PortionOfDay
    taken: Taken

    @property
    def used_up(self) -> bool:
        tokens, cost = self.portion.tokens, self.portion.cost
        return (tokens is not None and self.taken.tokens >= tokens) or (cost is not None and self.taken.cost >= cost)


def shares(allowance: AllowanceSpec, spending: Spending) -> Iterator[Share]:
    """Yields the portions that are limited, the narrowest first."""
    taken = {"person": spending.person, "chat": spending.chat, "agent": spending.agent}
    for whose, portion in allowance.portions.items():
        yield Share(whose=whose, portion=portion, taken=taken[whose])


def refusal(allowance: AllowanceSpec, spending: Spending, texts: Texts) -> str:
    """Returns the words for a person who gets no answer before the day ends; "" if something is left."""
    share = next((one for one in shares(allowance, spending) if one.used_up), None)
    return "" if share is None else texts(f"allowance.over.{share.whose}", until=texts.moment(spending.until))


def lines(allowance: AllowanceSpec, spending: Spending, texts: Texts) -> list[str]:
    until = texts.moment(spending.until)
    return [
        texts(f"allowance.left.{share.whose}", amounts=", ".join(_amounts(share, texts)), until=until)
        for share in shares(allowance, spending)
    ]


def _amounts(share: Share, texts: Texts) -> Iterator[str]:
    if share.portion.tokens is not None:
        yield texts("allowance.tokens", taken=share.taken.tokens, most=share.portion.tokens)
    if share.portion.cost is not None:
        yield texts("allowance.cost", taken=f"{share.taken.cost:.4f}", most=f"{share.portion.cost:g}")
