"""The decay curve: bounds, monotony, composition."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.store.fading import ARCHIVE_BELOW, STYLE_HALF_LIFE, rate, strength, style_half_life

bases = st.floats(min_value=1e-6, max_value=100)
half_lives = st.floats(min_value=0.01, max_value=10_000)
spans = st.floats(min_value=0, max_value=10_000)


def test_strength_halves_with_each_half_life() -> None:
    """The half-life is what configuration and documents state in days, so it must mean that."""
    assert strength(1.0, 14, 14) == pytest.approx(0.5)
    assert strength(0.8, 60, 180) == pytest.approx(0.1)


def test_strength_without_half_life_never_decays() -> None:
    """Identity, health and pinned memories are passed `None`."""
    assert strength(0.7, None, 1e9) == 0.7
    assert rate(None) == 0


def test_a_style_told_once_falls_below_the_archive_line_between_60_and_61_days() -> None:
    """The sweep's line and the curve together decide when a style goes; this pins both."""
    assert strength(1.0, style_half_life(1), 60) > ARCHIVE_BELOW > strength(1.0, style_half_life(1), 61)


@given(base=bases, half_life=st.none() | half_lives, days=st.floats(min_value=-1e6, allow_nan=False))
def test_strength_stays_above_zero_and_within_base(base: float, half_life: float | None, days: float) -> None:
    """Ranking multiplies by it: zero would hide the only right answer, more than base would invent worth."""
    assert 0 < strength(base, half_life, days) <= base


@given(base=bases, half_life=half_lives, earlier=spans, later=spans)
def test_strength_never_rises_with_time(base: float, half_life: float, earlier: float, later: float) -> None:
    """Only reinforcement may make a memory stronger."""
    earlier, later = sorted((earlier, later))
    assert strength(base, half_life, earlier) >= strength(base, half_life, later)


@given(bases_=st.tuples(bases, bases), half_lives_=st.tuples(half_lives, half_lives), days=spans)
def test_a_stronger_memory_never_decays_faster(
    bases_: tuple[float, float], half_lives_: tuple[float, float], days: float
) -> None:
    """Of two memories the one with more base and half-life must stay ahead at any time."""
    weak, strong = sorted(bases_)
    short, long = sorted(half_lives_)
    assert strength(strong, long, days) >= strength(weak, short, days)
    assert rate(long) <= rate(short)


@given(
    base=bases, half_life=st.floats(min_value=10, max_value=1_000), first=st.floats(0, 500), second=st.floats(0, 500)
)
def test_strength_composes_over_time(base: float, half_life: float, first: float, second: float) -> None:
    """Looking in between must not change the outcome; else every read would wear the memory."""
    there = strength(strength(base, half_life, first), half_life, second)
    assert there == pytest.approx(strength(base, half_life, first + second), rel=1e-9)


@given(reinforced=st.integers(min_value=1, max_value=10_000))
def test_a_style_lives_longer_with_each_telling(reinforced: int) -> None:
    """Styles are reinforced, not overwritten: the half-life is 14 days times the tellings."""
    assert style_half_life(reinforced) == pytest.approx(14 * reinforced)
    assert style_half_life(reinforced + 1) > style_half_life(reinforced)


def test_a_style_with_no_count_yet_lives_as_long_as_one_told_once() -> None:
    """A row that was just written may count from 0."""
    assert style_half_life(0) == STYLE_HALF_LIFE


@pytest.mark.parametrize("half_life", [0.0, -1.0, math.inf, math.nan])
def test_a_senseless_half_life_is_refused(half_life: float) -> None:
    """A zero from a broken config would archive everything in one night."""
    with pytest.raises(ValueError, match="half-life must be a positive number of days"):
        rate(half_life)


@pytest.mark.parametrize(("base", "days"), [(0.0, 1.0), (-1.0, 1.0), (math.nan, 1.0), (1.0, math.nan)])
def test_senseless_input_is_refused(base: float, days: float) -> None:
    """NaN would travel through every comparison of a ranking unseen."""
    with pytest.raises(ValueError, match="must be a"):
        strength(base, 14, days)


def test_a_negative_count_of_tellings_is_refused() -> None:
    """It can only come from a broken row and would turn decay into growth."""
    with pytest.raises(ValueError, match="can't have been told -1 times"):
        style_half_life(-1)
