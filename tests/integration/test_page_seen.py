"""The page shows the work behind it, and changes settings and reminders."""

from __future__ import annotations

import gc
import json
import logging
import re
import weakref
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import structlog

from gateway.ops import telemetry
from tests.kit.patience import until
from tests.kit.served import ANN, BOB, Clock, Served
from tests.kit.visit import Guest, Page, paged, words
from tests.platforms.telegram import Control as Telegram
from tests.platforms.telegram import serving as serving_telegram

TOKEN = "123456789:" + "Aa0_-" * 7


@pytest.fixture
async def page(tmp_path: Path, unused_tcp_port: int) -> AsyncIterator[Page]:
    async with paged(tmp_path, port=unused_tcp_port) as found:
        yield found


@pytest.fixture
async def asked(tmp_path: Path, unused_tcp_port: int) -> AsyncIterator[tuple[Page, Telegram]]:
    """The page of an agent with a model, as `remora init` writes it."""
    async with serving_telegram((TOKEN,)) as platform:
        served = Served(
            tmp_path, port=unused_tcp_port, model_url=platform.model_url, shipped=True, limits="{burst_seconds: 0}"
        )
        async with paged(tmp_path, port=unused_tcp_port, served=served) as shown:
            yield shown, platform


async def last_turn(guest: Guest) -> str:
    async def answered() -> str:
        return (await guest.get("/chat/main")).text.rpartition('href="/why/')[2].partition("?")[0].partition('"')[0]

    return await until(answered)


def section(html: str, heading: str) -> str:
    return words(html.partition(f"<h2>{heading}</h2>")[2].partition("</section>")[0])


async def test_an_answer_shows_what_its_request_was_made_of(asked: tuple[Page, Telegram]) -> None:
    """In tokens, whose shares make a whole; what the answer says stands apart from what was only in the prompt. With
    all of a person, the figures go."""
    page, platform = asked
    await platform.script_model({"where is my boat": "Your boat lies in Setubal."})
    ada = await page.signed_in()
    for fact in ("my boat lies in Setubal", "my sister plays the cello"):
        assert "Saved" in await ada.told("/memory", at="/memory", value=fact)
    await ada.say("where is my boat and what of my sister?")
    turn = await last_turn(ada)
    html = (await ada.get(f"/why/{turn}")).text
    parts = re.findall(r'<i class="hue\d"></i>([^<]+)</th><td>([^<]+)</td><td>(\d+) %</td>', html)
    assert {"Who I am", "Tools and their results", "The message"} <= {name for name, _, _ in parts}
    assert 95 <= sum(int(share) for _, _, share in parts) <= 105
    assert html.count("<rect") == len(parts) and 'role="img" aria-label="What the request was made of"' in html
    said = section(html, "Said in the answer")
    assert "Setubal" in said and " tokens" in said and "cello" not in said
    assert "cello" in words(html)
    ben = await page.signed_in("ben")
    assert (await ben.get(f"/why/{turn}")).status_code == 404

    kept = "select portions from turns where portions is not null"
    assert json.loads((await page.alter((kept, [])))[0][0])["message"] > 0
    await ada.told("/me", at="/me", action="delete")
    question = re.findall(r'name="id" value="(\d+)"', (await ada.get("/questions")).text)[0]
    await ada.post("/questions", at="/questions", id=question, choice="yes", typed="erase")
    assert await page.alter((kept, [])) == []


async def test_a_memory_shows_the_answers_that_used_it_and_oneself_how_memory_grew(page: Page) -> None:
    ada = await page.signed_in()
    assert "Memories by the month" not in await ada.text("/me")
    await ada.told("/memory", at="/memory", value="my boat lies in Setubal")
    path = re.findall(r'href="(/memory/m_\w+)"', (await ada.get("/memory")).text)[0]
    assert "Answers that had it in the prompt" not in await ada.text(path)
    await ada.say("Where is my boat?")
    await last_turn(ada)

    why = (await ada.get(f"/why/{await last_turn(ada)}")).text
    assert "Setubal" in section(why, "Said in the answer") and "What the request was made of" not in why

    async def used() -> bool:
        return "Answers that had it in the prompt" in await ada.text(path)

    await until(used)
    assert "Memories by the month they were learned" in await ada.text("/me")
    assert (await (await page.signed_in("ben")).get(path)).status_code == 404


