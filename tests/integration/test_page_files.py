"""Files, pictures and voices on the web page, through HTTP; the app that the page is, and what it tells of itself."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import AsyncIterator
from importlib import resources
from pathlib import Path

import httpx
import pytest

from tests.kit.pictures import png
from tests.kit.served import Served
from tests.kit.visit import Guest, Page, paged, words
from tests.platforms.ears import listening


@pytest.fixture
async def page(tmp_path: Path, unused_tcp_port: int) -> AsyncIterator[Page]:
    """In the settings that `remora init` writes."""
    served = Served(tmp_path, port=unused_tcp_port, shipped=True)
    async with paged(tmp_path, port=unused_tcp_port, served=served) as opened:
        yield opened


async def talk(guest: Guest) -> str:
    """The messages of the first conversation."""
    return (await guest.get("/chat/main")).text.partition('id="log"')[2].partition('id="end"')[0]


def sent(html: str) -> list[str]:
    """The addresses of what was sent in a conversation, each once."""
    return list(dict.fromkeys(re.findall(r'(?:href|src)="(/chat/[^"]+/sent/[^"]+)"', html)))


async def test_a_picture_is_shown_where_it_was_sent_and_to_its_sender_alone(page: Page) -> None:
    ada, bob = await page.signed_in(), await page.signed_in("bob")
    await ada.say("my new door", files={"file": ("door.png", png(), "image/png")})
    html = await talk(ada)
    (address,) = sent(html)
    assert f'<img src="{address}" alt="door.png"' in html and "[picture" not in html and "my new door" in words(html)
    shown = await ada.get(address)
    assert shown.content == png() and shown.headers["Content-Type"] == "image/png"
    assert shown.headers["X-Content-Type-Options"] == "nosniff" and shown.headers["Cache-Control"] == "no-store"
    policy = shown.headers["Content-Security-Policy"]
    assert "sandbox" in policy and "default-src 'none'" in policy and "script-src" not in policy
    assert (await bob.get(address)).status_code == 404
    assert (await page.guest().get(address)).status_code == 303
    for wrong in (f"{address}1", f"{address[:-1]}-1", address.replace("/main/", "/other/")):
        assert (await ada.get(wrong)).status_code == 404, wrong
    await ada.post("/chat/main/forget", turn=re.findall(r'name="turn" value="(\d+)"', html)[-1])
    ada.receipt = await talk(ada)
    key, data, _ = ada.buttons()[0]
    await ada.post("/chat/main/press", key=key, data=data)
    assert (await ada.get(address)).status_code == 404


async def test_files_go_along_into_a_branch(page: Page) -> None:
    """Those of what was said before it are still shown, and a message in other words keeps what is still there."""
    ada = await page.signed_in()
    nothing = ("file", ("pump.bin", b"\xff\xfe\x00", "application/octet-stream"))
    await ada.say("my new door", files=[("file", ("door.png", png(), "image/png")), nothing])
    await ada.say("The pump is old")
    keys = re.findall(r'/edit/(u[a-z0-9]+)"', await talk(ada))
    for nth, key in enumerate(keys):
        typed = (await ada.get(f"/chat/main/edit/{key}")).text.partition("<textarea")[2].partition("</textarea>")[0]
        assert typed.partition(">")[2] == ("my new door", "The pump is old")[nth]
        answer = await ada.post("/chat/main/branch", key=key, text="in other words")
        branch = answer.headers["Location"].removesuffix("#end")
        address = sent((await ada.get(branch)).text)[0]
        assert (await ada.get(address)).content == png() and branch in address


async def test_nothing_that_acts_is_given_as_it_came(page: Page) -> None:
    """Whatever a file calls itself: only bytes of a picture come as one, and text as text."""
    ada = await page.signed_in()
    acting = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
    for name, kind, data in (
        ("a.svg", "image/svg+xml", acting),
        ("b.html", "text/html", b"<script>alert(1)</script>"),
        ("c.png", "image/png", acting),
        ('d.gif"><script>', "image/gif", b"no picture at all \xff\xfe\x00"),
    ):
        await ada.say("look", files={"file": (name, data, kind)})
    html = await talk(ada)
    assert "<script>alert" not in html and 'd.gif"><script' not in html
    for address in sent(html):
        answer = await ada.get(address)
        assert answer.headers["Content-Type"].startswith("text/plain") or answer.status_code == 404
        assert answer.status_code == 404 or "sandbox" in answer.headers["Content-Security-Policy"]


async def test_the_text_of_a_file_stays_to_be_read(page: Page) -> None:
    ada = await page.signed_in()
    await ada.say("", files={"file": ("notes.md", "The pump is in the shed. ß".encode(), "text/markdown")})
    (address,) = sent(await talk(ada))
    answer = await ada.get(address)
    assert answer.text == "The pump is in the shed. ß" and answer.headers["Content-Type"].startswith("text/plain")
    assert "notes.md.txt" in answer.headers["Content-Disposition"]
    assert "[file" not in await talk(ada)


async def test_limits_are_said_before_and_in_the_refusal(page: Page) -> None:
    ada = await page.signed_in()
    told = "Up to 5 files, 10\u202fMB together; a picture up to 5\u202fMB."
    assert told in (await ada.get("/chat/main")).text
    large = await ada.say("", files={"file": ("a.bin", bytes(10_400_000), "application/octet-stream")})
    many = await ada.say("", files=[("file", (f"{n}.txt", b"x", "text/plain")) for n in range(6)])
    for refused in (large, many):
        assert refused.status_code == 413 and " ".join(told.split()) in words(refused.text)
    await ada.say("", files=[("file", (f"{n}.txt", b"x", "text/plain")) for n in range(5)])
    assert "4.txt" in await ada.text("/chat/main")


async def test_a_voice_is_what_was_said(tmp_path: Path, unused_tcp_port: int) -> None:
    """Without a script a phone's own recorder sends it; its words are the person's, and are learned from."""
    async with listening() as ears:
        served = Served(tmp_path, port=unused_tcp_port, shipped=True, transcriber=ears.section)
        async with paged(tmp_path, port=unused_tcp_port, served=served) as page:
            ada = await page.signed_in()
            form = await ada.get("/chat/main")
            assert 'name="voice"' in form.text and "microphone=(self)" in form.headers["Permissions-Policy"]
            assert "microphone=()" in (await ada.get("/me")).headers["Permissions-Policy"]
            await ada.say("", files={"voice": ("voice.webm", b"\x1aE\xdf\xa3" + bytes(60), "audio/webm")})
            assert ears.heard == [b"\x1aE\xdf\xa3" + bytes(60)]
            said = words(await talk(ada))
            assert "I like green tea" in said and "[voice" not in said and "Voice message" in said
            key = re.findall(r'/edit/(u[a-z0-9]+)"', await talk(ada))[0]
            assert "[voice" not in (await ada.get(f"/chat/main/edit/{key}")).text
            # The same bytes as a file are nobody's words.
            await ada.say("", files={"file": ("song.webm", b"\x1aE\xdf\xa3" + bytes(60), "audio/webm")})
            assert len(ears.heard) == 1


async def test_without_a_transcriber_nothing_records(page: Page) -> None:
    ada = await page.signed_in()
    form = await ada.get("/chat/main")
    assert 'name="voice"' not in form.text and "microphone=()" in form.headers["Permissions-Policy"]


async def test_the_page_is_an_app(page: Page) -> None:
    nobody = page.guest(**{"Accept-Language": "de"})
    manifest = await nobody.get("/manifest.webmanifest")
    assert manifest.headers["Content-Type"].startswith("application/manifest+json")
    app = json.loads(manifest.text)
    assert app["start_url"] == "/chat" and app["display"] == "standalone" and app["lang"] == "de"
    assert {one["purpose"] for one in app["icons"]} == {"any", "maskable"}
    for icon in app["icons"]:
        drawn = (await nobody.get(icon["src"])).content
        assert drawn.startswith(b"\x89PNG") and "{}x{}".format(*struct.unpack(">II", drawn[16:24])) == icon["sizes"]
    static = resources.files("gateway.page") / "static"
    assert sum(len(one.read_bytes()) for one in static.iterdir() if one.name.endswith(".png")) < 60_000


async def waits(guest: Guest) -> int:
    return int((await guest.get("/waiting")).json()["count"])


async def test_what_waits_is_counted(page: Page) -> None:
    """Questions that can be answered on the page, and messages that were not shown yet, each person's own."""
    ada, bob = await page.signed_in(), await page.signed_in("bob")
    await ada.say("I am allergic to nuts")
    assert await waits(ada) == 0
    await ada.say("/forget nuts", thread="asks")
    assert (await waits(ada), await waits(bob)) == (1, 0)
    held = (
        "insert into outbox (session_key, kind, chunk, text, state, run, created_at) select key, 'message', 0, 'hello',"
    )
    await page.alter((f"{held} 'pending', 'a run', 1 from sessions where key like 'web%' limit 1", []))
    assert await waits(ada) == 2
    assert (await page.guest().get("/waiting")).status_code == 303


async def test_a_browser_tells_only_what_was_asked_for(page: Page) -> None:
    """A choice of this browser, kept in a cookie that no script reads, changed by a form."""
    ada = await page.signed_in()
    assert 'data-notify=""' in (await ada.get("/chat/main")).text
    answer = await ada.post("/notify", at="/me", on="1")
    assert answer.status_code == 303 and "HttpOnly" in answer.headers["Set-Cookie"]
    assert 'data-notify="1"' in (await ada.get("/chat/main")).text
    await ada.post("/notify", at="/me", on="0")
    assert 'data-notify=""' in (await ada.get("/chat/main")).text
    refused: httpx.Response = await ada.post("/notify", on="1", nonce="made up")
    assert refused.status_code == 403
