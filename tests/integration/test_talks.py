"""Conversations of the page: versions of a message, titles, pins, exports, and forgetting them whole."""

from __future__ import annotations

import gc
import json
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest_asyncio

from channels.web import WebChannel
from memory.chat import titles
from memory.chat.turns import Said
from memory.forgetting.expired import erase_words
from memory.learn.agents import AgentMemory
from memory.learn.model import BackgroundModel, ModelAnswer, ModelFailed, ModelRequest
from memory.recall.recall import Budget
from memory.service import Service
from memory.store import chats
from tests.kit.fakes import Clock
from tests.kit.loopback import Answer, Asked, serving
from tests.kit.minds import answered
from tests.kit.patience import limit
from tests.kit.served import ANN, Served
from tests.kit.stores import AGENTS, opened, rows, wrote
from tests.kit.talk import exchange, private, received, say
from tests.kit.visit import Guest, Page, paged, words
from tests.platforms.telegram import serving as serving_telegram


@pytest_asyncio.fixture
async def page(tmp_path: Path, unused_tcp_port: int) -> AsyncIterator[Page]:
    async with paged(tmp_path, port=unused_tcp_port) as served:
        yield served


async def said(guest: Guest, path: str) -> list[str]:
    """The messages of a conversation as the page shows them, without what stands below them."""
    html = (await guest.get(path)).text.partition('id="log"')[2].partition('id="end"')[0]
    return [words(one) for one in re.findall(r'<div class="words">(.*?)</div>', html, re.DOTALL)]


async def keys_of(guest: Guest, path: str) -> list[str]:
    """The keys of the messages that the person may edit."""
    return re.findall(r'/edit/(u[a-z0-9]+)"', (await guest.get(path)).text)


async def reworded(guest: Guest, at: str, nth: int, text: str) -> str:
    """Says one of the messages at a path in other words; returns the path of the branch."""
    key = (await keys_of(guest, at))[nth]
    answer = await guest.post(f"{at}/branch", at=f"{at}/edit/{key}", key=key, text=text)
    assert answer.status_code == 303, answer.text
    return answer.headers["Location"].removesuffix("#end")


async def test_a_message_in_other_words_goes_on_in_a_branch(page: Page) -> None:
    """Both versions can be read again, what was said before stands in both, and what comes after only in its own."""
    ada = await page.signed_in()
    for text in ("I play chess", "I live in Bern", "The bridge is old"):
        await ada.say(text)
    branch = await reworded(ada, "/chat/main", 1, "I live in Basel")
    first, other = await said(ada, "/chat/main"), await said(ada, branch)
    assert [one for one in first if one.startswith(("I ", "The"))] == [
        "I play chess", "I live in Bern", "The bridge is old",
    ]  # fmt: skip
    assert [one for one in other if one.startswith("I ")] == ["I play chess", "I live in Basel"]
    assert "2 of 2" in await ada.text(branch) and f'href="{branch}#end"' in (await ada.get("/chat/main")).text
    again = await reworded(ada, branch, 1, "I live in Biel")
    assert "3 of 3" in await ada.text(again), "a version of a version stands beside both"
    await ada.say("The lake is cold", thread=again.removeprefix("/chat/"))
    assert "The lake is cold" in await said(ada, again) and "The lake is cold" not in await said(ada, "/chat/main")
    assert (await ada.get("/chat")).headers["Location"] == f"{again}#end", "its newest branch"
    listed = (await ada.get("/chat/main")).text.partition('id="talks"')[2].partition("</aside>")[0]
    assert listed.count("<li>") == 1, "one conversation, however many branches"
    assert (await ada.get(f"{again}/edit/u0000")).status_code == 404


