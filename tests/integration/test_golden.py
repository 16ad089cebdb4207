"""`python -m bench.golden`: what the operator's own questions find."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bench import golden
from gateway.cli.start import Unusable
from gateway.config.loading import Config, load
from tests.kit.fakes import NOON, Clock
from tests.kit.patience import SECONDS
from tests.kit.stores import opened, planted
from tests.kit.talk import private

DAY = 86_400_000


@pytest.fixture
def config(tmp_path: Path) -> Config:
    (tmp_path / "config.yaml").write_text("embedding: {provider: none}\nhttp: {enabled: false}\n")
    return load(tmp_path / "config.yaml", {}, tmp_path)


@asynccontextmanager
async def store(config: Config) -> AsyncIterator[None]:
    async with opened(config.data_dir / "remora.db", Clock(), agents=("assistant",)) as memory:
        await planted(memory, await memory.identities.context(*private("ada")), "lives in Porto")
        yield


@pytest.mark.sqlite("copies its file")
async def test_a_golden_set_is_scored_beside_the_open_store(tmp_path: Path, config: Config) -> None:
    """Results are kept as figures, and no question is answered from the store itself."""
    file = tmp_path / "golden.yaml"
    file.write_text(
        "- {ask: where does Ada live, find: [porto], person: 'console:ada'}\n"
        "- {ask: which car does Ada drive, find: [fiat], person: 'console:ada'}\n"
    )
    async with store(config):
        scored = await golden.score(config, golden.read(file))
    assert (scored.asked, scored.recall, scored.missed) == (2, 0.5, ("which car does Ada drive",))
    golden.keep(config, scored, now=NOON - DAY)
    assert golden.keep(config, scored, now=NOON) == [(NOON - DAY, 0.5), (NOON, 0.5)]
    assert "Ada" not in (config.data_dir / golden.HISTORY).read_text()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- {ask: x, find: [y]}", "person: PLATFORM:USER or chat"),
        ("- {ask: x, find: [], person: 'console:ada'}", "at least one text"),
        ("- {asks: x}", "0.ask"),
        ("[]", "no question"),
        ("- [", "Can't read"),
    ],
)
def test_a_golden_set_that_can_not_be_used_says_where(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "golden.yaml"
    file.write_text(text)
    with pytest.raises(Unusable, match=problem):
        golden.read(file)


@pytest.mark.sqlite("copies its file")
async def test_a_golden_set_of_a_stranger_is_refused(tmp_path: Path, config: Config) -> None:
    file = tmp_path / "golden.yaml"
    file.write_text("- {ask: where does he live, find: [porto], person: 'console:nobody'}\n")
    async with store(config):
        with pytest.raises(Unusable, match="console:nobody has never talked"):
            await asyncio.wait_for(golden.score(config, golden.read(file)), SECONDS)
