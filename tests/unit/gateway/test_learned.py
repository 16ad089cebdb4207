"""Quirks that were learned of model servers outlive the run."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.ops.learned import FILE, remembered
from tests.kit.fakes import Clock

SERVER = "http://localhost:8080/v1/chat/completions m"


def test_the_next_run_knows_what_this_one_has_learned(tmp_path: Path, clock: Clock) -> None:
    with remembered(tmp_path / "data", clock) as learned:
        assert learned == {}
        learned[SERVER] = {"tools", "stream"}
        learned["another m"] = set()
    with remembered(tmp_path / "data", clock) as learned:
        assert learned == {SERVER: {"tools", "stream"}}


def test_it_is_kept_although_the_run_fails(tmp_path: Path, clock: Clock) -> None:
    def fails() -> None:
        with remembered(tmp_path, clock) as learned:
            learned[SERVER] = {"tools"}
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    with remembered(tmp_path, clock) as learned:
        assert learned == {SERVER: {"tools"}}


def test_each_thing_is_tried_again_thirty_days_after_it_was_learned(tmp_path: Path, clock: Clock) -> None:
    with remembered(tmp_path, clock) as learned:
        learned[SERVER] = {"tools"}
    clock.move(days=20)
    with remembered(tmp_path, clock) as learned:
        learned[SERVER].add("stream")
    clock.move(days=11)
    with remembered(tmp_path, clock) as learned:
        assert learned == {SERVER: {"stream"}}
    clock.move(days=20)
    with remembered(tmp_path, clock) as learned:
        assert learned == {}


def test_the_file_is_for_its_owner_alone(tmp_path: Path, clock: Clock) -> None:
    with remembered(tmp_path, clock) as learned:
        learned[SERVER] = {"tools"}
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600


@given(
    st.one_of(st.binary(max_size=40), st.sampled_from([b"[]", b"{}", b'{"a": 1}', b'{"a": {"tools": "x"}}', b"null"]))
)
def test_a_damaged_file_stops_nothing(tmp_path_factory: pytest.TempPathFactory, held: bytes) -> None:
    folder = tmp_path_factory.mktemp("data")
    (folder / FILE).write_bytes(held)
    with remembered(folder, Clock()) as learned:
        assert learned == {}


def test_what_this_version_does_not_know_is_left_out(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / FILE).write_text(f'{{"{SERVER}": {{"smell": {clock()}, "tools": {clock()}}}}}')
    with remembered(tmp_path, clock) as learned:
        assert learned == {SERVER: {"tools"}}


def test_a_folder_that_takes_no_file_stops_nothing(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "data").write_text("a file")
    with remembered(tmp_path / "data", clock) as learned:
        learned[SERVER] = {"tools"}
