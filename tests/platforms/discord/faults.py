"""Faults made on purpose in requests to Discord."""

from __future__ import annotations

from dataclasses import dataclass

from tests.platforms import faults
from tests.platforms.discord.client import Deed


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault(faults.Fault):
    """Methods are the names in rest.ROUTES and interactions.ROUTES. `flood` is for the bucket, or `everywhere` for all."""

    apart = frozenset({"model", "extract", "download"})

    do: Deed
    code: int = 0
    description: str = "502: Bad Gateway"
    retry_after: float = 3
    everywhere: bool = False
