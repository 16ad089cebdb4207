"""An hour at the terminal, in the settings that `remora init` writes."""

from __future__ import annotations

import asyncio
import re
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.journeys.house import House
from tests.journeys.talk import held
from tests.kit.patience import limit
from tests.kit.served import environment


async def test_an_hour_at_the_terminal_goes_without_a_fault(tmp_path: Path) -> None:
    """Talk, a file of 3 MB, and a restart in between."""
    house = House(tmp_path)
    (tmp_path / "plan.txt").write_bytes(b"the plan " * 340_000)
    async with chatting(house) as chat:
        answers = await held(chat.ask)
        answers.append(await chat.ask(f"/attach {tmp_path}/plan.txt", r"\w"))
        answers.append(await chat.ask("I'm allergic to plums", "plums"))
    async with chatting(house) as chat:
        answers.append(await chat.ask("Where do I live?", "Braga"))
        answers.append(await chat.ask("/memory list category:health", "plums"))
    assert house.troubles(*answers) == []


@asynccontextmanager
async def chatting(house: House) -> AsyncIterator[Chat]:
    with (house.folder / "printed").open("ab") as printed:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "gateway", "chat", "--config", str(house.folder / "config.yaml")),
            stdin=PIPE, stdout=PIPE, stderr=printed, env=environment(house.folder), cwd=house.folder,
        )  # fmt: skip
    yield Chat(process)
    process.stdin.close()  # type: ignore[union-attr]
    async with limit():
        assert await process.wait() == 0, house.log()


class Chat:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def ask(self, text: str, expected: str) -> str:
        """Types a line and returns what is printed from then on, once that fits `expected` and nothing more comes."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(text.encode() + b"\n")
        await self._process.stdin.drain()
        printed = ""
        try:
            async with limit():
                while not re.search(expected, printed):
                    piece = await self._process.stdout.read(65_536)
                    assert piece, f"{expected!r} was not answered, but the program ended after {printed!r}"
                    printed += piece.decode("utf-8", "replace")
        except TimeoutError:
            raise AssertionError(f"{expected!r} was not answered, but {printed!r}") from None
        return printed
