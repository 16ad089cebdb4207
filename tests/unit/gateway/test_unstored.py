"""Texts of which nothing is stored."""

from __future__ import annotations

from pathlib import Path

from channels.base import Place
from gateway.pipeline.course import Heard
from gateway.reception.backlog import Unstored
from tests.kit.bench import Bench, Screen
from tests.kit.fakes import Clock, ScriptedModel


class Shut(Screen):
    async def append(self, place: Place, turn: int, text: str) -> None:
        raise BrokenPipeError


async def test_a_terminal_that_is_closed_lets_no_error_out(tmp_path: Path, clock: Clock) -> None:
    """The text is lost, as it may be; its message waits in the inbox."""
    screen = Shut(stream=True)
    heard = Heard(inbox_id=1, inbound=Bench(tmp_path, ScriptedModel(), screen, clock).inbound("hello"))
    await Unstored({screen.id: screen}, clock).say_of(heard, "I can't save that.")
    assert screen.shown == []
