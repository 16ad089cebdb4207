"""Requests in the shapes that front ends send: Open WebUI, LibreChat, Home Assistant, continue.dev."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kit.doors import FRONT_KEY, SHARED_KEY, House, content, events, house, signed
from tests.kit.fakes import NOON, ScriptedModel, calls

SHAPES: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parents[1] / "data" / "front_ends.yaml").read_text(encoding="utf-8")
)
CLAIMS = {"iss": "open-webui", "sub": "f3a1", "name": "Ada", "exp": NOON / 1000 + 10**6}


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path, model=ScriptedModel()) as home:
        yield home


def webui(chat: str, message: str, *said: str, task: str = "") -> tuple[dict[str, str], dict[str, Any]]:
    headers = {
        "X-OpenWebUI-User-Jwt": signed(CLAIMS),
        "X-OpenWebUI-User-Name": "Ada",
        "X-OpenWebUI-User-Email": "ada@example.org",
        "X-OpenWebUI-Chat-Id": chat,
        "X-OpenWebUI-Message-Id": message,
        **({"X-OpenWebUI-Task": task} if task else {}),
    }
    roles = ("user", "assistant")
    messages = [{"role": roles[n % 2], "content": text} for n, text in enumerate(said)]
    return headers, {"model": "assistant", "messages": messages, "stream": True}


async def asked(home: House, key: str, headers: dict[str, str], body: dict[str, Any]) -> str:
    answer = await home.ask("POST", "/v1/chat/completions", key, body, headers)
    assert answer.status_code == 200, answer.text
    return "".join(one["choices"][0]["delta"].get("content") or "" for one in events(answer.text) if one["choices"])


async def test_open_webui_talks_makes_titles_and_regenerates(home: House) -> None:
    """Of all its requests one message is told, and the regenerated answer takes the place of the first."""
    model = home.world.agents["assistant"].provider
    assert isinstance(model, ScriptedModel)
    model.answers = ["It is Zottelbär.", '{"title": "🚲 Bike"}', '{"follow_ups": []}', "Zottelbär, I think."]
    question = "What is my bike called?"
    assert await asked(home, FRONT_KEY, *webui("c1", "m1", question)) == "It is Zottelbär."
    task = "### Task:\nGenerate a concise, 3-5 word title with an emoji summarizing the chat history."
    assert "Bike" in await asked(home, FRONT_KEY, *webui("c1", "m2", task, task="title_generation"))
    follow = "### Task:\nSuggest 3-5 relevant follow-up questions or prompts that the user might naturally ask next"
    assert "follow_ups" in await asked(home, FRONT_KEY, *webui("c1", "m3", follow))
    assert await asked(home, FRONT_KEY, *webui("c1", "m4", question)) == "Zottelbär, I think."
    said = await home.world.rows("select role, text from messages where text <> '' and erased_at is null order by id")
    assert said == [("user", question), ("assistant", "Zottelbär, I think.")]


async def test_open_webui_goes_on_in_another_chat_with_the_same_memory(home: House) -> None:
    await asked(home, FRONT_KEY, *webui("c1", "m1", "/remember my bike is called Zottelbär"))
    assert "Zottelbär" in await asked(home, FRONT_KEY, *webui("c2", "m2", "/memory"))


async def test_librechat_with_a_key_of_its_own_names_person_and_conversation(home: House) -> None:
    """Its headers are settings with placeholders; where they were not filled in, it is told so."""
    body = {
        "model": "assistant", "user": "66f0c2", "stream": True,
        "messages": [
            {"role": "system", "content": "You are helpful."},
            {"role": "user", "content": [{"type": "text", "text": "/remember my cat is called Minka"}]},
        ],
    }  # fmt: skip
    headers = {"X-LibreChat-User-Id": "66f0c2", "X-LibreChat-Conversation-Id": "b2a0e7f4-1"}
    assert "Minka" in await asked(home, SHARED_KEY, headers, body)
    listed = {**body, "messages": [{"role": "user", "content": "/memory"}], "user": "other"}
    assert "Minka" in await asked(home, SHARED_KEY, headers, listed)
    assert "Minka" not in await asked(home, SHARED_KEY, {}, listed)
    unset = await home.ask(
        "POST", "/v1/chat/completions", SHARED_KEY, body, {"X-LibreChat-User-Id": "{{LIBRECHAT_USER_ID}}"}
    )
    assert unset.status_code == 400 and "{{LIBRECHAT_USER_ID}}" in unset.json()["error"]["message"]
    title = [{"role": "user", "content": "Provide a concise, 5-word-or-less title for the conversation: …"}]
    before = await home.world.rows("select count(*) from messages")
    await asked(home, SHARED_KEY, headers, {**body, "messages": title})
    assert await home.world.rows("select count(*) from messages") == before


async def test_home_assistant_has_its_tools_called_with_memory(home: House) -> None:
    """Its own instructions and history hold, and nothing of it is kept."""
    await home.world.say("/remember the bedroom lamp is called Zottelbär", author="7")
    model, key = home.world.agents["assistant"].provider, await home.key("Home Assistant")
    assert isinstance(model, ScriptedModel)
    model.answers = [calls(("HassTurnOn", '{"name": "Zottelbär"}'))]
    tool = {
        "type": "function",
        "function": {"name": "HassTurnOn", "description": "Turns on", "parameters": {"type": "object"}},
    }
    body = {
        "model": "assistant-recall", "tools": [tool], "max_completion_tokens": 300, "top_p": 1.0, "temperature": 1.0,
        "messages": [
            {"role": "system", "content": "You are a voice assistant for Home Assistant."},
            {"role": "user", "content": "Turn on the bedroom lamp"},
        ],
    }  # fmt: skip
    answer = (await home.ask("POST", "/v1/chat/completions", key, body)).json()["choices"][0]
    assert answer["finish_reason"] == "tool_calls"
    system = model.requests[-1].messages[0].content
    assert system.startswith("You are a voice assistant for Home Assistant.") and "Zottelbär" in system
    assert model.requests[-1].max_tokens == 300
    assert await home.world.rows(
        "select count(*) from messages where text like '%bedroom lamp%' and role = 'user' and turn_id is not null"
    ) == [(0,)]


async def test_continue_completes_without_a_stream(home: House) -> None:
    """A plain request with the history of an editor."""
    key = await home.key("continue")
    said = ("Explain this function", "It adds.", "And this one?")
    assert (
        content(await home.chat(key, *said, model="assistant-recall", temperature=0.2, max_tokens=500)) == "All right."
    )


async def test_requests_of_front_ends_are_told_or_answered_apart(home: House) -> None:
    """Each shape that they send: a person's words are told as they said them, and the rest leaves no trace."""
    model, own = home.world.agents["assistant"].provider, await home.key()
    assert isinstance(model, ScriptedModel)
    wrong = []
    for shape in SHAPES:
        key, identity = {
            "signing": (FRONT_KEY, {"X-OpenWebUI-User-Jwt": signed(CLAIMS)}),
            "shared": (SHARED_KEY, {}),
            "own": (own, {}),
        }[shape["through"]]
        ((before,),) = await home.world.rows("select ifnull(max(id), 0) from messages")
        inboxes = await home.world.rows("select count(*) from inbox")
        path = f"/v1/{shape.get('path', 'chat/completions')}"
        answer = await home.ask("POST", path, key, shape["body"], {**identity, **shape.get("headers", {})})
        said = await home.world.rows("select text from messages where id > ? and role = 'user'", before)
        asked = model.requests[-1].messages
        right = (
            answer.status_code == 200
            and said == ([(shape["told"],)] if "told" in shape else [])
            and ("told" in shape) == (await home.world.rows("select count(*) from inbox") != inboxes)
            and asked[-1].content.startswith(shape.get("asks", ""))
            and any(shape.get("seen", "") in one.content for one in asked)
        )
        wrong += [] if right else [(shape["name"], answer.text[:200], said, asked[-1].content[:200])]
    assert wrong == []


