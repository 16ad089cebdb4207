"""Messages on the page: every part of a long conversation, links to one, the search, and answers under way."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.kit.patience import until
from tests.kit.served import Served
from tests.kit.slow_model import SlowModel, slow_model
from tests.kit.visit import Guest, Page, grown, paged, words

_LINK = re.compile(r'href="(/(?:chat|search)[^"]*)"')
_LINES = re.compile(r"\bline (\d+)\b")


@pytest.fixture
async def page(tmp_path: Path, unused_tcp_port: int) -> AsyncIterator[Page]:
    async with paged(tmp_path, port=unused_tcp_port) as found:
        yield found


def links(html: str, *parts: str) -> list[str]:
    return [link.replace("&amp;", "&") for link in _LINK.findall(html) if all(part in link for part in parts)]


async def numbers(guest: Guest, path: str) -> list[int]:
    log = (await guest.get(path)).text.partition('id="log"')[2].partition('id="say"')[0]
    return [int(number) for number in _LINES.findall(words(log))]


async def test_every_line_is_reached_by_links_up_and_down(page: Page) -> None:
    """Without a script a long conversation is read part by part."""
    ada = await page.signed_in()
    await ada.say("hello")
    await page.talked(205)
    path, seen = "/chat/main", list[int]()
    while path:
        seen = [*await numbers(ada, path), *seen]
        path = next(iter(links((await ada.get(path)).text, "?before=")), "")
    assert seen == list(range(1, 206))
    path, seen = links((await ada.get("/chat/main?at=3")).text, "?after=")[0], await numbers(ada, "/chat/main?at=3")
    while path:
        seen += await numbers(ada, path)
        path = next(iter(links((await ada.get(path)).text, "?after=")), "")
    assert seen == list(range(1, 206))


async def test_a_message_is_shown_with_those_around_it(page: Page) -> None:
    """A message that is gone, or another's, is not there, and says nothing of what it was."""
    ada, eve = await page.signed_in(), await page.signed_in("eve")
    await ada.say("hello")
    await page.talked(205)
    ((number,),) = await page.alter(("select id from messages where text = 'line 100'", ()))
    html = (await ada.get(f"/chat/main?at={number}")).text
    (article,) = [part for part in html.split("<article ") if 'id="at"' in part]
    assert "line 100" in article and "sought" in article
    assert await numbers(ada, f"/chat/main?at={number}") == list(range(61, 141))
    await eve.say("hello")
    for guest, path in ((eve, f"/chat/main?at={number}"), (ada, f"/chat/boat?at={number}"), (ada, "/chat/main?at=x")):
        answer = await guest.get(path)
        assert answer.status_code == 404 and "not there any more" in words(answer.text)
    piece = (await ada.get(f"/chat/main/log?before={number}")).json()["html"]
    assert "line 99" in piece and "line 100" not in piece
    await page.alter(("update messages set erased_at = 1 where id = ?", (number,)))
    assert (await ada.get(f"/chat/main?at={number}")).status_code == 404


async def test_hits_sources_and_reasons_lead_to_the_message(page: Page) -> None:
    ada = await page.signed_in()
    await ada.say("My sister Lena sails on Lake Constance", thread="boat")
    await ada.say("Where does my sister sail?")
    hits = (await ada.get("/search?q=sailing+lena")).text
    assert "<mark>sails</mark>" in hits and "My sister <mark>Lena</mark>" in hits
    one = (await ada.get("/memory")).text.partition('href="/memory/m_')[2].partition('"')[0]
    turn = (await ada.get("/chat/main")).text.partition('href="/why/')[2].partition('"')[0]
    pages = {name: (await ada.get(name)).text for name in (f"/memory/m_{one}", "/memory?q=constance", f"/why/{turn}")}
    shown = {name: links(html, "/chat/boat?at=") for name, html in (pages | {"/search": hits}).items()}
    assert all(shown.values()), shown
    for link in {link for found in shown.values() for link in found}:
        html = (await ada.get(link.partition("#")[0])).text
        assert "Lena" in words(html.partition('id="at"')[2].partition("</article>")[0])


async def test_the_search_pages_through_its_hits_and_shows_nobody_elses(page: Page) -> None:
    ada, eve = await page.signed_in(), await page.signed_in("eve")
    for number in range(23):
        await ada.say(f"the harbour has {number} boats", thread="main" if number % 2 else "boat")
    path, found = "/search?q=harbour+boats", list[str]()
    while path:
        html = (await ada.get(path)).text
        hits = " ".join(re.findall(r'<a href="/chat/\w+\?at=.*?</a>', html))
        found += re.findall(r"has (\d+) ", words(hits))
        path = next(iter(links(html, "before=")), "")
    assert found == [str(n) for n in range(22, -1, -1)]
    assert "Nothing found" in await eve.text("/search?q=harbour")
    assert "Nothing found" in await ada.text("/search?q=<b>%25</b>")
    assert "in all your conversations" in await ada.text("/search")
    assert (await page.guest().get("/search?q=harbour")).status_code == 303