async def test_settings_are_changed_in_place(page: Page) -> None:
    """Each is a command; what does not fit is refused, and another session's word changes nothing."""
    ada, ben = await page.signed_in(), await page.signed_in("ben")
    assert "Europe/Lisbon" in await ada.told("/me", at="/me", action="zone", zone="Europe/Lisbon")
    assert 'value="Europe/Lisbon"' in (await ada.get("/me")).text
    assert "don't know" in await ada.told("/me", at="/me", action="zone", zone="Europe/Atlantis")
    assert "9:00" in await ada.told("/me", at="/me", action="follow", hours="9-12")
    assert "between these hours" in await ada.text("/me")
    await ada.told("/me", at="/me", action="unfollow", hours="9-12")
    assert "I don't ask how your plans went" in await ada.text("/me")
    assert "no emoji" in await ada.told("/me", at="/me", action="manner", text="short, no emoji")
    assert 'value="short, no emoji"' in (await ada.get("/me")).text
    await ada.told("/me", at="/me", action="manner_off")
    assert "I ignore how you like" in await ada.text("/me")
    await ada.told("/me", at="/me", action="language", language="de")
    assert 'lang="de"' in (await ada.get("/me")).text and 'lang="en"' in (await ben.get("/me")).text
    for action, field in (("zone", {"zone": "x y"}), ("language", {"language": "xxxx"}), ("follow", {"hours": "all"})):
        assert (await ada.post("/me", at="/me", action=action, **field)).status_code == 400
    nonce = await ben.nonce("/me")
    assert (await ada.post("/me", nonce=nonce, action="language", language="fr")).status_code == 403


async def test_a_theme_is_of_the_browser(page: Page) -> None:
    ada, elsewhere = await page.signed_in(), await page.signed_in()
    for theme, shown in (("dark", 'data-theme="dark"'), ("light", 'data-theme="light"'), ("system", ""), ("<b>", "")):
        assert (await ada.post("/theme", at="/me", theme=theme)).status_code == 303
        html = (await ada.get("/memory")).text.partition("<head>")[0]
        assert shown in html and ("data-theme" in html) == bool(shown)
        assert "data-theme" not in (await elsewhere.get("/memory")).text.partition("<head>")[0]
    ada.client.cookies.set("theme", "dark")
    nobody = page.guest()
    nobody.client.cookies.set("theme", '"><script>')
    assert "script>" not in (await nobody.get("/in")).text.partition("<head>")[0]
    assert (await ada.post("/theme", nonce="x.y", theme="dark")).status_code == 403


async def test_reminders_are_listed_changed_and_cancelled(page: Page) -> None:
    """By the person whose they are; another person's number is none."""
    ada, ben = await page.signed_in(), await page.signed_in("ben")
    assert "No reminders" in await ada.text("/reminders")
    assert "09:00" in await ada.told("/reminders", at="/reminders", text="tomorrow at 9 call Mira")
    assert "call Mira" in await ada.text("/reminders") and "call Mira" not in await ben.text("/reminders")
    assert "17:30" in await ada.told("/reminders", at="/reminders", action="time", number="1", text="tomorrow at 17:30")
    told = await ada.told("/reminders", at="/reminders", action="words", number="1", text="call Mira's mother")
    assert "call Mira's mother" in told and "17:30" in told
    listed = await ada.text("/reminders")
    assert "call Mira's mother" in listed and "17:30" in listed and "09:00" not in listed
    for action, more in (("cancel", {}), ("done", {}), ("words", {"text": "mine"}), ("time", {"text": "at 5"})):
        await ben.told("/reminders", at="/reminders", action=action, number="1", **more)
    assert await ada.text("/reminders") == listed
    for field in ({"number": "x"}, {"number": "1\n/privacy out"}):
        assert (await ada.post("/reminders", at="/reminders", action="cancel", **field)).status_code == 400
    await ada.told("/reminders", at="/reminders", action="cancel", number="1")
    assert "No reminders" in await ada.text("/reminders")


async def test_health_tells_how_each_model_was_met_and_what_waits(asked: tuple[Page, Telegram]) -> None:
    page, _ = asked
    you = await page.signed_in("you")
    assert "openai/test not asked since the start" in await you.text("/admin")
    await you.say("hello there")
    await last_turn(you)

    async def met() -> bool:
        return bool(re.search(r"openai/test answered \d+ s ago –", await you.text("/admin")))

    await until(met)
    await you.say("and again")
    health = await you.text("/admin")
    assert "Messages that wait for an answer" in health and "Night jobs that run now 0" in health


