"""The web page as a whole, through HTTP: signing in, talking, seeing and changing what is remembered."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import stat
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from html import unescape
from importlib import resources
from itertools import count
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from gateway.page import site
from gateway.page.visitors import CODE_FILE, leave_code
from gateway.wording.texts import CATALOGUE
from tests.kit.patience import SECONDS, limit
from tests.kit.served import ANN, BOB, TELEGRAM_TOKEN, Clock, Served
from tests.kit.visit import USED, Guest, Page, grown, paged, words
from tests.platforms.telegram import Control as Telegram
from tests.platforms.telegram import serving as serving_telegram


@pytest.fixture
async def page(tmp_path: Path, unused_tcp_port: int) -> AsyncIterator[Page]:
    async with paged(tmp_path, port=unused_tcp_port) as found:
        yield found


async def memory_of(guest: Guest, said: str) -> str:
    html = (await guest.get("/memory")).text
    links = [part for part in html.split('href="/memory/')[1:] if said in part.partition("</a>")[0]]
    assert len(links) == 1, words(html)
    return links[0].partition('"')[0]


async def found(guest: Guest, path: str) -> str:
    """The words of a list, without the form above it."""
    return words((await guest.get(path)).text.partition('id="found"')[2])


async def test_a_link_from_a_chat_signs_in_once(tmp_path: Path, unused_tcp_port: int) -> None:
    """The code passes through no log: it stands behind the #, and the name is told before anything is done."""
    async with serving_telegram((TELEGRAM_TOKEN,)) as telegram:
        served = Served(tmp_path, telegram=telegram, port=unused_tcp_port, web="{enabled: true}")
        async with paged(tmp_path, port=unused_tcp_port, served=served) as page:
            await telegram.say("/web", user=BOB, name="Bob")
            await telegram.wait(chat=BOB, bot_messages=1)
            link = (await telegram.texts(BOB))[-1].split()[0]
            address, _, code = link.partition("#")
            assert address == f"http://remora.localhost:{unused_tcp_port}/in"

            bob = page.guest()
            assert (await bob.get("/chat")).headers["Location"] == "/in"
            assert (await bob.post("/in/name", code="wrong")).status_code == 404
            assert (await bob.post("/in", code="wrong")).status_code == 403
            assert (await bob.post("/in/name", code=code)).text == "Bob"
            assert (await bob.post("/in", code=link)).status_code == 303, "a whole link that is pasted counts"
            assert "“Bob” on Telegram" in await bob.text("/me")
            assert (await page.guest().post("/in", code=code)).status_code == 403, "spent"

            # One person: what is told on Telegram is known here, and the other way round.
            await telegram.say("/remember I keep bees", user=BOB)
            await telegram.wait(chat=BOB, bot_messages=2)
            assert "bees" in await bob.text("/memory")
            await bob.told("/memory", at="/memory", value="I sail on Sundays")
            await telegram.say("/memory", user=BOB)
            await telegram.wait(chat=BOB, bot_messages=3)
            assert "sail" in (await telegram.texts(BOB))[-1]

            # A block by an admin ends the session at once, though nothing was signed out.
            await telegram.say(f"/block {BOB}", user=ANN, name="Ann")
            await telegram.wait(chat=ANN, bot_messages=1)
            assert (await bob.get("/me")).headers["Location"] == "/in"
            await telegram.say(f"/allow {BOB}", user=ANN)
            await telegram.wait(chat=ANN, bot_messages=2)
            assert (await bob.get("/me")).status_code == 200
            await telegram.say("/web out", user=BOB)
            await telegram.wait(chat=BOB, bot_messages=4)
            assert "1" in (await telegram.texts(BOB))[-1]
            assert (await bob.get("/me")).headers["Location"] == "/in"
    assert code not in (tmp_path / "data" / "remora.db").read_bytes().decode("latin-1")


async def test_whoever_sits_at_the_machine_signs_in_by_a_file(page: Page) -> None:
    """The file is writable by them alone, is taken once, and must not be readable by others."""
    leave_code(page.data, "a-code", "ada")
    left = page.data / CODE_FILE
    assert stat.S_IMODE(left.stat().st_mode) == 0o600
    guest = page.guest()
    assert (await guest.post("/in", code="another")).status_code == 403
    left.chmod(0o644)
    assert (await guest.post("/in", code="a-code")).status_code == 403
    left.chmod(0o600)
    answer = await guest.post("/in", code="a-code")
    assert answer.status_code == 303 and not left.exists()
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie and "SameSite=Lax" in cookie and "Path=/" in cookie
    assert (await guest.text("/me")).count("Signed in") == 1


async def test_sessions_end_one_by_one_or_all(page: Page) -> None:
    """A lost laptop is signed out from another browser."""
    first, second, third = [await page.signed_in() for _ in range(3)]
    html = (await first.get("/me")).text
    numbers = [part.partition('"')[0] for part in html.split('name="which" value="')[1:]]
    assert len(numbers) == 4 and numbers[-1] == "all"
    await first.post("/out", at="/me", which=numbers[1])
    left = [guest for guest in (second, third) if (await guest.get("/me")).status_code == 200]
    assert len(left) == 1 and (await first.get("/me")).status_code == 200
    assert (await left[0].post("/out", at="/me", which="all")).headers["Location"] == "/in?left=1"
    assert (await first.get("/me")).status_code == 303


async def test_what_is_said_is_answered_in_every_tab_of_the_person_and_nowhere_else(page: Page) -> None:
    """Answers come through the stream, and stand on the page that is loaded later."""
    ada, bea = await page.signed_in("ada"), await page.signed_in("bea")
    async with ada.stream() as first, ada.stream() as second, bea.stream() as other:
        sent = await ada.say("My dog is called Rex", headers={"X-Remora": "1"})
        assert sent.status_code == 204
        for tab in (first, second):
            assert "Rex" in await grown(tab, "Rex")
            await grown(tab, "Why this answer")
        await bea.say("hello there", headers={"X-Remora": "1"})
        async with limit():
            async for _, data in other:
                assert "Rex" not in str(data)
                if "Why this answer" in str(data):
                    break
    shown = await ada.text("/chat/main")
    assert shown.count("My dog is called Rex") == 3, "in the talk, above it and in the list"
    assert "Rex" not in await bea.text("/chat/main") and "Rex" not in await bea.text("/memory")
    turn = (await ada.get("/chat/main")).text.partition('href="/why/')[2].partition('"')[0]
    assert "My dog is called Rex" in await ada.text(f"/why/{turn}")
    assert (await bea.get(f"/why/{turn}")).status_code == 404