async def test_the_earlier_wording_is_no_source_of_memory(page: Page) -> None:
    """The facts that it alone had taught end, also if it is read only later."""
    ada = await page.signed_in()
    await ada.say("My sister is called Marta Keller")
    assert "Marta" in await ada.text("/memory")
    await reworded(ada, "/chat/main", 0, "My sister is called Berta Keller")
    held = await ada.text("/memory")
    assert "Berta" in held and "Marta" not in held
    wording = await page.alter(("select learn, recall from messages where text like '%Marta%' and role = 'user'", ()))
    assert wording == [[0, 0]]


async def test_an_answer_made_anew_tells_nothing_twice(page: Page) -> None:
    ada = await page.signed_in()
    await ada.say("I live in Bern")
    turn = re.findall(r'name="turn" value="(\d+)"', (await ada.get("/chat/main")).text)[0]
    answer = await ada.post("/chat/main/branch", turn=turn)
    branch = answer.headers["Location"].removesuffix("#end")
    assert (await said(ada, branch))[0] == "I live in Bern" and len(await said(ada, branch)) == 2
    assert len(await said(ada, "/chat/main")) == 2 and "2 of 2" in await ada.text(branch)
    counted = "select count(*) from memory_sources s join memories m on m.id = s.memory_id where m.value = 'Bern'"
    assert await page.alter((counted, ())) == [[1]]
    assert (await ada.post("/chat/main/branch", turn="99999")).status_code == 404


async def test_no_message_becomes_a_command_and_nobody_elses_is_edited(page: Page) -> None:
    ada, bea = await page.signed_in("ada"), await page.signed_in("bea")
    await ada.say("I live in Bern")
    (key,) = await keys_of(ada, "/chat/main")
    answer = await ada.post("/chat/main/branch", key=key, text="/privacy out")
    assert answer.status_code == 400 and "command" in words(answer.text)
    await bea.say("hello")
    turn = re.findall(r'name="turn" value="(\d+)"', (await ada.get("/chat/main")).text)[0]
    for form in ({"key": key, "text": "mine now"}, {"turn": turn}):
        assert (await bea.post("/chat/main/branch", **form)).status_code == 404
    assert (await bea.get(f"/chat/main/edit/{key}")).status_code == 404
    assert "Bern" in await ada.text("/memory") and "Bern" not in str((await bea.get("/chat/main/export/json")).text)


async def test_a_message_that_is_not_taken_changes_nothing(page: Page) -> None:
    ada = await page.signed_in()
    await ada.say("My sister is called Marta Keller")
    (key,) = await keys_of(ada, "/chat/main")
    nonce = await ada.nonce()
    for channel in (one for one in gc.get_objects() if isinstance(one, WebChannel)):
        channel.is_ending = True
    assert (await ada.post("/chat/main/branch", key=key, text="It is Berta", nonce=nonce)).status_code == 503
    assert "Marta" in await ada.text("/memory")
    assert await page.alter(("select count(*) from sessions", ())) == [[1]]


async def test_an_answer_elsewhere_is_not_made_anew_here(tmp_path: Path, unused_tcp_port: int) -> None:
    """It was given to the same person, on another platform. No session is made for it."""
    token = "123456789:" + "Aa0_-" * 7
    async with serving_telegram((token,)) as telegram:
        served = Served(tmp_path, telegram=telegram, port=unused_tcp_port, web="{enabled: true}")
        async with paged(tmp_path, port=unused_tcp_port, served=served) as page:
            await telegram.say("I live in Bern", user=ANN, name="Ann")
            await telegram.wait(chat=ANN, bot_messages=1)
            await telegram.say("/web", user=ANN, name="Ann")
            await telegram.wait(chat=ANN, bot_messages=2)
            ann = page.guest()
            code = (await telegram.texts(ANN))[-1].split()[0].partition("#")[2]
            assert (await ann.post("/in", code=code)).status_code == 303
            await ann.say("hello")
            count = ("select count(*) from sessions", ())
            ((turn,),) = await page.alter(("select min(id) from turns", ()))
            before = await page.alter(count)
            answer = await ann.post("/chat/main/branch", turn=str(turn))
            assert answer.status_code == 404 and "answer" in words(answer.text)
            assert await page.alter(count) == before


