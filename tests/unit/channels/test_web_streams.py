"""The streams of browsers: what one that does not read may hold, and how many one person may have."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from channels.base import File, Outbound, Place
from channels.web import _BEHIND, _BEHIND_CHARS, _STREAMS, PageItem, Tab, WebChannel

PLACE = Place(channel="web-assistant", chat="console.ada")
OTHER = Place(channel="web-assistant", chat="console.ada", thread="boat")


def item(key: str, text: str = "") -> PageItem:
    return PageItem(key=key, at=1, text=text)


async def test_only_the_last_state_of_an_item_waits() -> None:
    """An answer that grows for minutes would be held once for each of its pieces."""
    tab = Tab()
    for number in range(10 * _BEHIND):
        tab.put(PLACE, item("t1", "word " * (number % 100)))
        tab.put(OTHER, item("t1", str(number)))
    assert await tab.next(1) == (PLACE, item("t1", "word " * 99))
    assert await tab.next(1) == (OTHER, item("t1", str(10 * _BEHIND - 1)))
    assert await tab.next(0) is None


@pytest.mark.parametrize(
    "items",
    [
        [item(f"r{number}") for number in range(_BEHIND + 1)],
        [item(f"r{number}", "x" * (_BEHIND_CHARS // 3)) for number in range(4)],
    ],
    ids=["many", "long"],
)
async def test_a_reader_who_is_too_far_behind_begins_anew(items: list[PageItem]) -> None:
    tab = Tab()
    for one in items:
        tab.put(PLACE, one)
    assert not tab.open and tab.taken() == []
    with pytest.raises(EOFError):
        await tab.next(1)


async def test_a_stream_holds_no_files() -> None:
    """They are held once, for the page to fetch."""
    channel = WebChannel("web-assistant", now=lambda: 1)
    with channel.stream(PLACE.chat, [PLACE], is_there=lambda: True) as stream:
        await channel.send(Outbound(place=PLACE, text="here", id=7, file=File(name="a.bin", data=b"x" * 1_000)))
        change = await stream.next(1)
        assert change is not None and change[1].file == File(name="a.bin", data=b"")
        kept = channel.file(PLACE, 7)
        assert kept is not None and len(kept.data) == 1_000


async def test_the_oldest_stream_of_a_person_with_too_many_is_told_why() -> None:
    """One whose reader has gone counts no more, nor does another person's."""
    channel = WebChannel("web-assistant", now=lambda: 1)
    gone = set[int]()
    elsewhere = Place(channel="web-assistant", chat="console.eve")
    with ExitStack() as opened:
        hers = opened.enter_context(channel.stream(elsewhere.chat, [elsewhere], is_there=lambda: True))
        streams = [
            opened.enter_context(channel.stream(PLACE.chat, [PLACE, OTHER], is_there=lambda n=n: n not in gone))  # type: ignore[misc]
            for n in range(_STREAMS)
        ]
        gone.add(3)
        streams.append(opened.enter_context(channel.stream(PLACE.chat, [PLACE], is_there=lambda: True)))
        assert [stream.surplus for stream in streams] == [False] * (_STREAMS + 1) and not streams[3].open
        streams.append(opened.enter_context(channel.stream(PLACE.chat, [PLACE], is_there=lambda: True)))
        assert streams[0].surplus and not any(stream.surplus for stream in (hers, *streams[1:]))
        gone |= set(range(_STREAMS))
        assert channel.reachable(PLACE) and not channel.reachable(OTHER), "nobody looks at it any more"
    assert not channel.reachable(PLACE)
