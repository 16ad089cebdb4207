"""Transactions that may run beside those of other processes write only rows of what they name."""

from __future__ import annotations

import os
import random

import pytest

from tests.kit import postgres
from tests.kit.leaks import Tally, search, told

pytestmark = pytest.mark.postgres
if postgres.is_installed():
    from tests.kit.named import Named

STEPS = int(os.environ.get("REMORA_LEAK_STEPS", "0"))
SEED = random.randrange(2**31) if STEPS else 1


async def test_whatever_people_do_only_what_is_named_is_written() -> None:
    leak = await search(STEPS or 40, SEED, Tally(), engine=Named.at)
    assert leak is None, f"seed {SEED}\n{told(leak)}"