async def test_documents_of_a_front_end_are_a_file_and_nobodys_words(home: House) -> None:
    """Nothing is learned from them, and the same words with other documents are the same message."""
    key, (shape,) = await home.key(), [one for one in SHAPES if "documents" in one["name"]]
    texts = [shape["body"]["messages"][0]["content"], shape["body"]["messages"][0]["content"].replace("71 cm", "80 cm")]
    for text in texts:
        body = {"model": "assistant", "messages": [{"role": "user", "content": text}]}
        await home.ask("POST", "/v1/chat/completions", key, body, {"X-OpenWebUI-Chat-Id": "c9"})
    said = await home.world.rows("select text from messages where role = 'user' and erased_at is null")
    assert said == [("How high is it?\n[file: documents.txt]",)]
    assert not [row for row in await home.world.rows("select value from memories") if "Mallory" in row[0]]


async def test_an_agent_calls_its_own_tools_and_answers_in_words(home: House) -> None:
    """Tools that a front end offers with every message are left alone; one that has to be called is refused."""
    key = await home.key()
    tools = [{"type": "function", "function": {"name": "light_on", "parameters": {"type": "object"}}}]
    model = home.world.agents["assistant"].provider
    assert isinstance(model, ScriptedModel)
    assert content(await home.chat(key, "Hello", tools=tools, tool_choice="auto")) == "All right."
    assert "light_on" not in {tool.name for tool in model.requests[-1].tools}
    for more in (
        {"tools": tools, "tool_choice": "required"},
        {"response_format": {"type": "json_object"}},
        {"response_format": {"type": "xml"}},
    ):
        refused = await home.chat(key, "Hello", **more)
        assert refused.status_code == 400 and refused.json()["error"]["code"] == "unsupported"
    await home.chat(key, "Hello", model="assistant-recall", response_format={"type": "json_object"})
    assert model.requests[-1].json_mode
