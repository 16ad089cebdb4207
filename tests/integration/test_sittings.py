"""Whole sittings of new users with a bot without a model, as they stand on the screen.

Each file was typed by somebody who had not seen the bot. After a change of replies, `python -m bench.sitting` prints a
file's lines anew: read them as that person would before they replace what stands here.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.sitting import sat

SITTINGS = sorted((Path(__file__).parents[1] / "data" / "sittings").glob("*.txt"))
_TYPED = "you> "


@pytest.mark.parametrize("file", SITTINGS, ids=lambda file: file.stem)
async def test_a_sitting_reads_as_it_did(file: Path) -> None:
    transcript = file.read_text("utf-8")
    typed = [line.removeprefix(_TYPED) for line in transcript.splitlines() if line.startswith(_TYPED)]
    assert typed
    assert await sat(typed) == transcript