async def test_asking_for_the_head_of_a_stream_opens_none(page: Page) -> None:
    """It would never end, and take the place of a tab that somebody looks at."""
    ada = await page.signed_in("ada")
    async with ada.stream() as tab, limit():
        for _ in range(9):
            answer = await ada.client.head("/chat/main/events")
            assert answer.status_code == 200 and answer.headers["Content-Type"] == "text/event-stream"
        await ada.say("My dog is called Rex", headers={"X-Remora": "1"})
        assert "Rex" in await grown(tab, "Rex")


async def test_a_message_that_is_sent_twice_is_one(page: Page) -> None:
    """Browsers and people repeat requests; the word in the form tells that it is the same."""
    ada = await page.signed_in()
    nonce = await ada.nonce()
    for _ in range(3):
        await ada.post("/chat/main/say", text="I like rowing", nonce=nonce)
    assert (await ada.text("/chat/main")).count("I like rowing") == 3, "in the talk, above it and in the list"
    await ada.post("/memory", value="I like chess", nonce=nonce)
    assert "already done" in await ada.told("/memory", at="/memory", value="I like chess", nonce=nonce)


async def test_a_receipt_is_read_once_and_back_asks_for_no_form(page: Page) -> None:
    """The page behind a form is one that is read; a form that is sent twice still shows what it did."""
    ada, bea = await page.signed_in("ada"), await page.signed_in("bea")
    nonce = await ada.nonce()
    sent = [await ada.post("/memory", value="I keep bees", nonce=nonce) for _ in range(2)]
    assert {answer.headers["Location"] for answer in sent} == {"/receipt?back=/memory"}
    assert (await bea.get("/receipt?back=/me")).headers["Location"] == "/me"
    assert "bees" in await ada.text("/receipt?back=/memory")
    assert (await ada.get("/receipt?back=/me")).headers["Location"] == "/me"
    for elsewhere in ("//evil.example", "https://evil.example", "/\\evil", ""):
        assert (await ada.get(f"/receipt?back={elsewhere}")).headers["Location"] == "/memory"


async def test_without_a_script_everything_can_be_said_and_pressed(page: Page) -> None:
    """A form waits for its answer, and the page that follows shows it."""
    ada = await page.signed_in()
    answer = await ada.say("/remember I play the oboe")
    assert answer.headers["Location"] == "/chat/main#end"
    assert "oboe" in await ada.text("/chat/main")
    await ada.say("/forget oboe")
    ada.receipt = (await ada.get("/chat/main")).text
    key, data, label = ada.buttons()[0]
    await ada.post("/chat/main/press", key=key, data=data)
    assert label not in [label for _, _, label in ada.buttons()] or "oboe" not in await ada.text("/memory")
    assert "oboe" not in await ada.text("/memory")


async def test_conversations_stand_apart_and_are_found_again(page: Page) -> None:
    ada = await page.signed_in()
    await ada.say("The roses need water", thread="garden")
    await ada.say("The report is due", thread="work")
    assert "roses" in await ada.text("/chat/garden") and "report is due" in await ada.text("/chat/work")
    log = (await ada.get("/chat/garden")).text.partition('id="log"')[2]
    assert "report" not in log
    assert (await ada.get("/chat")).headers["Location"] == "/chat/work#end"
    for bad in ("forms", "A", "a b", "x" * 50):
        assert (await ada.get(f"/chat/{bad}")).status_code == 404


async def test_a_large_file_is_taken_and_a_larger_one_is_refused_in_words(page: Page) -> None:
    """The documented size is 10 MB; parsers that read as a stream stop at a fraction of it."""
    ada = await page.signed_in()
    text = b"The pump is in the shed. " * 120_000
    await ada.say("look", files={"file": ("pump.txt", text, "text/plain")})
    assert "pump.txt" in await ada.text("/chat/main")
    picture = ("big.png", b"\x89PNG\r\n\x1a\n" + bytes(9_900_000), "image/png")
    assert (await ada.say("and this", files={"file": picture})).status_code == 303
    answer = await ada.say("too large", files={"file": ("big.bin", bytes(10_400_000), "application/octet-stream")})
    assert answer.status_code == 413 and "more than is taken" in words(answer.text)


async def test_strangers_are_sent_away_before_they_send(page: Page) -> None:
    """Their forms hold a code; whatever is larger is refused by its head, in their language, on a page that works."""
    guest = page.guest(**{"Accept-Language": "de"})
    refused = await guest.post("/in", code="x" * 9_000)
    assert refused.status_code == 413 and "mehr geschickt" in words(refused.text)
    assert 'href="/"' in refused.text and "default-src 'none'" in refused.headers["Content-Security-Policy"]
    for path, status in (("/chat/main/say", 401), ("/nowhere", 404), ("/chat", 405)):
        reader, writer = await asyncio.open_connection("127.0.0.1", httpx.URL(page.url).port)
        head = (
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-origin\r\nContent-Length: 9000000\r\n\r\n"
        )
        writer.write(head.encode())
        async with limit():
            assert (await reader.readline()).startswith(f"HTTP/1.1 {status} ".encode())
        writer.close()


