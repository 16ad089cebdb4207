"""Fetching from the web: what is reached, what is not, and within which bounds."""

from __future__ import annotations

import gzip
import ssl
from collections.abc import AsyncIterator

import pytest
import trustme

from gateway.internet.addresses import NotFetched
from gateway.internet.reach import PublicWeb
from tests.kit.web import FORBIDDEN, PUBLIC, Names, Net, Served, Site, site


@pytest.fixture
async def there() -> AsyncIterator[Site]:
    async with site() as made:
        yield made


def reach(there: Site, names: Names | None = None, *, most: int = 2_000_000) -> tuple[PublicWeb, Net]:
    """A way to the web whose public addresses all lead to `there`."""
    net = Net(there.port)
    return PublicWeb(look_up=names or Names(), network=net, most=most), net


async def test_a_page_is_fetched_from_the_address_that_its_name_has(there: Site) -> None:
    """The server sees the name, and nothing of who asks."""
    there.page("/a", "hello")
    names = Names()
    way, net = reach(there, names)
    got = await way.get("http://page.example/a?b=c#d")
    assert (got.data, got.media_type, got.charset, got.cut) == (b"hello", "text/html", "utf-8", False)
    assert net.reached == [PUBLIC] and names.asked == ["page.example"]
    head = (
        "GET /a?b=c HTTP/1.1\r\nHost: page.example\r\nUser-Agent: Remora\r\nAccept: text/html, application/xhtml+xml,"
    )
    head += " text/plain, application/pdf, */*;q=0.5\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n"
    assert there.heads == [head]


@pytest.mark.parametrize("address", FORBIDDEN)
async def test_nothing_inside_is_reached_directly_or_by_a_redirect(address: str, there: Site) -> None:
    way, net = reach(there)
    with pytest.raises(NotFetched):
        await way.get(address)
    assert net.reached == []
    there.moved("/", address)
    try:
        await way.get("http://page.example/")
    except (NotFetched, UnicodeEncodeError):
        pass
    else:
        raise AssertionError
    # An incomplete address is one beside the page, on the same public server.
    assert set(net.reached) <= {PUBLIC}


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"], ["::1"], ["10.1.2.3"], ["169.254.169.254"], ["::ffff:127.0.0.1"], ["64:ff9b::7f00:1"], ["fe80::1%eth0"],
        [PUBLIC, "127.0.0.1"], ["127.0.0.1", PUBLIC], [PUBLIC, "fd00::1"], [], ["nonsense"],
    ],
)  # fmt: skip
async def test_a_name_with_any_address_inside_is_refused(addresses: list[str], there: Site) -> None:
    way, net = reach(there, Names(page_example=[addresses]))
    with pytest.raises(NotFetched, match="no public address"):
        await way.get("http://page.example/")
    assert net.reached == [] and there.heads == []


async def test_this_machine_is_not_reached_without_any_seam(there: Site) -> None:
    """The real network, the real resolver, and a server that would answer."""
    there.page("/", "secret")
    way = PublicWeb(ports=(there.port,))
    for host in ("127.0.0.1", "localhost", "0.0.0.0", "127.1", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1"):
        with pytest.raises(NotFetched):
            await way.get(f"http://{host}:{there.port}/")
    assert there.heads == []


async def test_a_name_that_changes_its_address_reaches_nothing_else(there: Site) -> None:
    """It is asked for once a connection, and what was checked is what is connected to."""
    there.page("/", "hello")
    names = Names(page_example=[[PUBLIC], ["127.0.0.1"]])
    way, net = reach(there, names)
    assert (await way.get("http://page.example/")).data == b"hello"
    assert names.asked == ["page.example"] and net.reached == [PUBLIC]
    there.moved("/", "http://page.example/again")
    names.known["page.example"] = [[PUBLIC], ["127.0.0.1"]]
    with pytest.raises(NotFetched, match="no public address"):
        await way.get("http://page.example/")
    assert net.reached == [PUBLIC, PUBLIC]


async def test_five_redirects_are_followed_and_no_sixth(there: Site) -> None:
    for n in range(6):
        there.moved(f"/{n}", f"/{n + 1}")
    there.page("/6", "hello")
    way, _ = reach(there)
    got = await way.get("http://page.example/1")
    assert (got.data, got.url) == (b"hello", "http://page.example/6")
    with pytest.raises(NotFetched, match="more than 5"):
        await way.get("http://page.example/0")


async def test_a_name_is_checked_against_its_certificate(tmp_path: object) -> None:
    """The connection goes to an address, and the name still counts."""
    authority = trustme.CA()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("page.example").configure_cert(server)
    client = ssl.create_default_context()
    authority.configure_trust(client)
    async with site(server) as there:
        there.page("/", "hello")
        way = PublicWeb(look_up=Names(), network=Net(there.port), tls=client)
        assert (await way.get("https://page.example/")).data == b"hello"
        with pytest.raises(NotFetched, match="can't be reached"):
            await way.get("https://other.example/")


async def test_no_more_is_taken_than_the_bound_however_it_is_packed(there: Site) -> None:
    there.page("/long", "a" * 5_000)
    there.pages["/bomb"] = Served(body=gzip.compress(b"a" * 50_000_000), headers={"Content-Encoding": "gzip"})
    there.pages["/br"] = Served(body=b"x", headers={"Content-Encoding": "br"})
    there.pages["/torn"] = Served(body=b"no gzip", headers={"Content-Encoding": "gzip"})
    way, _ = reach(there, most=1_000)
    for path in ("/long", "/bomb"):
        got = await way.get(f"http://page.example{path}")
        assert got.data == b"a" * 1_000 and got.cut
    for path in ("/br", "/torn"):
        with pytest.raises(NotFetched, match="can't be read"):
            await way.get(f"http://page.example{path}")


async def test_a_server_that_drips_is_given_up(there: Site) -> None:
    there.pages["/"] = Served(body=b"a" * 1_000, drip=0.05)
    way = PublicWeb(look_up=Names(), network=Net(there.port), seconds=0.3)
    with pytest.raises(NotFetched, match=r"longer than 0\.3 seconds"):
        await way.get("http://page.example/")


async def test_a_refusal_is_told_with_its_status(there: Site) -> None:
    way, _ = reach(there)
    with pytest.raises(NotFetched, match="status 404"):
        await way.get("http://page.example/missing")
