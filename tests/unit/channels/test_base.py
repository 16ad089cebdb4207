"""Session keys and stored messages: what must survive the way through text and back."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.base import INBOUND_VERSION, NO_THREAD, Inbound, Place
from tests.kit.tables import each_row

#: Any id a platform may invent, with lone surrogates, colons and percent signs among them.
IDS = st.one_of(
    st.text(st.characters(), min_size=1), st.text(st.sampled_from(":%-/ 2D"), min_size=1), st.just(NO_THREAD)
)
PLACES = st.builds(Place, channel=IDS, chat=IDS, thread=st.none() | IDS)
TEXTS = st.text(st.characters())
INBOUNDS = st.builds(
    Inbound,
    channel=TEXTS,
    platform=TEXTS,
    bot_id=TEXTS,
    update_key=TEXTS,
    chat=TEXTS,
    chat_kind=st.sampled_from(["private", "group"]),
    author_id=TEXTS,
    author_name=TEXTS,
    message_id=TEXTS,
    text=TEXTS,
    sent_at=st.integers(min_value=0, max_value=2**53),
    thread=st.none() | TEXTS,
    chat_title=TEXTS,
    reply_to=st.none() | TEXTS,
    addressed=st.booleans(),
    forwarded=st.booleans(),
)
HELLO = Inbound(
    channel="telegram",
    platform="telegram",
    bot_id="7",
    update_key="1001",
    chat="-100:1",
    chat_kind="group",
    author_id="42",
    author_name="Ada",
    message_id="5",
    text="hello",
    sent_at=1_700_000_000_000,
    thread="45",
)


@given(PLACES)
def test_session_key_round_trips_for_any_platform_id(place: Place) -> None:
    """The key is all that the store keeps of a place, so the place must come back from it."""
    assert Place.from_session_key(place.session_key) == place


@given(PLACES, PLACES)
def test_session_keys_are_equal_only_for_equal_places(one: Place, other: Place) -> None:
    """Two chats under one key would read each other's history."""
    assert (one.session_key == other.session_key) == (one == other)


@given(PLACES)
def test_session_key_has_three_printable_parts(place: Place) -> None:
    """Keys stand in logs and in command lines: no blanks, no control characters, nothing beyond ASCII."""
    key = place.session_key
    assert key.count(":") == 2
    assert key.isascii()
    assert key.isprintable()
    assert " " not in key


def test_session_key_leaves_ordinary_ids_readable() -> None:
    """The examples of the documentation are what an operator really sees."""
    assert Place(channel="telegram", chat="-1001", thread="45").session_key == "telegram:-1001:45"
    assert Place(channel="discord", chat="99").session_key == "discord:99:-"


def test_session_key_of_a_thread_called_like_no_thread_is_escaped() -> None:
    """A topic really named "-" is not the chat itself."""
    named = Place(channel="c", chat="1", thread=NO_THREAD)
    assert named.session_key != Place(channel="c", chat="1").session_key


@each_row("key", ["", "telegram", "telegram:1", "telegram::-", ":1:-", "a:b:c:d", "a:b:"])
def test_session_key_with_missing_or_spare_parts_is_refused(key: str) -> None:
    """A key from a command line or an older file must not turn into some other chat."""
    with pytest.raises(ValueError, match="not a session key"):
        Place.from_session_key(key)


@given(INBOUNDS)
def test_inbound_round_trips_through_json(inbound: Inbound) -> None:
    """The mailbox stores this text, and a redone turn must see the message it would have seen."""
    assert Inbound.from_json(inbound.to_json()) == inbound


@pytest.mark.parametrize("version", [INBOUND_VERSION + 1, 0, None])
def test_inbound_of_another_version_is_refused(version: int | None) -> None:
    """After a downgrade a field may mean something else: better to stop than to guess."""
    fields = json.loads(HELLO.to_json()) | {"version": version}
    with pytest.raises(ValueError, match=f"has version {version}, this Remora reads {INBOUND_VERSION}"):
        Inbound.from_json(json.dumps(fields))


def test_inbound_without_a_version_is_refused() -> None:
    """Every stored message carries its version, so a text without one is something else."""
    fields = json.loads(HELLO.to_json())
    del fields["version"]
    with pytest.raises(ValueError, match="has version None"):
        Inbound.from_json(json.dumps(fields))


def test_inbound_place_is_where_it_was_said() -> None:
    """Answers go to this place, the thread included."""
    assert HELLO.place == Place(channel="telegram", chat="-100:1", thread="45")
    assert replace(HELLO, thread=None).place == Place(channel="telegram", chat="-100:1")
