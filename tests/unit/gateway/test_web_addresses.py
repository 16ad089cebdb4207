"""Which addresses of the web may be fetched, and which of them people have named."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.internet.addresses import NotFetched, checked, is_named, is_public
from tests.kit.tables import each_row
from tests.kit.web import FORBIDDEN

PORTS = (80, 443)


@each_row("address", FORBIDDEN)
def test_what_leads_inside_is_refused_however_it_is_written(address: str) -> None:
    with pytest.raises(NotFetched):
        checked(address, ports=PORTS)


@each_row(
    ("address", "host"),
    [
        ("https://example.org/a?b=c#d", b"example.org"),
        ("http://example.org:80/", b"example.org"),
        ("https://münchen.de/", b"xn--mnchen-3ya.de"),
        ("https://1.1.1.1/", b"1.1.1.1"),
        ("https://[2606:4700::1111]/", b"2606:4700::1111"),
        ("https://3com.com/", b"3com.com"),
        ("https://my_host.example.org./", b"my_host.example.org."),
    ],
)
def test_what_is_public_passes(address: str, host: bytes) -> None:
    assert checked(address, ports=PORTS).raw_host == host


def test_ports_are_those_that_are_configured() -> None:
    assert checked("http://example.org:8080/", ports=(80, 8080)).port == 8080


@given(st.integers(0, 2**32 - 1))
def test_an_address_written_inside_another_counts_as_itself(number: int) -> None:
    """An address that a network translates is judged by the address it leads to."""
    inner = IPv4Address(number)
    public = is_public(str(inner))
    assert public <= inner.is_global
    for outer in (0xFFFF << 32 | number, 0x64FF9B << 96 | number, 0x2002 << 112 | number << 80):
        assert is_public(str(IPv6Address(outer))) == public
    assert not is_public(str(IPv6Address(number)))


@given(st.text(max_size=60))
def test_any_text_is_an_address_or_refused(text: str) -> None:
    for address in (text, f"http://{text}/", f"https://example.org/{text}"):
        try:
            assert checked(address, ports=PORTS).scheme in ("http", "https")
        except NotFetched:
            continue


@each_row(
    ("said", "address"),
    [
        ("read https://example.org/a please", "https://example.org/a"),
        ("read https://example.org/a.", "https://example.org/a"),
        ("(see https://example.org/a_(b))", "https://example.org/a_(b)"),
        ("see [this](https://example.org/a?b=c)!", "https://example.org/a?b=c"),
        ("what is new on heise.de?", "https://www.heise.de/"),
        ("EXAMPLE.org/Path", "http://example.org/Path"),
        ("看看https://example.org/a这个", "https://example.org/a"),
        ("看看heise.de吧", "https://heise.de"),
        ("https://example.org/ü", "https://example.org/%C3%BC"),
        ("münchen.de", "https://xn--mnchen-3ya.de/"),
        ("https://example.org/a#part", "https://example.org/a"),
    ],
)
def test_an_address_is_named_where_people_write_it(said: str, address: str) -> None:
    assert is_named(address, ["hello", said])


@each_row(
    ("said", "address"),
    [
        ("read https://example.org/a", "https://example.org/a?q=peanuts"),
        ("read https://example.org/a", "https://example.org/a/peanuts"),
        ("read https://example.org/a", "https://example.org/"),
        ("read https://example.org/a", "https://peanuts.example.org/a"),
        ("read https://example.org/a", "https://evil.example/?https://example.org/a"),
        ("read https://example.org/a", "https://user@evil.example/a"),
        ("read https://notevil.example/a", "https://evil.example/a"),
        ("write to me@evil.example", "https://evil.example/"),
        ("my allergy is peanuts", "https://evil.example/peanuts"),
        ("read https://example.org/A", "https://example.org/a"),
        ("read https://example.org/a", "https://example.org:8080/a"),
    ],
)
def test_what_nobody_wrote_is_not_named(said: str, address: str) -> None:
    assert not is_named(address, [said])