async def test_a_conversation_is_named_pinned_and_saved(page: Page) -> None:
    ada = await page.signed_in()
    await ada.say("The roses need water", thread="garden")
    await ada.say("The report is due", thread="work")
    async with ada.stream("work") as events:
        await ada.post("/chat/garden/name", at="/chat/garden", title="  Roses\nand more ")
        async with limit():
            async for event, _ in events:
                if event == "talks":
                    break
    await ada.post("/chat/garden/pin", at="/chat/garden", pinned="1")
    listed = await ada.text("/chat/work/talks")
    assert listed == "Pinned Roses and more Today The report is due"
    saved = await ada.get("/chat/garden/export/md")
    assert saved.text.startswith("# Roses and more\n") and "The roses need water" in saved.text
    assert "Roses" in saved.headers["Content-Disposition"]
    told = json.loads((await ada.get("/chat/garden/export/json")).text)
    assert told["format"] == "remora" and told["messages"][0]["text"] == "The roses need water"
    await ada.post("/chat/garden/pin", at="/chat/garden", pinned="0")
    await ada.post("/chat/garden/name", at="/chat/garden", title="")
    assert await ada.text("/chat/work/talks") == "Today The report is due The roses need water"
    for path in ("/chat/garden/export/exe", "/chat/empty/export/md"):
        assert (await ada.get(path)).status_code == 404
    assert (await ada.post("/chat/empty/name", title="x")).status_code == 404


async def test_a_conversation_is_forgotten_whole(page: Page) -> None:
    """With its branches and what was learned there, after the usual question, and with the usual receipt."""
    ada = await page.signed_in()
    await ada.say("I like rowing", thread="other")
    await ada.say("My boat is called Nix", thread="boat")
    branch = await reworded(ada, "/chat/boat", 0, "My boat is called Max")
    await ada.post("/chat/boat/name", at="/chat/boat", title="Nix and Max")
    asked = await ada.told("/chat/boat/delete", at="/chat/boat")
    assert "Max" in asked
    (question,) = re.findall(r'name="id" value="(\d+)"', ada.receipt)
    choice = re.findall(r'name="choice" value="(\w+)"', ada.receipt)[0]
    form = {"id": question, "choice": choice, "back": "/chat/boat", "typed": "erase"}
    receipt = await ada.told("/questions", at="/chat/boat", **form)
    assert "Messages erased: 2" in receipt
    assert "Nix" not in await ada.text("/chat/other") and "Max" not in await ada.text("/chat/other")
    assert await said(ada, "/chat/boat") == await said(ada, branch) == []
    assert "Max" not in await ada.text("/memory") and "rowing" in await ada.text("/chat/other/talks")
    assert await page.alter(("select count(*) from sessions where title is not null", ())) == [[0]]


async def test_the_commands_are_listed_with_what_they_take(page: Page) -> None:
    shown = await (await page.signed_in()).text("/commands")
    assert "/forget" in shown and "/remind" in shown and "/allow" not in shown


# Titles -----------------------------------------------------------------------------------------------------------

ADA = private("ada")


class Namer:
    def __init__(self, *given: str | Exception) -> None:
        self.given = list(given)
        self.asked: list[ModelRequest] = []

    async def __call__(self, request: ModelRequest) -> ModelAnswer:
        if request.schema is None or "title" not in request.schema["properties"]:
            return answered({"facts": []})
        self.asked.append(request)
        given = self.given.pop(0)
        if isinstance(given, Exception):
            raise given
        return answered({"title": given}, written=10)


async def named(memory: Service) -> tuple[list[str | None], int]:
    """Has a title looked for as after a turn; returns the titles there are, and how often the list was shown anew."""
    shown: list[None] = []
    memory.titles.soon(await memory.identities.context(*ADA), named=lambda: shown.append(None))
    await memory.titles.settled()
    return [title for (title,) in await rows(memory, "select title from sessions")], len(shown)


