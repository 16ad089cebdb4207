"""The client library that most programs use, against the doors: sync, async, streams, responses, retries."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from openai import AsyncOpenAI, AuthenticationError, BadRequestError, NotFoundError, OpenAI, RateLimitError

from tests.kit.doors import House, PiecewiseModel, house
from tests.kit.fakes import ScriptedModel, calls
from tests.kit.patience import SECONDS, leap, settle

HELLO: list[Any] = [{"role": "user", "content": "Hello"}]


def answers(*texts: str) -> ScriptedModel:
    return ScriptedModel(*texts)


async def connected(home: House, key: str) -> AsyncOpenAI:
    return AsyncOpenAI(
        api_key=key, base_url=f"{home.url}/v1", http_client=httpx2.AsyncClient(trust_env=False, timeout=SECONDS)
    )


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path, model=answers("One.", "Two.", "Three.")) as home:
        yield home


async def test_the_async_client_lists_asks_and_streams(home: House) -> None:
    async with await connected(home, await home.key()) as client:
        assert [model.id async for model in client.models.list()] == ["assistant", "assistant-recall"]
        answer = await client.chat.completions.create(model="assistant", messages=HELLO)
        assert answer.choices[0].message.content == "One." and answer.choices[0].finish_reason == "stop"
        assert answer.usage is not None and answer.usage.total_tokens >= 0
        stream = await client.chat.completions.create(
            model="assistant", messages=[{"role": "user", "content": "And?"}], stream=True,
            stream_options={"include_usage": True},
        )  # fmt: skip
        chunks = [chunk async for chunk in stream]
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "Two."
        assert chunks[-1].usage is not None and len({chunk.id for chunk in chunks}) == 1


async def test_the_sync_client_asks_in_a_thread(home: House) -> None:
    key = await home.key()

    def ask() -> str | None:
        with OpenAI(
            api_key=key, base_url=f"{home.url}/v1", http_client=httpx2.Client(trust_env=False, timeout=SECONDS)
        ) as client:
            answer = client.chat.completions.create(model="assistant", messages=HELLO)
            return answer.choices[0].message.content

    assert await asyncio.to_thread(ask) == "One."


async def test_responses_are_asked_for_streamed_and_gone_on_with(home: House) -> None:
    async with await connected(home, await home.key()) as client:
        first = await client.responses.create(model="assistant", input="Hello")
        assert first.output_text == "One." and first.status == "completed"
        second = await client.responses.create(model="assistant", input="And?", previous_response_id=first.id)
        assert second.output_text == "Two."
        events = [event async for event in await client.responses.create(model="assistant", input="More", stream=True)]
        assert events[0].type == "response.created" and events[-1].type == "response.completed"
        assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == "Three."
        assert [event.sequence_number for event in events] == list(range(len(events)))


async def test_tools_of_the_client_are_called_through_recall(tmp_path: Path) -> None:
    """And their results are read in the next request, in both forms of the API."""
    wanted = calls(("light_on", '{"room": "hall"}'))
    async with (
        house(tmp_path, model=ScriptedModel(wanted, "It is on.", wanted, "It is on.")) as home,
        await connected(home, await home.key()) as client,
    ):
        spec: Any = {"name": "light_on", "description": "on", "parameters": {"type": "object", "properties": {}}}
        flat: list[Any] = [{"type": "function", "strict": False, **spec}]
        said: list[Any] = [{"role": "user", "content": "Light, please"}]
        asked = await client.chat.completions.create(
            model="assistant-recall", messages=said, tools=[{"type": "function", "function": spec}]
        )
        call = (asked.choices[0].message.tool_calls or [])[0]
        said += [asked.choices[0].message.model_dump(), {"role": "tool", "tool_call_id": call.id, "content": "ok"}]
        answer = await client.chat.completions.create(model="assistant-recall", messages=said)
        assert answer.choices[0].message.content == "It is on."
        first = await client.responses.create(model="assistant-recall", input="Light, please", tools=flat)
        wish = next(item for item in first.output if item.type == "function_call")
        second = await client.responses.create(
            model="assistant-recall",
            input=[
                {"role": "user", "content": "Light, please"},
                {"type": "function_call", "call_id": wish.call_id, "name": wish.name, "arguments": wish.arguments},
                {"type": "function_call_output", "call_id": wish.call_id, "output": "ok"},
            ],
        )
        assert second.output_text == "It is on."


async def test_refusals_are_the_clients_own_errors(tmp_path: Path) -> None:
    """Each with its class, so that programs written for OpenAI handle them."""
    async with house(tmp_path, model=answers("One."), requests_per_minute=6) as home:
        key = await home.key()
        async with await connected(home, "rk_wrong") as stranger:
            with pytest.raises(AuthenticationError):
                await stranger.models.list()
        async with await connected(home, key) as client:
            plain = client.with_options(max_retries=0)
            with pytest.raises(NotFoundError):
                await plain.chat.completions.create(model="gpt-9", messages=HELLO)
            with pytest.raises(BadRequestError, match="Send the picture itself"):
                await plain.chat.completions.create(
                    model="assistant",
                    messages=[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x"}}]}],
                )
            for _ in range(3):
                await home.ask("GET", "/v1/models", key)
            with pytest.raises(RateLimitError):
                await plain.models.list()


async def test_the_clients_own_retry_is_told_once(tmp_path: Path) -> None:
    """It gives up waiting and asks again by itself; the model is paid once, and the answer is the first one's."""
    model = PiecewiseModel("slow but sure")
    async with house(tmp_path, model=model) as home, await connected(home, await home.key()) as client:
        impatient = client.with_options(timeout=SECONDS / 2, max_retries=3)
        asking = asyncio.create_task(impatient.chat.completions.create(model="assistant", messages=HELLO))
        await model.began.wait()
        await settle()
        leap(SECONDS / 2)
        await settle()
        for _ in range(3):
            model.gate.release()
        assert (await asking).choices[0].message.content == "slow but sure"
        assert len(model.requests) == 1
        assert await home.world.rows("select count(*) from messages where text = 'Hello'") == [(1,)]


async def test_the_first_piece_comes_before_the_model_has_the_next(tmp_path: Path) -> None:
    model = PiecewiseModel("first second third")
    async with house(tmp_path, model=model) as home, await connected(home, await home.key()) as client:
        model.gate.release()
        pieces = []
        async for chunk in await client.chat.completions.create(model="assistant", messages=HELLO, stream=True):
            if chunk.choices and chunk.choices[0].delta.content:
                pieces.append(chunk.choices[0].delta.content)
                model.gate.release()
        assert [piece.strip() for piece in pieces] == ["first", "second", "third"]
