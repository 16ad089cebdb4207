"""Which addresses of the web may be fetched, and which of them people have named."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.web.addresses import NotFetched, checked, is_named, is_public

PORTS = (80, 443)

#: Ways to write this machine, its network and its provider's servers.
FORBIDDEN = (
    "http://127.0.0.1/", "http://127.0.0.1./", "http://127.1/", "http://127.0.1/", "http://2130706433/", "http://0x7f000001/",
    "http://0x7f.1/", "http://0x7F.0x0.0x0.0x1/", "http://0177.0.0.1/", "http://017700000001/", "http://0/", "http://0.0.0.0/",
    "http://127。0。0。1/", "http://１２７.0.0.1/", "http://①②⑦.0.0.1/", "http://127.0.0.1%00/", "http://%31%32%37.0.0.1/",
    "http://localhost/", "http://LOCALHOST/", "http://localhost./", "http://a.localhost/", "http://localhost.localdomain/",
    "http://printer/", "http://printer.local/", "http://wiki.lan/", "http://db.internal/", "http://nas.home.arpa/", "http://x.test/",
    "http://metadata.google.internal/", "http://169.254.169.254/latest/meta-data/", "http://169.254.170.2/", "http://0xa9fea9fe/",
    "http://2852039166/", "http://100.100.100.200/", "http://168.63.129.16/", "http://192.0.0.192/", "http://[fd00:ec2::254]/",
    "http://10.0.0.1/", "http://172.16.0.1/", "http://172.31.255.255/", "http://192.168.1.1/", "http://100.64.0.1/",
    "http://198.18.0.1/", "http://224.0.0.1/", "http://255.255.255.255/", "http://240.0.0.1/", "http://192.0.2.1/",
    "http://[::1]/", "http://[::]/", "http://[0:0:0:0:0:0:0:1]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/",
    "http://[::127.0.0.1]/", "http://[64:ff9b::7f00:1]/", "http://[64:ff9b::10.0.0.1]/", "http://[64:ff9b:1::7f00:1]/",
    "http://[2002:7f00:1::]/", "http://[2002:a00:1::1]/", "http://[2001:0:1::1]/", "http://[fe80::1]/", "http://[fe80::1%25eth0]/",
    "http://[fe80::1%eth0]/", "http://[fc00::1]/", "http://[fec0::1]/", "http://[ff02::1]/", "http://[2001:db8::1]/", "http://[3fff::1]/",
    "http://[100::1]/",
    "http://example.org@127.0.0.1/", "http://example.org:80@127.0.0.1/", "http://127.0.0.1#@example.org/", "http://user@example.org/",
    "http://example.org\\@127.0.0.1/", "http://127.0.0.1\\@example.org/", "http://example.org /", "http://exam\tple.org/",
    "http://example.org:22/", "http://example.org:8080/", "http://example.org:0/", "http://example.org:99999/",
    "file:///etc/passwd", "ftp://example.org/", "gopher://127.0.0.1:6379/_x", "data:text/html,x", "javascript:alert(1)",
    "unix:///var/run/docker.sock", "http://", "http:///x", "//example.org/", "example.org", "", "http://example.org/" + "a" * 2_000,
)  # fmt: skip


@pytest.mark.parametrize("address", FORBIDDEN)
def test_what_leads_inside_is_refused_however_it_is_written(address: str) -> None:
    with pytest.raises(NotFetched):
        checked(address, ports=PORTS)


@pytest.mark.parametrize(
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
    """Whatever a network translates, it is what it leads to that matters."""
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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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
