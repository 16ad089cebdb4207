"""People tell, correct, forget, link, import and take back in any order, and nobody reads what is not theirs.

`make leaks` goes on for 10,000 operations; the ordinary tests do fewer, and always the same ones.
"""

from __future__ import annotations

import os
import random

from tests.leaks import OPERATIONS, Tally, figures, search, told
from tests.ways import WAYS

OPERATIONS_DONE = int(os.environ.get("REMORA_LEAK_STEPS", "600"))
SEED = int(os.environ.get("REMORA_LEAK_SEED", "0")) or (random.randrange(2**31) if OPERATIONS_DONE > 600 else 1)


async def test_whatever_people_do_nobody_reads_what_is_not_theirs() -> None:
    """Promise 2 against orders of events that nobody thought of; and forgetting touches nobody else's rows."""
    tally = Tally()
    leak = await search(OPERATIONS_DONE, SEED, tally)
    assert leak is None, f"seed {SEED}\n{told(leak)}"
    # Nor is any of it tried in vain: everything is done and every way is gone, and brings something.
    assert set(tally.operations) == set(OPERATIONS)
    assert {name for name in WAYS if not tally.seen[name]} == set(), figures(tally)
