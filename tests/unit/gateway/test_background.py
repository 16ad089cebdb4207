"""Work beside a block: its end, and its death."""

from __future__ import annotations

import asyncio

from structlog.testing import capture_logs

from gateway.ops.background import beside


async def test_work_that_dies_is_logged_by_kind_and_place_and_work_that_is_stopped_is_not() -> None:
    async def dies() -> None:
        raise ValueError("Ada's diary")

    with capture_logs() as logs:
        async with beside([dies(), asyncio.Event().wait()]):  # type: ignore[list-item]
            await asyncio.sleep(0)
    [log] = logs
    assert log["event"] == "background.died" and "dies" in log["task"]
    assert log["error"].startswith("ValueError at tests/unit/gateway/test_background.py:") and "diary" not in f"{log}"