async def test_a_model_that_fails_is_shown_with_its_error(tmp_path: Path, unused_tcp_port: int) -> None:
    """By its code alone: a vendor's words may hold people's."""
    served = Served(tmp_path, port=unused_tcp_port, model_url="http://127.0.0.1:9/v1")
    async with paged(tmp_path, port=unused_tcp_port, served=served) as page:
        you = await page.signed_in("you")
        await you.say("hello there")

        async def failed() -> bool:
            return bool(
                re.search(r"has not answered since the start \d+ s ago: it can't be reached", await you.text("/admin"))
            )

        await until(failed)
        assert (await served.health())["models"]["openai/test"]["error"] == "model_unavailable"


@contextmanager
def logging_to(file: Path) -> Iterator[None]:
    root, before = logging.getLogger(), structlog.get_config()
    handlers = list(root.handlers)
    try:
        telemetry.configure(level="info", format="console", file=file, redact=str)
        yield
    finally:
        structlog.configure(**before)
        for handler in set(root.handlers) - set(handlers):
            root.removeHandler(handler)
            handler.close()


async def test_admins_see_the_logs_last_lines(page: Page, tmp_path: Path) -> None:
    """As they were written, without secrets and colours, and no more than a bounded number of them."""
    you = await page.signed_in("you")
    with logging_to(tmp_path / "log"):
        for rotate in (False, True):
            telemetry.configure(
                level="info", format="console", file=tmp_path / "log", rotate=rotate,
                redact=lambda text: text.replace("sesame", "…"),
            )  # fmt: skip
            for number in range(300):
                structlog.get_logger("gateway").info("thing.done", number=number, key="open sesame")
            lines = telemetry.last_lines()
            assert len(lines) == 200 and "number=299" in lines[0] and "number=298" in lines[1]
        shown = (await you.get("/admin/log")).text
        assert "number=299" in shown and "sesame" not in shown and "number=50 " not in shown


def test_the_log_in_memory_keeps_no_error(tmp_path: Path) -> None:
    """With its traceback it would keep whatever was at hand where it was raised."""

    class Lost(Exception):
        pass

    with logging_to(tmp_path / "log"):
        error = Lost("lost")
        seen = weakref.ref(error)
        record = logging.LogRecord("gateway", logging.ERROR, "", 1, "thing.failed", (), (Lost, error, None))
        logging.getLogger().handlers[-1].handle(record)
        del record, error
        gc.collect()
        assert seen() is None and "thing.failed" in telemetry.last_lines()[0]


async def test_admins_of_a_channel_see_its_people_alone(tmp_path: Path, unused_tcp_port: int) -> None:
    """In the use of models and in the log."""
    clock = Clock()
    async with serving_telegram((TOKEN,)) as telegram:
        served = Served(
            tmp_path, telegram=telegram, port=unused_tcp_port, now=clock, model_url=telegram.model_url,
            web="{enabled: true}",
        )  # fmt: skip
        async with paged(tmp_path, port=unused_tcp_port, served=served) as page:
            await telegram.say("hello from Bob", user=BOB, name="Bob")
            await telegram.wait(chat=BOB, bot_messages=1)
            cyd = await page.signed_in("cyd")
            await cyd.say("hello from the terminal")
            await last_turn(cyd)
            await telegram.say("/web", user=ANN, name="Ann")
            await telegram.wait(chat=ANN, bot_messages=1)
            ann = page.guest()
            code = (await telegram.texts(ANN))[-1].split()[0].partition("#")[2]
            assert (await ann.post("/in", code=code)).status_code == 303
            html = (await ann.get("/admin/usage")).text
            people, channels = section(html, "By person"), section(html, "By channel")
            assert "Bob" in people and "cyd" not in people
            assert "telegram" in channels and "web-assistant" in channels
            assert "assistant" in section(html, "By agent")
            you = await page.signed_in("you")
            people = section((await you.get("/admin/usage")).text, "By person")
            assert "Bob" in people and "cyd" in people
            with logging_to(tmp_path / "log"):
                for session in (f"telegram:{BOB}:-", "telegram2:7:-", "web-assistant:console.cyd:-", None):
                    structlog.get_logger("gateway").info("thing.done", **({"session": session} if session else {}))
                seen = [(await guest.get("/admin/log")).text for guest in (ann, you)]
            for session, ways in ((f"telegram:{BOB}", 2), ("telegram2:7", 1), ("console.cyd", 1)):
                assert sum(session in shown for shown in seen) == ways
            assert all("thing.done" in shown for shown in seen)
