"""The short form of every attack, on the code of this checkout; `make attack` runs the whole."""

from __future__ import annotations

import pytest

from tests.attack import __main__  # noqa: F401 - it enters the scenarios
from tests.attack.frame import SCENARIOS, Attack

pytestmark = pytest.mark.campaign


@pytest.mark.parametrize("name", SCENARIOS)
async def test_nothing_is_breached(name: str) -> None:
    attack = Attack(name, short=True)
    await SCENARIOS[name](attack)
    assert not attack.details