async def test_a_title_is_found_once_a_few_turns_are_over(tmp_path: Path, clock: Clock) -> None:
    """By one short request; a failure is tried again, and a title that a person gave stays."""
    model = Namer(ModelFailed("out of reach"), "“Leaking boats.”\nand more" + 200 * "x", "Another")
    agents = dict.fromkeys(AGENTS, AgentMemory(model=BackgroundModel(complete=model)))
    async with opened(tmp_path / "remora.db", clock, agents=agents) as memory:
        await say(memory, ADA, "the boat has a leak", clock=clock, answer="where?")
        assert await named(memory) == ([None], 0) and not model.asked
        await say(memory, ADA, "at the keel", clock=clock, answer="I see")
        assert await named(memory) == ([None], 0) and len(model.asked) == 1
        (found,), shown = await named(memory)
        assert shown == 1 and found is not None and found.startswith("Leaking boats") and len(found) == titles.LONGEST
        assert "at the keel" in model.asked[-1].material and "I see" in model.asked[-1].material
        await named(memory)
        assert len(model.asked) == 2, "it has one"
        context = await memory.identities.context(*ADA)
        await memory.requests.run(context, lambda edits: edits.name_talk("my key is sk-ant-api03-" + 40 * "Ab3"))
        assert "sk-ant" not in str(await named(memory)) and len(model.asked) == 2


async def test_a_title_goes_with_the_words_it_tells_of(tmp_path: Path, clock: Clock) -> None:
    model = Namer("Marta's boat", "Something else")
    agents = dict.fromkeys(AGENTS, AgentMemory(model=BackgroundModel(complete=model)))
    async with opened(tmp_path / "remora.db", clock, agents=agents) as memory:
        for n in range(3):
            await exchange(memory, ADA, f"Marta has {n} boats", clock=clock)
        assert await named(memory) == (["Marta's boat"], 1)
        context = await memory.identities.context(*ADA)
        await memory.requests.run(context, lambda edits: edits.undo())
        assert await rows(memory, "select title from sessions") == [(None,)]
        assert await named(memory) == (["Something else"], 1), "found anew, from what is left"
        assert "Marta has 2" not in model.asked[-1].material
        await memory.requests.run(context, lambda edits: edits.name_talk("Boats"))
        await memory.requests.run(context, lambda edits: edits.undo())
        assert await rows(memory, "select title from sessions") == [("Boats",)], "a person's own name stays"


async def test_a_title_that_is_emptied_is_found_anew(tmp_path: Path, clock: Clock) -> None:
    async with opened(tmp_path / "remora.db", clock) as memory:
        turn = await say(memory, ADA, "Marta has a boat", clock=clock)
        await memory.requests.run(turn.context, lambda edits: edits.name_talk("Boats"))
        await wrote(memory, lambda tx: chats.empty_private(tx, [turn.context.session.id]))
        assert await rows(memory, "select title, title_found from sessions") == [(None, None)]


async def test_a_restart_keeps_what_a_branch_goes_on_from(tmp_path: Path, clock: Clock) -> None:
    """A message is answered by another process than took it."""
    where, who = ADA
    place = (replace(where, session_key="console:ada:branch", thread="branch"), who)
    async with opened(tmp_path / "remora.db", clock) as memory:
        await say(memory, ADA, "the boat has a leak", clock=clock, answer="where?")
        turn = await say(memory, ADA, "at the keel", clock=clock)
        of, at = turn.context.session.id, turn.said[0].id
        branch = await memory.identities.context(*place)
        await memory.requests.run(branch, lambda edits: edits.branch(of, at, reworded=True))
        said = Said(
            inbox_id=await received(memory, "console:ada:branch"), text="at the bow", tokens=4, said_at=clock(),
            platform_ref="1", reply_to=None, learn=True,
        )  # fmt: skip
        begun = await memory.turns.begin(*place, [said])
    async with opened(tmp_path / "remora.db", clock) as memory:
        turn = await memory.turns.resume(*place, begun.id, begun.inbox_ids)
        view = await memory.turns.look(turn, Budget(), window_tokens=1_000, window_messages=50)
        assert view.before == (("user", "the boat has a leak"), ("assistant", "where?"))