async def test_files_go_both_ways(page: Page) -> None:
    """A file that is sent is read; an export is saved as a file."""
    ada = await page.signed_in()
    await ada.say("look", files={"file": ("notes.txt", b"the pump is in the shed", "text/plain")})
    assert "notes.txt" in await ada.text("/chat/main")
    await ada.told("/memory", at="/memory", value="I collect stamps")
    export = await ada.post("/me", at="/me", action="export")
    assert export.headers["Content-Disposition"].startswith("attachment") and b"stamps" in export.content
    await ada.say("/memory export")
    html = (await ada.get("/chat/main")).text
    path = html.partition('href="/chat/main/file/')[2].partition('"')[0]
    saved = await ada.get(f"/chat/main/file/{path}")
    assert b"stamps" in saved.content and saved.headers["Content-Type"] == "application/octet-stream"
    bea = await page.signed_in("bea")
    assert (await bea.get(f"/chat/main/file/{path}")).status_code == 404


async def test_a_memory_that_is_too_long_is_cut_and_not_typed_anew(page: Page) -> None:
    """The form has no copy of what was typed into it."""
    ada = await page.signed_in()
    assert "Refused" not in await ada.told("/memory", at="/memory", value="the shed holds " + "tools " * 1_000)
    assert "the shed holds" in await ada.text("/memory")


async def test_a_memory_is_found_corrected_pinned_and_forgotten(page: Page) -> None:
    ada = await page.signed_in()
    await ada.told("/memory", at="/memory", value="I live in Bern")
    await ada.told("/memory", at="/memory", value="I am allergic to nuts")
    found = await memory_of(ada, "Bern")
    assert "nuts" not in await ada.text("/memory?q=Bern") and "nuts" in await ada.text("/memory?q=category:health")
    assert "Nothing found" in await ada.text("/memory?q=about:Zebulon")
    assert "2" in await ada.text("/memory?q=since:yesterday")

    at = f"/memory/{found}"
    assert "pinned" not in await ada.text(at)
    await ada.told(at, at=at, action="pin")
    assert "pinned" in await ada.text(at)
    assert "#my #home" in await ada.told(at, at=at, action="tag", tag="My home")
    assert "Bern" in await ada.text("/memory?q=tag:home") and "tag=home" in (await ada.get("/memory")).text
    assert "Keys you have" in await ada.text("/memory?q=key:hme")
    await ada.told(at, at=at, action="untag", tag="home")
    assert "#home" not in await ada.text(at)
    assert (await ada.post(at, at=at, action="tag", tag="-\n")).status_code == 400
    corrected = await ada.told(at, at=at, action="edit", value="Thun")
    assert "You live in Thun" in corrected and "Corrected" in corrected, "a correction leads to the new version"
    assert "m_" not in corrected.partition("Corrected")[2].partition(".")[0]
    old, new = await ada.text(at), await memory_of(ada, "Thun")
    assert "Held until" in old and "Bern" in (await ada.get(f"/memory/{new}")).text

    at = f"/memory/{new}"
    assert (await ada.post("/memory/5", at=at, action="forget")).status_code == 404
    emptied = await ada.post(at, at=at, action="edit", value=" ")
    assert (emptied.status_code, emptied.headers["Location"]) == (303, at)
    preview = await ada.told(at, at=at, action="forget")
    assert "Thun" in preview and "Forget it Keep it" in preview, "no message is its source"
    assert "/forget" not in preview and "yes" not in preview
    ((number, _),) = await asked(ada)
    assert "Forgotten" in await ada.told("/questions", at=at, id=number, choice="words", back="/memory")
    assert "Thun" not in await ada.text("/memory") and (await ada.get(at)).status_code == 404
    bea = await page.signed_in("bea")
    nuts = await memory_of(ada, "nuts")
    assert (await bea.get(f"/memory/{nuts}")).status_code == 404
    await bea.told(f"/memory/{nuts}", at="/memory", action="pin")
    assert "pinned" not in await ada.text(f"/memory/{nuts}")


async def test_the_list_as_of_a_day_shows_what_held_then(page: Page) -> None:
    ada = await page.signed_in()
    await ada.told("/memory", at="/memory", value="I live in Bern")
    assert "Bern" in await ada.text("/memory?on=2999-01-01")
    assert "Nothing found" in await ada.text("/memory?on=1999-01-01")
    assert "not a date" in await ada.text("/memory?on=tomorrow")


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Etc/GMT+12"])
async def test_no_date_in_an_address_or_a_store_is_an_error(page: Page, zone: str) -> None:
    """At the ends of the calendar, east and west; an import may have brought any year."""
    ada = await page.signed_in()
    await ada.say(f"/profile timezone {zone}")
    for day in ("0001-01-01", "9999-12-31"):
        await ada.say(f"/remember the calendar ends on {day}")
        await ada.say(f"what happened on {day}?")
        await ada.say(f"/memory search since:{day}")
    ends = [-62_135_596_800_000, 253_402_300_799_999]
    await page.alter(
        ("update memories set valid_from = ?, learned_at = ? where id = (select min(id) from memories)", ends[:1] * 2),
        ("update memories set valid_from = ?, learned_at = ? where id = (select max(id) from memories)", ends[1:] * 2),
    )
    days = ["0001-01-01", "9999-12-31", "10000-01-01", "0000-00-00", "-1", "9" * 400, "٩٩٩٩-١٢-٣١", "2026-W53-7", "\0"]
    for day in days:
        for path in ("/memory?on=", "/memory?q=on:", "/memory?q=since:", "/memory?q=until:", "/timeline?month=",
                     "/timeline?until=", "/memory?page=", "/timeline?page=", "/why/", "/night/", "/entities/"):  # fmt: skip
            answer = await ada.get(path + quote(day))
            assert answer.status_code < 500, (path, day)
    for path in ("/memory", "/timeline", "/timeline?month=0001-01", "/timeline?month=9999-12", "/memory?on=9999-12-31"):
        assert "the calendar ends" in (await ada.text(path)).casefold(), path
    assert "went wrong" not in await ada.text("/chat/main")


