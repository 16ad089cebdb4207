"""People tell, correct, forget, link, import and take back in any order, and nobody reads what is not theirs.

`make leaks` goes on for 10,000 operations; the ordinary tests do fewer, and always the same ones.
"""

from __future__ import annotations

import os
import random

import pytest

from tests.kit.chatter import Talked
from tests.kit.leaks import OPERATIONS, Tally, figures, search, spoken, told, typed
from tests.kit.ways import WAYS

pytestmark = pytest.mark.campaign

STEPS = int(os.environ.get("REMORA_LEAK_STEPS", "0"))
#: The same few each time; the long run looks further.
SEED = random.randrange(2**31) if STEPS else 1


async def test_whatever_people_do_nobody_reads_what_is_not_theirs() -> None:
    """Promise 2 against orders of events that nobody thought of; and forgetting touches nobody else's rows."""
    tally = Tally()
    leak = await search(STEPS or 600, SEED, tally)
    assert leak is None, f"seed {SEED}\n{told(leak)}"
    # Nor is any of it tried in vain: everything is done and every way is gone, and brings something.
    assert set(tally.operations) == set(OPERATIONS)
    assert {name for name in WAYS if not tally.seen[name]} == set(), figures(tally)


async def test_whatever_people_type_nobody_is_shown_what_is_not_theirs() -> None:
    """The same through the whole pipeline, where a model repeats whatever it is given."""
    talked = Talked()
    faults, history = await typed(STEPS // 4 or 300, SEED, talked)
    assert faults == [], "\n".join([f"seed {SEED}", *faults, *history])
    assert talked.seen > talked.planted, spoken(talked)
    assert talked.paged > talked.planted / 2, "pages show what is theirs"