async def test_a_title_goes_with_the_expired_words_it_was_made_of(tmp_path: Path, clock: Clock) -> None:
    """One that was found in later words stays, so that a long conversation is not named anew each night."""
    model = Namer("Marta's boat", "The garden")
    agents = dict.fromkeys(AGENTS, AgentMemory(model=BackgroundModel(complete=model)))
    async with opened(tmp_path / "remora.db", clock, agents=agents) as memory:
        for n in range(2):
            await exchange(memory, ADA, f"Marta has {n} boats", clock=clock)
        assert await named(memory) == (["Marta's boat"], 1)
        first = clock()
        for n in range(titles._READ):
            if n == titles._READ // 2:
                second = clock()
            await exchange(memory, ADA, f"the garden has {n} trees", clock=clock)
        await erase_words(memory.database, before=first, now=clock())
        assert await rows(memory, "select title from sessions") == [(None,)]
        assert await named(memory) == (["The garden"], 1)
        assert await erase_words(memory.database, before=second, now=clock()) == titles._READ
        assert await rows(memory, "select title from sessions") == [("The garden",)]


class Reader:
    """Answers by number, and keeps what each request for an answer holds; a title is "The bridge"."""

    def __init__(self) -> None:
        self.read: list[list[str]] = []
        self.titled = 0

    async def __call__(self, asked: Asked) -> Answer:
        messages = [str(one["content"]) for one in asked.body["messages"]]
        if "You name conversations" in messages[0]:
            self.titled += 1
            text = json.dumps({"title": "The bridge"})
        else:
            said = [[line for line in one.splitlines() if not line.startswith("[day")] for one in messages[1:]]
            self.read.append([lines[0] for lines in said])
            text = f"Answer {len(self.read)}."
        return Answer(body={"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]})


async def test_a_branch_is_read_with_what_it_goes_on_from(tmp_path: Path, unused_tcp_port: int) -> None:
    """In the settings of a new installation, with a model: at its first message, at later ones, and answered anew."""
    model = Reader()
    async with serving(model) as address:
        served = Served(tmp_path, port=unused_tcp_port, model_url=f"{address}/v1", model="context: 32000", shipped=True)
        async with paged(tmp_path, port=unused_tcp_port, served=served) as page:
            ada = await page.signed_in()
            for text in ("Is the bridge old?", "And the tower?", "Which is higher?"):
                await ada.say(text)
            assert model.read[-1][-5:] == [
                "Is the bridge old?", "Answer 1.", "And the tower?", "Answer 2.", "Which is higher?",
            ]  # fmt: skip
            branch = await reworded(ada, "/chat/main", 1, "And the lake?")
            assert model.read[-1][-3:] == ["Is the bridge old?", "Answer 1.", "And the lake?"]
            await ada.say("How deep is it?", thread=branch.removeprefix("/chat/"))
            assert model.read[-1][-4:] == ["Answer 1.", "And the lake?", "Answer 4.", "How deep is it?"]
            await ada.say("/retry", thread=branch.removeprefix("/chat/"))
            assert model.read[-1][-4:] == ["Answer 1.", "And the lake?", "Answer 4.", "How deep is it?"]
            assert "The bridge" in await ada.text("/chat/main/talks") and model.titled == 1
            thread = branch.removeprefix("/chat/")
            await ada.say("/new", thread=thread)
            await ada.say("Who built it?", thread=thread)
            assert model.read[-1] == ["Who built it?"], "a branch begins anew, too"
            await ada.say("And when?", thread=thread)
            await reworded(ada, branch, 4, "And where?")
            assert model.read[-1][0] == "Who built it?" and model.read[-1][-1] == "And where?"
