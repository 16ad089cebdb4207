"""No conversation stops for good because a model's server refuses something in it, in whatever words.

A scripted server on loopback refuses by rules of its own; messages go through the whole bot and its real provider.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

from structlog.testing import capture_logs

from agents.budget import count_tokens
from channels.base import Inbound
from gateway import app
from gateway.config.loading import load
from gateway.config.settings import WorkPace
from gateway.reception.router import Router
from gateway.wording.texts import Texts
from tests.kit.bench import Screen
from tests.kit.fakes import Clock
from tests.kit.loopback import Answer, Asked, serving

Body: TypeAlias = dict[str, Any]

TEXTS = Texts("en", "UTC")
REFUSED = TEXTS("error.model_refused")
WITHOUT = TEXTS("answer.without_history")
#: A character of an answer that the server of these tests does not take back.
SNOWMAN = "\N{SNOWMAN}"


class Picky:
    """A model behind a rule. Keeps the requests of people's turns, and whether each was refused."""

    def __init__(self, refuses: Callable[[Body], bool], status: int = 400, said: str = "Nope.") -> None:
        self.bodies: list[Body] = []
        self.refused: list[bool] = []
        self.status = status
        self.said = said
        self._refuses = refuses

    async def __call__(self, asked: Asked) -> Answer:
        body = asked.body
        self.bodies.append(body)
        self.refused.append(self._refuses(body))
        if self.refused[-1]:
            return Answer(status=self.status, body={"error": {"message": self.said}})
        newest = body["messages"][-1]["content"] or ""
        if body["messages"][-1]["role"] == "user" and "what time" in newest.split("[context")[0] and "tools" in body:
            call = {"id": "call_1", "type": "function", "function": {"name": "now", "arguments": "{}"}}
            message: Body = {"role": "assistant", "content": None, "tool_calls": [call]}
            return Answer(body={"choices": [{"message": message, "finish_reason": "tool_calls"}]})
        words = f"Hello {SNOWMAN}." if "snow" in newest.split("[context")[0] else f"Answer {len(self.bodies)}."
        message = {"role": "assistant", "content": words}
        return Answer(body={"choices": [{"message": message, "finish_reason": "stop"}]})


class Talk:
    """A conversation of one person with the bot."""

    def __init__(self, router: Router, screen: Screen, clock: Clock) -> None:
        self._router = router
        self._screen = screen
        self._clock = clock
        self._number = 0

    async def say(self, text: str, chat: str = "ada") -> str:
        self._number += 1
        said = Inbound(
            channel=self._screen.id, platform="console", bot_id="local", update_key=str(self._number), chat=chat,
            chat_kind="private", author_id=chat, author_name=chat.title(), message_id=str(self._number), text=text,
            sent_at=self._clock(),
        )  # fmt: skip
        before = len(self._screen.texts)
        await self._router.on_inbound(said)
        await self._router.settled(said.place)
        return "\n".join(self._screen.texts[before:])


@asynccontextmanager
async def talking_to(folder: Path, models: str, clock: Clock) -> AsyncIterator[Talk]:
    (folder / "agents").mkdir()
    (folder / "agents" / "assistant.yaml").write_text(f"name: assistant\nmodels: [{models}]\n")
    (folder / "config.yaml").write_text("data_dir: data\nembedding: {provider: none}\n")
    config = load(folder / "config.yaml", {}, folder, pace=WorkPace(exit_seconds=0, quiet_seconds=3600))
    screen = Screen()
    async with app.running(config, {screen.id: screen}, now=clock) as router:
        yield Talk(router, screen, clock)


@asynccontextmanager
async def talking(folder: Path, server: Picky, clock: Clock, *, context: int = 32_000) -> AsyncIterator[Talk]:
    async with (
        serving(server) as address,
        talking_to(
            folder, f"{{provider: openai, model: m, base_url: '{address}/v1', context: {context}}}", clock
        ) as talk,
    ):
        yield talk


def earlier(body: Body) -> str:
    return json.dumps(body["messages"][:-1], ensure_ascii=False)


def largest(bodies: Sequence[Body]) -> int:
    """The characters of the largest of these requests for an answer; readings for memories are among them, too."""
    return max(len(json.dumps(body)) for body in bodies if "write down" not in body["messages"][0]["content"])


async def test_a_conversation_that_a_model_refuses_to_read_goes_on_without_its_past(
    tmp_path: Path, clock: Clock
) -> None:
    """At the second refusal in a row, from the message on that was answered then; the person and the operator know."""
    server = Picky(lambda body: SNOWMAN in earlier(body), said="I would rather not.")
    async with talking(tmp_path, server, clock) as talk:
        assert SNOWMAN in await talk.say("does it snow at your place?")
        assert await talk.say("are you there?") == REFUSED
        with capture_logs() as lines:
            answer = await talk.say("and now?")
        assert answer.startswith("Answer") and answer.endswith(WITHOUT)
        told = next(line for line in lines if line["event"] == "model.answered_with_less")
        assert (told["without"], "I would rather not." in told["error"]) == ("before", True)
        before = len(server.bodies)
        assert await talk.say("so we go on") == f"Answer {before + 1}."
        assert len(server.bodies) == before + 1
        assert "and now?" in earlier(server.bodies[-1]) and "are you there?" not in earlier(server.bodies[-1])