async def test_what_a_form_said_is_no_hit(page: Page) -> None:
    """It stands in no conversation that one could open."""
    ada = await page.signed_in()
    await ada.told("/memory", at="/memory", value="I keep the harbour key")
    assert "Nothing found" in await ada.text("/search?q=harbour")


async def test_the_list_of_conversations_goes_back_to_the_first(page: Page) -> None:
    ada = await page.signed_in()
    for number in range(53):
        await ada.say(f"/remember number {number}", thread=f"talk-{number:02}", headers={"X-Remora": "1"})
        await ada.say(f"talk {number}", thread=f"talk-{number:02}", headers={"X-Remora": "1"})

    async def listed(path: str) -> set[str]:
        return {link for link in links((await ada.get(path)).text, "/chat/talk-") if "?" not in link}

    async def all_there() -> bool:
        return len(await listed("/chat/main?talks=2")) == 53

    await until(all_there)
    assert len(await listed("/chat/main")) == 50
    assert links((await ada.get("/chat/main")).text, "talks=2") and not links(
        (await ada.get("/chat/main?talks=2")).text, "talks=3"
    )


# Answers under way ------------------------------------------------------------------------------------------------


@pytest.fixture
async def slow() -> AsyncIterator[SlowModel]:
    async with slow_model() as model:
        yield model


def served(folder: Path, port: int, model: SlowModel) -> Served:
    return Served(folder, port=port, model_url=model.url)


async def begun(ada: Guest, model: SlowModel, text: str) -> None:
    """Says something and goes, once the model has begun to answer."""
    before = model.asked
    await ada.say(text, headers={"X-Remora": "1"})

    async def asked() -> bool:
        return model.asked > before

    await until(asked)


async def test_an_answer_that_began_without_a_tab_grows_in_the_one_that_comes(
    tmp_path: Path, unused_tcp_port: int, slow: SlowModel
) -> None:
    """Also on a page that is loaded without a script, which offers to stop it."""
    async with paged(tmp_path, port=unused_tcp_port, served=served(tmp_path, unused_tcp_port, slow)) as page:
        ada = await page.signed_in()
        await begun(ada, slow, "Tell me of boats")
        slow.say("Boats have ")

        async def shown() -> str:
            html = (await ada.get("/chat/main")).text
            return html if "Boats have" in html and "growing" in html else ""

        html = await until(shown)
        assert 'formaction="/chat/main/stop">' in html
        async with ada.stream() as events:
            slow.say("hulls.", slow.END)
            assert "Boats have hulls." in words(await grown(events, "hulls."))
        html = (await ada.get("/chat/main")).text
        assert "growing" not in html and html.count("Boats have") == 1
        assert 'formaction="/chat/main/stop" hidden>' in html


async def test_a_turn_taken_up_after_a_restart_grows_in_the_tab_that_comes(
    tmp_path: Path, unused_tcp_port: int, slow: SlowModel
) -> None:
    """The tab hears that it is a restart, and the answer stands there once."""
    ours = served(tmp_path, unused_tcp_port, slow)
    async with paged(tmp_path, port=unused_tcp_port, served=ours) as page:
        ada = await page.signed_in()
        async with ada.stream() as events:
            await begun(ada, slow, "Tell me of boats")
            ours.stop.set()
            assert [kind async for kind, _ in events][-1] == "restart"
    async with paged(tmp_path, port=unused_tcp_port, served=ours) as page:
        again = await page.signed_in()

        async def asked() -> bool:
            return slow.asked == 2

        await until(asked)
        slow.say("Boats have ")
        async with again.stream() as events:
            slow.say("hulls.", slow.END)
            assert "Boats have hulls." in words(await grown(events, "hulls."))
        assert (await again.text("/chat/main")).count("Boats have hulls.") == 1


async def test_a_stop_says_nothing_and_ends_only_the_answer_it_was_meant_for(
    tmp_path: Path, unused_tcp_port: int, slow: SlowModel
) -> None:
    """It may come when that answer has just ended and the next message is being answered."""
    async with paged(tmp_path, port=unused_tcp_port, served=served(tmp_path, unused_tcp_port, slow)) as page:
        ada = await page.signed_in()
        async with ada.stream() as events:
            await begun(ada, slow, "first")
            await ada.say("second", headers={"X-Remora": "1"})
            slow.say("One, ")
            turn = ""
            async for _, data in events:
                turn = turn or (re.search(r'id="(t\d+)"', str(data.get("html"))) or [""])[0].strip('id="')
                if turn:
                    break
            await ada.post("/chat/main/stop", turn=turn, headers={"X-Remora": "1"})
            assert "(Stopped here.)" in words(await grown(events, "Stopped here"))
            await ada.post("/chat/main/stop", turn=turn, headers={"X-Remora": "1"})
            slow.say("Two.", slow.END)
            assert "Two." in words(await grown(events, "Two."))
        html = (await ada.get("/chat/main")).text
        assert "/stop" not in words(html) and len(re.findall('class="item mine', html)) == 2
        assert len(re.findall('class="item theirs', html)) == 2