async def test_the_reasons_for_an_answer_are_shown_in_the_settings_of_a_new_installation(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    """With the embedder, whose parts of a score the other tests never see; in every language."""
    clock = Clock()
    served = Served(tmp_path, port=unused_tcp_port, now=clock, shipped=True)
    async with paged(tmp_path, port=unused_tcp_port, served=served) as page:
        ada = await page.signed_in()
        await ada.say("I live in Bern and my sister is called Marta")
        found: set[str] = set()
        async with limit():
            # The models load beside the first questions, and a question waits for them only so long.
            for nth in count():
                clock.shift += 30
                await ada.say(f"Where is my home, question {nth}?")
                (row,) = await page.alter(
                    ("select parts from recalls where parts <> '{}' order by turn_id desc limit 1", [])
                )
                found |= set(json.loads(row[0]))
                if {"late", "vectors"} <= found:
                    break
        turn = (await ada.get("/chat/main")).text.rpartition('href="/why/')[2].partition("?")[0].partition('"')[0]
        for language in CATALOGUE:
            await ada.say(f"/profile language {language}")
            for path in (f"/why/{turn}", f"/why/{turn}?wrong=1"):
                assert CATALOGUE[language]["part.vectors"] in await ada.text(path)


async def test_names_time_and_self_are_shown(page: Page) -> None:
    """Every page has something to say once something is known, and says what to do before."""
    ada = await page.signed_in()
    for path in ("/memory", "/timeline", "/entities", "/night"):
        assert 'class="empty"' in (await ada.get(path)).text
    await ada.told("/memory", at="/memory", value="My sister is called Marta Keller")
    await ada.told("/memory", at="/memory", value="Marta Keller works at Acme in Lisbon")
    names = await ada.text("/entities")
    assert "Marta Keller" in names
    number = (
        (await ada.get("/entities")).text.partition('<ul class="names"><li><a href="/entities/')[2].partition('"')[0]
    )
    assert "Memories that mention it" in await ada.text(f"/entities/{number}")
    assert (await ada.get("/entities/999999")).status_code == 404
    assert "Marta" in await ada.text("/timeline")
    for nth in range(8):
        await ada.told("/memory", at="/memory", value=f"I like tune number {nth}")
    line = (await ada.get("/timeline")).text
    month = line.partition('href="/timeline?')[2].partition('"')[0]
    assert line.count('href="/memory/') == 5 and month.startswith("month=")
    assert (await ada.get(f"/timeline?{month}")).text.count('href="/memory/') > 8
    assert (await ada.get("/timeline?month=1999-01")).text.count('href="/memory/') == 5
    assert "I learn from what you say" in await ada.text("/me")
    await ada.told("/me", at="/me", action="out")
    assert "I learn nothing from what you say" in await ada.text("/me")


async def test_years_of_memories_are_leafed_through(page: Page) -> None:
    """The time line goes back to the first month, and long lists of a month and of a day have pages."""
    ada = await page.signed_in()
    await ada.told("/memory", at="/memory", value="I like tune number 0")
    columns = [name for (name,) in await page.alter(("select name from pragma_table_info('memories')", []))]
    # One a month for 30 months, and 90 of one month before these.
    days = [*((31 * nth, nth) for nth in range(1, 31)), *((31 * 40, nth) for nth in range(100, 190))]
    values = {"short_id": "m.short_id || d.nth", "value": "m.value || d.nth"} | {
        name: f"m.{name} - d.days * 86400000" for name in ("valid_from", "learned_at", "last_reinforced_at")
    }
    names = [name for name in columns if name != "id"]
    copied = (
        "with d(days, nth) as (select json_extract(value, '$[0]'), json_extract(value, '$[1]') from json_each(?))"
        f" insert into memories ({', '.join(names)}) select {', '.join(values.get(n, f'm.{n}') for n in names)}"
        " from memories m, d where m.kind = 'fact'"
    )
    await page.alter((copied, [json.dumps(days)]))
    path, months = "/timeline", 0
    while path:
        html = (await ada.get(path)).text
        months += html.count("<h2>")
        path = unescape(html.partition('rel="next" href="')[2].partition('"')[0])
    assert months == 32
    alone = "/timeline?month=" + html.partition("/timeline?month=")[2].partition('"')[0]
    pages = [(await ada.get(f"{alone}&page={nth}")).text.count('href="/memory/') for nth in (1, 2, 3, 4)]
    assert pages == [40, 40, 10, 0]
    held = [(await ada.get(f"/memory?on=2999-01-01&page={nth}")).text.count('href="/memory/') for nth in (1, 4)]
    assert held == [40, 1]


async def test_a_page_speaks_the_language_of_its_visitor(page: Page) -> None:
    """The browser's, the first of its list that there is, until the visitor has chosen one."""
    ada = await page.signed_in("ada", **{"Accept-Language": "zh-CN,zh;q=0.9"})
    assert "记忆" in await ada.text("/memory")
    assert 'lang="zh"' in (await ada.get("/memory")).text

    bea = await page.signed_in("bea", **{"Accept-Language": "pt-BR,de-AT;q=0.8,en;q=0.5"})
    assert 'lang="de"' in (await bea.get("/memory")).text
    menu = "Chat Gedächtnis Termine Du"
    pages = {"/chat/main": "Neues Gespräch", "/memory": "Noch nichts gemerkt", "/timeline": "Noch nichts hat ein Datum",
             "/entities": "Noch keine Namen", "/night": "Noch keine Nacht", "/me": "„bea“ auf dem Terminal"}  # fmt: skip
    for path, said in pages.items():
        shown = await bea.text(path)
        assert menu in shown and said in shown, (path, shown)
    assert "Unter dieser Adresse gibt es nichts." in words((await bea.get("/nowhere")).text)
    assert "Weiter" in words((await page.guest(**{"Accept-Language": "de"}).get("/in")).text)

    async with bea.stream() as events:
        await bea.say("/profile language fr")
        await grown(events, "en français")
    assert "Discussion Mémoire Rappels" in await bea.text("/me")
    # Also where nothing is, and where a form is refused.
    lost = (await bea.get("/nowhere")).text
    assert 'lang="fr"' in lost and "Discussion Mémoire Rappels" in words(lost)
    assert 'lang="fr"' in (await bea.post("/memory", value="x", nonce="x")).text


def test_the_file_of_others_is_as_they_made_it() -> None:
    folder = resources.files("gateway.page") / "static"
    for line in (folder / "SHA256SUMS").read_text("utf-8").splitlines():
        digest, name = line.split()
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest


def test_nobody_pays_for_a_page_that_is_off() -> None:
    """The terminal chat and a bot without a page load none of it."""
    code = "import sys; from gateway import app, serve; print([m for m in sys.modules if m.partition('.')[0] in ('jinja2', 'markupsafe') or m.startswith(('gateway.page', 'channels.web'))])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_a_key_is_made_shown_once_used_and_revoked(tmp_path: Path, unused_tcp_port: int) -> None:
    served = Served(tmp_path, port=unused_tcp_port, api="{enabled: true}", web="{enabled: true}")
    async with paged(tmp_path, port=unused_tcp_port, served=served) as page:
        ada = await page.signed_in()
        await ada.told("/memory", at="/memory", value="I keep bees")
        made = await ada.told("/me", at="/me", action="make", label="Editor", scopes="read")
        secret = next(word for word in made.split() if word.startswith("rk_")).rstrip(".,")
        mine = await ada.text("/me")
        assert "Editor" in mine and secret not in mine

        async with httpx.AsyncClient(base_url=page.url, trust_env=False, timeout=SECONDS) as program:
            program.headers["Authorization"] = f"Bearer {secret}"
            listed = (await program.get("/v1/memories")).json()
            assert [one["value"] for one in listed["results"]] == ["I keep bees"]
            refused = await program.post("/v1/memories", json={"text": "I keep wasps"})
            assert refused.status_code == 403, "it may only read"

            number = mine.partition("Editor")[0].split()[-1].strip("#.:")
            await ada.told("/me", at="/me", action="revoke", number=number)
            assert (await program.get("/v1/memories")).status_code == 401
        assert "Editor" not in await ada.text("/me")
        assert (await ada.post("/me", at="/me", action="make", label="x", scopes="all")).status_code == 400


# Admins -------------------------------------------------------------------------------------------------------------

ADMIN_PAGES = ("/admin", "/admin/jobs", "/admin/usage", "/admin/dead", "/admin/people", "/admin/log")


async def signed_in_by_chat(page: Page, telegram: Telegram, person: int, name: str) -> Guest:
    """A browser in which somebody has opened the link that /web gave them."""
    before = len(await telegram.texts(person))
    await telegram.say("/web", user=person, name=name)
    await telegram.wait(chat=person, bot_messages=before + 1)
    guest = page.guest()
    code = (await telegram.texts(person))[-1].split()[0].partition("#")[2]
    assert (await guest.post("/in", code=code)).status_code == 303
    return guest


async def test_an_admin_is_one_on_the_page_for_an_hour(tmp_path: Path, unused_tcp_port: int) -> None:
    """Nobody else finds the pages; after the hour they ask for a new link, and forms of before do nothing."""
    clock = Clock()
    async with serving_telegram((TELEGRAM_TOKEN,)) as telegram:
        served = Served(tmp_path, telegram=telegram, port=unused_tcp_port, now=clock, web="{enabled: true}")
        async with paged(tmp_path, port=unused_tcp_port, served=served) as page:
            ann = await signed_in_by_chat(page, telegram, ANN, "Ann")
            bob = await signed_in_by_chat(page, telegram, BOB, "Bob")
            for path in ADMIN_PAGES:
                assert "You are an admin here until" in await ann.text(path), path
                assert (await bob.get(path)).status_code == 404, path
            for path, form in (("/admin", {}), ("/admin/jobs", {"job": "tidy", "agent": "assistant"})):
                assert (await bob.post(path, at="/me", **form)).status_code == 404
            assert ">Admin</a>" in (await ann.get("/me")).text and ">Admin</a>" not in (await bob.get("/me")).text
            await ann.say("/agents")
            assert "offline" not in await ann.text("/chat/main"), "in conversations nobody is an admin"

            nonce = await ann.nonce("/admin")
            clock.shift = 3_601
            for path in ADMIN_PAGES:
                assert (await ann.get(path)).status_code == 403, path
            answer = await ann.post("/admin/people", action="look", who=str(BOB), nonce=nonce)
            assert answer.status_code == 403 and "new link" in answer.text
            assert (await ann.get("/me")).status_code == 200


async def test_a_look_is_a_command_that_the_person_sees(tmp_path: Path, unused_tcp_port: int) -> None:
    """Memories of somebody are shown by a form alone, and that person sees on their page who looked."""
    async with serving_telegram((TELEGRAM_TOKEN,)) as telegram:
        served = Served(tmp_path, telegram=telegram, port=unused_tcp_port, web="{enabled: true}")
        async with paged(tmp_path, port=unused_tcp_port, served=served) as page:
            ann = await signed_in_by_chat(page, telegram, ANN, "Ann")
            await telegram.say("/remember I keep bees", user=BOB, name="Bob")
            await telegram.say("My boat is called Nix", user=BOB)
            await telegram.wait(chat=BOB, bot_messages=2)
            bob = await signed_in_by_chat(page, telegram, BOB, "Bob")
            assert "No admin has looked" in await bob.text("/me")
            listed = await ann.text("/admin/people")
            assert "Bob" in listed and "bees" not in listed and "Nix" not in listed
            assert "No admin has looked" in await bob.text("/me"), "the list alone is no look"
            assert "bees" in await ann.told("/admin/people", at="/admin/people", action="look", who=str(BOB))
            assert "Ann" in await bob.text("/me") and "No admin has looked" not in await bob.text("/me")

            # People who may be looked at have a number.
            refused = await ann.post("/admin/people", at="/admin/people", action="look", who="bob")
            assert refused.status_code == 400
            assert "no longer talk" in await ann.told("/admin/people", at="/admin/people", action="block", who=str(BOB))
            assert (await bob.get("/me")).headers["Location"] == "/in"
            assert "blocked" in await ann.text("/admin/people")
            assert "can talk to me" in await ann.told("/admin/people", at="/admin/people", action="allow", who=str(BOB))
            assert (await bob.get("/me")).status_code == 200

            # A code from the page lets a stranger in.
            code = re.search(
                r"[A-Z2-9]{4}-[A-Z2-9]{4}", await ann.told("/admin/people", at="/admin/people", action="pair")
            )
            assert code is not None
            await telegram.say(code[0], user=99, name="Cyd")
            await telegram.wait(chat=99, bot_messages=1)
            await telegram.say("I sing in a choir", user=99)
            await telegram.wait(chat=99, bot_messages=2)
            assert "Cyd" in await ann.text("/admin/people")


async def test_what_was_not_delivered_is_sent_again_or_dropped(tmp_path: Path, unused_tcp_port: int) -> None:
    """By its number; a number of another channel is none."""
    async with serving_telegram((TELEGRAM_TOKEN,)) as telegram:
        served = Served(tmp_path, telegram=telegram, port=unused_tcp_port, web="{enabled: true}")
        async with paged(tmp_path, port=unused_tcp_port, served=served) as page:
            ann = await signed_in_by_chat(page, telegram, ANN, "Ann")
            await telegram.say("/remember I keep bees", user=BOB, name="Bob")
            await telegram.wait(chat=BOB, bot_messages=1)
            assert "Everything was delivered" in await ann.text("/admin/dead")
            lost = (
                "insert into outbox (session_key, kind, text, markup, buttons, state, error, run, attempts, not_before,"
                " created_at, chunk) select session_key, 'message', ?, '', '[]', 'dead', 'blocked', run, 3, 0,"
                " created_at, 0 from outbox where session_key like 'telegram:8:%' order by id desc limit 1 returning id"
            )
            numbers = [str((await page.alter((lost, [text])))[0][0]) for text in ("lost one", "lost two", "lost three")]
            assert "Not delivered on telegram: 3" in await ann.text("/admin/dead")
            assert "sent again" in await ann.told("/admin/dead", at="/admin/dead", action="retry", number=numbers[0])
            await telegram.wait(chat=BOB, bot_messages=2)
            assert (await telegram.texts(BOB))[-1] == "lost one"
            assert "is deleted" in await ann.told("/admin/dead", at="/admin/dead", action="drop", number=numbers[1])
            assert "no undelivered" in await ann.told(
                "/admin/dead", at="/admin/dead", action="retry", number=numbers[1]
            )
            assert "Deleted: 1" in await ann.told("/admin/dead", at="/admin/dead", action="purge")
            assert "Everything was delivered" in await ann.text("/admin/dead")


async def test_whoever_sits_at_the_machine_sees_how_it_is(page: Page) -> None:
    """Health, jobs, usage and backups, with no platform at all; another name of the terminal is no admin."""
    you, ada = await page.signed_in("you"), await page.signed_in("ada")
    for path in ADMIN_PAGES:
        assert (await ada.get(path)).status_code == 404, path
    health = await you.text("/admin")
    assert "Everything works" in health and "web-assistant" in health and "remora.db" in health
    assert "Backed up" in await you.told("/admin", at="/admin")
    jobs = await you.text("/admin/jobs")
    assert "Clean up and back up" in jobs
    assert "starts as soon as" in await you.told("/admin/jobs", at="/admin/jobs", job="tidy", agent="assistant")
    assert "No model was called" in await you.text("/admin/usage")
    assert "nobody to let in" in await you.text("/admin/people")
    for action in ("look", "allow", "pair"):
        answer = await you.post("/admin/people", at="/admin", action=action, who="ada")
        assert answer.status_code == 404
    told = await you.told("/answer", at="/me", key="x", data="run:/admin memory ada list", back="/me")
    assert "/admin memory" in told, "only how it is used"


async def test_usage_is_shown_by_day_with_its_cost(page: Page) -> None:
    you = await page.signed_in("you")
    await you.say("hello")
    day, now = 86_400_000, int(time.time() * 1000)
    for back, purpose, tokens, cost in ((0, "chat", 700, 0.25), (3, "extract", 300, 0.5), (90, "chat", 999_999, 9.0)):
        await page.alter((USED, [purpose, tokens, cost, now - back * day]))
    html = (await you.get("/admin/usage")).text
    shown = words(html)
    assert "711" in shown and "311" in shown and "0.2500" in shown and "0.5000" in shown and "999999" not in shown
    assert all(title in shown for title in ("Answers a day", "Time of an answer", "Tokens a day", "Cost a day"))
    tables = {part.partition("<")[0] for part in html.split("<figcaption><strong>")[1:]}
    assert len(tables) == 4 and html.count("As a table") == 4, "each picture has its table"
    agents = words(html.partition("<h2>By agent</h2>")[2].partition("</section>")[0])
    assert agents.endswith("assistant 2 1 022 0.7500"), agents


# Questions ----------------------------------------------------------------------------------------------------------


async def asked(guest: Guest) -> list[tuple[str, list[str]]]:
    """The ids of the questions on the page, each with its choices."""
    html = (await guest.get("/questions")).text
    return [
        (part.partition('"')[0], re.findall(r'name="choice" value="(\w+)"', part))
        for part in html.split('name="id" value="')[1:]
    ]


async def test_a_question_of_a_chat_is_answered_on_the_page(tmp_path: Path, unused_tcp_port: int) -> None:
    """Shown with what would go, answered as by its button there; to anybody else it is no question."""
    async with serving_telegram((TELEGRAM_TOKEN,)) as telegram:
        served = Served(tmp_path, telegram=telegram, port=unused_tcp_port, web="{enabled: true}")
        async with paged(tmp_path, port=unused_tcp_port, served=served) as page:
            ann = await signed_in_by_chat(page, telegram, ANN, "Ann")
            bob = await signed_in_by_chat(page, telegram, BOB, "Bob")
            assert "Nothing waits" in await bob.text("/questions")
            await telegram.say("/remember I keep bees", user=BOB)
            await telegram.wait(chat=BOB, bot_messages=2)
            await telegram.say("/forget bees", user=BOB)
            await telegram.wait(chat=BOB, bot_messages=3)
            shown = await bob.text("/questions")
            assert "Forget this?" in shown and "bees" in shown and "Asked on Telegram" in shown
            ((number, choices),) = await asked(bob)
            assert choices == ["words", "no"]  # there is no message to keep
            assert "bees" not in await ann.text("/questions")
            for guest, choice in ((ann, "words"), (bob, "do"), (bob, "")):
                answer = await guest.post("/questions", at="/me", id=number, choice=choice)
                assert answer.status_code == 404 and "no longer open" in answer.text
            told = await bob.told("/questions", at="/questions", id=number, choice="words")
            assert "in your chat on Telegram" in told
            await telegram.wait(chat=BOB, bot_messages=4)
            assert "Forgotten" in (await telegram.texts(BOB))[-1]
            assert "bees" not in await bob.text("/memory") and await asked(bob) == []
            again = await bob.post("/questions", at="/me", id=number, choice="words")
            assert again.status_code == 404

            # A question to an admin about others is answered where it was asked.
            await telegram.say("I have a canary", user=BOB)
            await telegram.wait(chat=BOB, bot_messages=5)
            listed = await ann.told("/admin/people", at="/admin/people", action="look", who=str(BOB))
            found = re.search(r"m_[a-z0-9]+", listed)
            assert found is not None
            await telegram.say(f"/admin memory {BOB} forget {found[0]}", user=ANN)
            await telegram.wait(chat=ANN, bot_messages=2)
            assert await asked(ann) == []


async def test_questions_of_the_page_itself_are_answered_where_they_stand(page: Page) -> None:
    """A form's with a receipt, a conversation's in the conversation."""
    ada = await page.signed_in()
    for text in ("I play the oboe", "I play chess"):
        await ada.told("/memory", at="/memory", value=text)
    assert 'class="waits"' not in (await ada.get("/memory")).text
    await ada.told("/forget", at="/memory", ids=await memory_of(ada, "oboe"))
    assert 'href="/questions" aria-label="Questions that wait for you: 1"' in (await ada.get("/memory")).text
    ((number, _),) = await asked(ada)
    assert "Forgotten" in await ada.told("/questions", at="/questions", id=number, choice="words")
    await ada.say("/forget chess", thread="games")
    assert "chess" in await ada.text("/questions")
    ((number, _),) = await asked(ada)
    answer = await ada.post("/questions", at="/questions", id=number, choice="no")
    assert answer.headers["Location"] == "/chat/games#end"
    assert "chess" in await ada.text("/memory") and await asked(ada) == []
    await ada.told("/me", at="/me", action="delete")
    ((number, choices),) = await asked(ada)
    assert choices == ["yes", "no"] and "Erase everything" in await ada.text("/questions")
    for typed in ("", "yes"):
        refused = await ada.post("/questions", at="/questions", id=number, choice="yes", typed=typed)
        assert refused.status_code == 400 and "type “erase” here" in refused.text
    await ada.told("/questions", at="/questions", id=number, choice="no")
    assert "chess" in await ada.text("/memory")
    await ada.say("/remind water the plants")
    assert "Type the time" in await ada.text("/questions")


# Beside answers and in the list -------------------------------------------------------------------------------------


async def test_what_was_said_is_forgotten_beside_its_answer(page: Page) -> None:
    """Of any answer, not only the last: asked in the conversation, with all that the words taught."""
    ada = await page.signed_in()
    for text in ("My boat is called Nix", "I live in Bern", "Where do I live?"):
        await ada.say(text)
    html = (await ada.get("/chat/main")).text
    turns = list(dict.fromkeys(re.findall(r'name="turn" value="(\d+)"', html)))
    assert len(turns) == 3
    await ada.post("/chat/main/forget", turn=turns[0])
    ada.receipt = (await ada.get("/chat/main")).text
    key, data, _ = ada.buttons()[0]
    await ada.post("/chat/main/press", key=key, data=data)
    shown = await ada.text("/memory")
    assert "Nix" not in shown and "Bern" in shown and "Nix" not in await ada.text("/chat/main")
    eve = await page.signed_in("eve")
    assert (await eve.post("/chat/main/forget", turn=turns[1])).status_code == 404
    assert (await eve.post("/chat/main/forget", turn="x")).status_code == 404

    # A mistake in an answer is corrected beside what the answer used.
    why = await ada.get(f"/why/{turns[2]}?wrong=1")
    assert "Which of these is wrong?" in words(why.text) and '<details class="correct" open>' in why.text
    memory = re.search(r'action="(/memory/m_\w+)"', why.text)
    assert memory is not None
    await ada.post(memory[1], at="/me", action="edit", value="Thun")
    assert "You live in Thun" in await ada.text("/memory")


async def test_the_list_shows_what_is_pinned_fading_or_of_a_place(page: Page) -> None:
    ada = await page.signed_in()
    for text in ("I live in Bern", "I play chess", "I was in Lisbon in spring with Marta"):
        await ada.say(text)
    chess = await memory_of(ada, "chess")
    await ada.post(f"/memory/{chess}", at=f"/memory/{chess}", action="pin")
    pinned = await found(ada, "/memory?show=pinned")
    assert "1 found · Pinned" in pinned and "chess" in pinned and "Bern" not in pinned
    assert "Nothing found" in await ada.text("/memory?show=fading")
    await page.alter(("update memories set last_reinforced_at = last_reinforced_at - 86400000 * ?", [400]))
    fading = await ada.text("/memory?show=fading")
    assert "Fading" in fading and "chess" not in fading and "Nothing found" not in fading
    assert "chess" in await ada.text("/memory?show=other"), "what is no state is none"
    html = (await ada.get("/memory")).text
    places = re.findall(r'href="/memory\?(place=[^"]+)"', html)
    assert places, html
    assert "found" in await ada.text(f"/memory?{places[0]}")


async def test_forget_these_takes_what_is_listed_and_nothing_else(page: Page) -> None:
    """Rows that match by the time of the answer stay, and so do those of others that the same words find."""
    ada = await page.signed_in()
    for text in ("I like green tea", "I like black tea", "I live in Bern"):
        await ada.say(text)
    html = (await ada.get("/memory?q=tea")).text
    ids = unescape(html.partition('name="ids" value="')[2].partition('"')[0])
    assert {one[:2] for one in ids.split()} == {"m_", "s_"} and html.count('<meter class="fits"') == len(ids.split())
    bea = await page.signed_in("bea")
    assert "nothing here to forget" in await bea.told("/forget", at="/memory", ids=ids)
    assert (await ada.post("/forget", at="/memory", ids="me")).status_code == 400
    await ada.say("I like white tea", thread="later")
    listed = await ada.told("/forget", at="/memory", ids=ids)
    assert "green tea" in listed and "black tea" in listed and "white" not in listed and "Bern" not in listed
    assert "Forget these 2 and erase 2 messages Forget, keep the messages Keep it" in listed
    ((number, _),) = await asked(ada)
    assert "Forgotten" in await ada.told("/questions", at="/questions", id=number, choice="words")
    left = await ada.text("/memory")
    assert "green" not in left and "black" not in left and "white tea" in left and "Bern" in left


async def test_what_is_new_since_the_last_visit_is_marked(tmp_path: Path, unused_tcp_port: int) -> None:
    """A visit ends after half an hour without a request; its end outlives a restart, with the session."""
    clock = Clock()
    served = Served(tmp_path, port=unused_tcp_port, now=clock)
    async with paged(tmp_path, port=unused_tcp_port, served=served) as page:
        ada = await page.signed_in()
        await ada.told("/memory", at="/memory", value="I live in Bern")
        assert "New since" not in await ada.text("/memory")
        clock.shift += 3_600
        assert "New since" not in await ada.text("/memory")
        await ada.told("/memory", at="/memory", value="I play chess")
        shown = await ada.text("/memory")
        assert "New since you were here 1" in shown and "new" in shown
        new = await found(ada, "/memory?show=new")
        assert "chess" in new and "Bern" not in new
        clock.shift += 3_600
        assert "New since" not in await ada.text("/memory")


async def test_a_tab_that_only_stays_open_is_no_visit(tmp_path: Path, unused_tcp_port: int) -> None:
    """Its scripts ask by themselves; what came meanwhile is new to the person who comes back."""
    clock = Clock()
    served = Served(tmp_path, port=unused_tcp_port, now=clock)
    async with paged(tmp_path, port=unused_tcp_port, served=served) as page:
        ada = await page.signed_in()
        await ada.told("/memory", at="/memory", value="I live in Bern")
        for _ in range(4):
            clock.shift += 1_200
            for path in ("/waiting", "/chat/main/log", "/chat/main/talks"):
                assert (await ada.get(path)).status_code == 200
            async with ada.client.stream("GET", "/chat/main/events") as answer:
                assert answer.status_code == 200
        await ada.told("/memory", at="/memory", value="I play chess")
        assert "New since you were here 1" in await ada.text("/memory")


async def test_signing_out_takes_what_the_browser_was_told(page: Page) -> None:
    ada = await page.signed_in()
    await ada.post("/notify", at="/me", on="1")
    assert "remora-notify" in ada.client.cookies
    await ada.post("/out", at="/me")
    assert "remora-notify" not in ada.client.cookies


def test_scripts_of_one_page_declare_no_name_twice() -> None:
    """They share one scope: the second that declares a name does not run at all."""
    static = Path(site.__file__).parent / "static"
    for template in (Path(site.__file__).parent / "templates").glob("*.html"):
        scripts = re.findall(r'<script src="\{\{ static\("([^"]+)"\) \}\}', template.read_text("utf-8"))
        text = "\n".join((static / script).read_text("utf-8") for script in scripts)
        declared = re.findall(r"^(?:const|let|class|function|async function) (\w+)", text, re.MULTILINE)
        for several in re.findall(r"^(?:const|let) \{(.*?)\}", text, re.MULTILINE):
            declared += [name.rpartition(":")[2].strip() for name in several.split(",")]
        assert [name for name, times in Counter(declared).items() if times > 1] == [], template.name


async def test_filters_are_picked_from_lists(page: Page) -> None:
    ada = await page.signed_in()
    for text in ("I live in Bern", "My sister is called Marta Keller", "I am allergic to nuts"):
        await ada.told("/memory", at="/memory", value=text)
    html = (await ada.get("/memory")).text
    for option in ('<option value="health">Health (1)', '<option value="Marta Keller">Marta Keller (1)'):
        assert option in html, words(html)
    assert "health <small>1</small>".casefold() in html.casefold()
    picked = (await ada.get("/memory?category=health&about=")).text
    assert "nuts" in picked and ">You live in Bern<" not in picked and '<option value="health" selected>' in picked
    assert "Marta" in await ada.text("/memory?about=Marta+Keller") and "1 found" in await ada.text("/memory?place=Bern")
    assert "Nothing found" in await ada.text("/memory?category=health&about=Marta+Keller")


async def test_a_quote_leads_to_the_platforms_own_message(tmp_path: Path, unused_tcp_port: int) -> None:
    """Where the platform has an address for it: in a supergroup of Telegram, not in a private chat."""
    group = -1001234567890
    async with serving_telegram((TELEGRAM_TOKEN,)) as telegram:
        served = Served(tmp_path, telegram=telegram, port=unused_tcp_port, web="{enabled: true}")
        config = tmp_path / "config.yaml"
        config.write_text(
            config.read_text().replace("admins: [7]}", f"admins: [7], groups: [{group}], group_members: everyone}}")
        )
        async with paged(tmp_path, port=unused_tcp_port, served=served) as page:
            bob = await signed_in_by_chat(page, telegram, BOB, "Bob")
            await telegram.say("I play the oboe", user=BOB)
            await telegram.wait(chat=BOB, bot_messages=2)
            oboe = await memory_of(bob, "oboe")
            html = (await bob.get(f"/memory/{oboe}")).text
            assert "from telegram" in html and "t.me" not in html
            moved = "update sessions set key = ? where key like 'telegram:8:%'"
            await page.alter((moved, [f"telegram:{group}:-"]))
            assert 'href="https://t.me/c/1234567890/' in (await bob.get(f"/memory/{oboe}")).text