async def test_calls_that_are_not_taken_back_are_told_in_words(tmp_path: Path, clock: Clock) -> None:
    """Nothing is lost, so the person is not bothered."""

    def refuses(body: Body) -> bool:
        asked = max(n for n, message in enumerate(body["messages"]) if message["role"] == "user")
        return any(message.get("tool_calls") for message in body["messages"][:asked])

    server = Picky(refuses, status=422, said="Message 4 lacks something that nobody has heard of.")
    async with talking(tmp_path, server, clock) as talk:
        assert (await talk.say("what time is it?")).startswith("Answer")
        assert await talk.say("thank you") == REFUSED
        assert await talk.say("thank you!") == f"Answer {len(server.bodies)}."
        assert "(Result of now: " in earlier(server.bodies[-1]) and "what time" in earlier(server.bodies[-1])
        before = len(server.bodies)
        assert await talk.say("what time is it now?") == f"Answer {len(server.bodies)}."
        assert server.refused[before:] == [False, False], "a call of the turn itself is still shown as one"


async def test_what_is_remembered_may_be_refused_as_well(tmp_path: Path, clock: Clock) -> None:
    server = Picky(lambda body: "zeppelin" in earlier(body) or "remembered, as it bears" in json.dumps(body))
    async with talking(tmp_path, server, clock) as talk:
        await talk.say("/remember my dog is called zeppelin")
        assert await talk.say("what is my dog called?") == REFUSED
        assert WITHOUT in await talk.say("what is my dog called, then?")
        before = len(server.bodies)
        assert WITHOUT in await talk.say("and my dog again?")
        assert len(server.bodies) == before + 2, "it is not refused more often than needed"


async def test_a_long_request_is_made_smaller_at_the_first_refusal(tmp_path: Path, clock: Clock) -> None:
    """Words for "too long" have no end."""
    server = Picky(lambda body: count_tokens(json.dumps(body)) > 4_500, said="Das passt hier nicht hinein.")
    async with talking(tmp_path, server, clock, context=8_000) as talk:
        for n in range(30):
            answer = await talk.say(f"Day {n}. " + "The wind was fair and the harbour lay behind us by noon. " * 20)
            assert "\nAnswer" in f"\n{answer}" and WITHOUT not in answer, n
        assert 0 < sum(server.refused) < 12, "a smaller context is believed after a few"


async def test_a_filtered_message_costs_no_other_conversation_its_room(tmp_path: Path, clock: Clock) -> None:
    """Nor does it stop its own: half of that is answered, as if it had been too long."""
    filtering: list[bool] = []
    said = "The prompt was flagged by our content filter."
    server = Picky(lambda body: bool(filtering) and SNOWMAN in earlier(body), said=said)
    day = "The wind was fair and the harbour lay behind us by noon. " * 20
    async with talking(tmp_path, server, clock, context=8_000) as talk:
        for n in range(26):
            await talk.say(f"Day {n}. {day}", chat="ben")
        filled, before = largest(server.bodies), len(server.bodies)
        await talk.say("does it snow?")
        for n in range(5):
            await talk.say(f"Day {n}. {day}")
        filtering.append(True)
        assert (await talk.say(f"Are you there? {day * 4}")).startswith("Answer")
        assert server.refused[-2:] == [True, False]
        for n in range(26, 40):
            await talk.say(f"Day {n}. {day}", chat="ben")
        assert largest(server.bodies[before:]) > 0.8 * filled
        assert (await talk.say("Good.")).startswith("Answer") and server.refused[-2:] == [False, False]


async def test_nothing_more_is_tried_than_may_help(tmp_path: Path, clock: Clock) -> None:
    """The request with less is asked for three times at most, and the person learns what to do."""
    server = Picky(lambda body: True)
    async with talking(tmp_path, server, clock) as talk:
        assert await talk.say("hello") == REFUSED and "/new" in REFUSED
        assert len(server.bodies) == 1
        for text in ("hello?", "is anybody there?"):
            before = len(server.bodies)
            assert await talk.say(text) == REFUSED
            assert len(server.bodies) - before <= 4


async def test_a_key_a_model_and_an_account_are_no_matter_of_the_conversation(tmp_path: Path, clock: Clock) -> None:
    server = Picky(lambda body: len(server.bodies) > 1, said="You have run out of credits.")
    async with talking(tmp_path, server, clock) as talk:
        await talk.say("hello")
        for status, code in ((401, "model_auth"), (402, "model_unpaid"), (404, "model_refused"), (429, "model_unpaid")):
            server.status = status
            for text in ("one", "two"):
                before = len(server.bodies)
                assert await talk.say(f"{text} {status}") == TEXTS(f"error.{code}")
                assert len(server.bodies) == before + 1, status


async def test_a_template_that_fails_on_the_past_is_spared_it(tmp_path: Path, clock: Clock) -> None:
    """llama.cpp tells it as a failure of its own, which is asked four times before it counts."""
    server = Picky(lambda body: SNOWMAN in earlier(body), status=500, said="Value is not callable: null at row 1")
    async with talking(tmp_path, server, clock) as talk:
        await talk.say("does it snow?")
        assert await talk.say("are you there?") == TEXTS("error.model_unavailable")
        assert WITHOUT in await talk.say("and now?")
        assert sum(server.refused) == 8
        # It may have been an outage, so the whole is read to it once more.
        assert WITHOUT in await talk.say("once more?")
        assert sum(server.refused) == 12
        assert (await talk.say("and then?")).startswith("Answer")
        assert sum(server.refused) == 12


async def test_without_a_model_a_person_learns_that_a_message_was_too_long(tmp_path: Path, clock: Clock) -> None:
    """Its middle is kept and searched, and not read for the answer."""
    long = "My cat is called Luna. " + "The wind was fair. " * 400 + "What is my cat called?"
    async with talking_to(tmp_path, "{provider: offline}", clock) as talk:
        answer = await talk.say(long)
        assert "Luna" in answer and answer.endswith(TEXTS("long.told", length=len(long)))
        assert "(" not in await talk.say("What is my cat called?")
