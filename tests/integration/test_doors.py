"""Programs talk to an agent through OpenAI's API: who they are, what is told once, what is kept of it."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from agents.llm import ModelRateLimited
from agents.spec import ModelSpec
from memory.chat.identities import Where, Who
from memory.mailbox.outbox import Part
from tests.kit.doors import FRONT_KEY, SHARED_KEY, House, PiecewiseModel, content, events, house, signed
from tests.kit.fakes import NOON, ScriptedModel, calls
from tests.kit.forgetting import traces
from tests.kit.patience import limit

CHAT = "/v1/chat/completions"
HELLO = [{"role": "user", "content": "Hello"}]
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(64))
SUB = {"iss": "open-webui", "sub": "u1", "name": "Eva", "exp": NOON / 1000 + 10**6}


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path, model=ScriptedModel()) as home:
        yield home


def model_of(home: House) -> ScriptedModel:
    model = home.world.agents["assistant"].provider
    assert isinstance(model, ScriptedModel)
    return model


# The pipeline ---------------------------------------------------------------------------------------------------


async def test_a_program_talks_to_the_agent_as_its_person(home: House) -> None:
    """Facts told to the bot elsewhere are known there, and facts told by the program are known elsewhere."""
    await home.world.say("/remember my locker is in hall Quaxolia", author="7")
    key = await home.key()
    model_of(home).answers = ["In hall Quaxolia."]
    assert content(await home.chat(key, "Where is my locker?")) == "In hall Quaxolia."
    (request,) = model_of(home).requests
    assert any("Quaxolia" in message.content for message in request.messages)
    assert content(await home.chat(key, "/remember my bike is called Zottelbär")).startswith("Saved")
    assert "Zottelbär" in (await home.world.say("/memory", author="7"))[0]
    assert "Zottelbär" not in (await home.world.say("/memory", author="8"))[0]


async def test_only_the_last_message_is_new(home: House) -> None:
    """The history a client sends is not told again; Remora's own counts."""
    key = await home.key()
    await home.chat(key, "My name is Ada.")
    await home.chat(key, "My name is Ada.", "All right.", "And I like tea.")
    said = await home.world.rows("select text from messages where role = 'user' order by id")
    assert [text for (text,) in said] == ["My name is Ada.", "And I like tea."]
    assert [m.content for m in model_of(home).requests[-1].messages if "My name is Ada" in m.content]


async def test_a_clients_system_text_holds_for_this_answer_and_is_never_learned(home: House) -> None:
    """It stands in the request of this turn alone, and in no file: it may hold what is forgotten here."""
    key = await home.key()
    messages = [{"role": "system", "content": "Answer like a Pirate Quaxolia."}, {"role": "user", "content": "Hello"}]
    await home.ask("POST", "/v1/chat/completions", key, {"model": "assistant", "messages": messages})
    await home.chat(key, "Hello", "All right.", "And now?")
    first, second = model_of(home).requests
    assert "Pirate Quaxolia" in first.messages[-1].content
    assert not any("Quaxolia" in message.content for message in second.messages)
    folder = home.world.memory.database.path.parent
    assert not [file for file in folder.rglob("*") if file.is_file() and b"Quaxolia" in file.read_bytes()]


async def test_conversations_are_told_apart_by_their_header(home: House) -> None:
    key = await home.key()
    for chat in ("a", "b"):
        await home.chat(key, f"This is {chat}.", headers={"X-OpenWebUI-Chat-Id": chat})
    await home.chat(key, "No header.")
    sessions = await home.world.rows("select count(*) from sessions where key like 'api:%'")
    assert sessions == [(3,)]


async def test_a_retry_is_told_once_and_gets_the_same_answer(home: House) -> None:
    """As openai's client repeats it, and as a front end names it."""
    key = await home.key()
    named = {"Idempotency-Key": "k1"}
    for n, (before, repeated) in enumerate((({}, {"X-Stainless-Retry-Count": "1"}), (named, named))):
        model_of(home).answers = [f"Answer {n}."]
        first = await home.chat(key, f"Question {n}?", headers=before)
        again = await home.chat(key, f"Question {n}?", headers=repeated)
        assert content(first) == content(again) == f"Answer {n}."
        assert await home.world.rows("select count(*) from messages where text = ?", f"Question {n}?") == [(1,)]


async def test_the_same_words_are_a_new_message_once_they_were_answered(home: House) -> None:
    """A person may say yes twice."""
    key = await home.key()
    model_of(home).answers = ["One.", "Two."]
    assert [content(await home.chat(key, "yes")) for _ in range(2)] == ["One.", "Two."]
    assert await home.world.rows("select count(*) from messages where text = 'yes'") == [(2,)]


async def test_a_conversation_sent_once_more_asks_for_another_answer(home: House) -> None:
    """As front ends do it for "regenerate": the words are not told a second time."""
    key, chat = await home.key(), {"X-OpenWebUI-Chat-Id": "a"}
    model_of(home).answers = ["One.", "Two."]
    for answer in ("One.", "Two."):
        assert content(await home.chat(key, "Tell me a number.", headers=chat)) == answer
    said = await home.world.rows("select text from messages where erased_at is null and text <> '' order by id")
    assert [text for (text,) in said if text in ("Tell me a number.", "One.", "Two.")] == ["Tell me a number.", "Two."]


async def test_an_answer_is_streamed_as_it_grows(tmp_path: Path) -> None:
    """Each piece comes before the next one is made, and silence says that it is still there."""
    model = PiecewiseModel("one two three four")
    async with house(tmp_path, model=model, quiet=0.05) as home:
        key = await home.key()
        body = {
            "model": "assistant", "stream": True, "stream_options": {"include_usage": True},
            "messages": [{"role": "user", "content": "Count."}],
        }  # fmt: skip
        lines: list[str] = []
        headers = {"Authorization": f"Bearer {key}"}
        async with home.client.stream("POST", f"{home.url}/v1/chat/completions", json=body, headers=headers) as answer:
            assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/event-stream")
            async for line in answer.aiter_lines():
                lines.append(line)
                if line == ": keep-alive" and not model.gate._value:
                    model.gate.release()
        found = events("\n".join(lines))
        pieces = [one["choices"][0]["delta"].get("content", "") for one in found if one["choices"]]
        assert "".join(pieces) == "one two three four" and len([one for one in pieces if one]) >= 3
        assert found[-2]["choices"][0]["finish_reason"] == "stop" and found[-1]["choices"] == []
        assert found[-1]["usage"]["total_tokens"] >= 0 and lines[-2] == "data: [DONE]"
        # Its first byte came before the turn, so that the header could not name it.
        ((turn,),) = await home.world.rows("select max(id) from turns")
        assert found[-2]["remora_turn"] == str(turn) and "x-remora-turn" not in answer.headers


async def test_each_answer_names_its_turn(home: House) -> None:
    key = await home.key()
    said: dict[str, Any] = {"chat/completions": {"messages": HELLO}, "responses": {"input": "Hello"}}
    for path, more in said.items():
        for stream in (False, True):
            body = {"model": "assistant", "stream": stream, **more}
            answer = await home.ask("POST", f"/v1/{path}", key, body, {"X-Conversation-Id": f"{path}{stream}"})
            ((turn,),) = await home.world.rows("select max(id) from turns")
            last = events(answer.text)[-1] if stream else answer.json()
            last = last.get("response", last)
            assert answer.headers["x-remora-turn"] == str(turn) == {**last, **last.get("metadata", {})}["remora_turn"]


async def test_a_picture_is_seen_by_the_agent_and_by_the_model_alone(home: House) -> None:
    """It comes with the request itself; history keeps its name, and a repetition is told once."""
    key = await home.key()
    url = "data:image/png;base64," + base64.b64encode(PNG).decode()
    parts: list[Any] = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": url}}]
    body: dict[str, Any] = {"messages": [{"role": "user", "content": parts}]}
    flat = [{"type": "input_text", "text": "What is this?"}, {"type": "input_image", "image_url": url}]
    alone = {"model": "assistant-recall", "input": [{"role": "user", "content": flat}]}
    blind = await home.ask("POST", "/v1/responses", key, alone)
    assert blind.status_code == 400 and "can't see pictures" in blind.json()["error"]["message"]
    served, agents = home.world.agents["assistant"], home.world.agents
    assert isinstance(agents, dict)
    spec = served.spec.model_copy(update={"models": (ModelSpec(provider="openai", model="eye", sees=True),)})
    agents["assistant"] = replace(served, spec=spec)
    for headers in ({}, {"X-Stainless-Retry-Count": "1"}):
        answer = await home.ask("POST", "/v1/chat/completions", key, body | {"model": "assistant"}, headers)
        assert content(answer) == "All right."
    assert (await home.ask("POST", "/v1/responses", key, alone)).status_code == 200
    seen = [[picture.data for picture in one.messages[-1].pictures] for one in model_of(home).requests]
    assert seen == [[PNG], [PNG]]
    said = await home.world.rows("select text from messages where role = 'user'")
    assert said == [("What is this?\n[picture]",)]


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("https://example.org/cat.png", "as a data: URL"),
        ("http://127.0.0.1:8765/v1/memories", "as a data: URL"),
        ("file:///etc/passwd", "as a data: URL"),
        ("data:image/png;base64,!!!", "must be a PNG"),
        ("data:image/svg+xml;base64,PHN2Zz4=", "must be a PNG"),
        ("data:image/png,plain", "must be a PNG"),
    ],
)
async def test_a_picture_that_the_request_does_not_hold_is_refused(home: House, url: str, told: str) -> None:
    """No address is asked for it, neither of the web nor of this machine."""
    body = {
        "model": "assistant",
        "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}],
    }
    answer = await home.ask("POST", "/v1/chat/completions", await home.key(), body)
    assert answer.status_code == 400 and told in answer.json()["error"]["message"]
    assert model_of(home).requests == []


async def test_who_is_cut_off_gets_the_answer_by_asking_again(tmp_path: Path) -> None:
    """The answer goes on without its reader, is paid for once, and waits."""
    model = PiecewiseModel("slow but sure")
    async with house(tmp_path, model=model) as home:
        key = await home.key()
        asking = asyncio.create_task(home.chat(key, "Hurry up."))
        await model.began.wait()
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        for _ in range(3):
            model.gate.release()
        assert content(await home.chat(key, "Hurry up.")) == "slow but sure"
        assert len(model.requests) == 1


async def test_the_answer_of_an_earlier_run_is_found_in_history(tmp_path: Path) -> None:
    """A program that asks again after a restart is not told that nothing is known, and nothing is told twice."""
    key = ""
    for n in range(2):
        async with house(tmp_path, model=ScriptedModel("First run.", "Second run.")) as home:
            key = key or await home.key()
            assert content(await home.chat(key, "Hello?")) == "First run."
            assert len(model_of(home).requests) == 1 - n


async def test_a_question_of_the_bots_is_answered_by_typing(home: House) -> None:
    key = await home.key()
    await home.chat(key, "/remember the code is Quaxolia")
    assert "Quaxolia" in content(await home.chat(key, "/forget Quaxolia"))
    content(await home.chat(key, "yes"))
    assert await home.world.rows("select 1 from memories where value like '%Quaxolia%'") == []
    assert traces(home.world.memory.database.path, ["Quaxolia"]) == {}


# Models, responses, tasks ---------------------------------------------------------------------------------------


async def test_the_models_are_the_agents(home: House) -> None:
    """Each once with its own memory of the conversation, and once with the client's."""
    key = await home.key()
    listed = (await home.ask("GET", "/v1/models", key)).json()
    assert [one["id"] for one in listed["data"]] == ["assistant", "assistant-recall"]
    assert (await home.ask("GET", "/v1/models/assistant", key)).json()["object"] == "model"
    wrong = await home.chat(key, "Hello", model="gpt-4")
    assert wrong.status_code == 404 and wrong.json()["error"]["code"] == "model_not_found"


async def test_recall_answers_with_the_clients_history_and_learns_nothing(home: House) -> None:
    """The client's tools are passed on, and what it says is kept nowhere."""
    await home.world.say("/remember my bike is called Zottelbär", author="7")
    key = await home.key()
    model_of(home).answers = [calls(("light_on", '{"room": "hall"}'))]
    tools = [{"type": "function", "function": {"name": "light_on", "description": "on", "parameters": {}}}]
    answer = await home.chat(
        key, "Hi", "Hello", "What is my bike called? Vexolian", model="assistant-recall", tools=tools
    )
    choice = answer.json()["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["tool_calls"][0]["function"] == {"name": "light_on", "arguments": '{"room": "hall"}'}
    (request,) = model_of(home).requests
    assert "Zottelbär" in request.messages[0].content and request.tools[0].name == "light_on"
    assert [m.content for m in request.messages[1:]] == ["Hi", "Hello", "What is my bike called? Vexolian"]
    for table in ("messages", "inbox", "memories"):
        assert "Vexolian" not in repr(await home.world.rows(f"select * from {table}"))
    assert await home.world.rows("select count(*) from usage where purpose = 'chat'") == [(1,)]


async def test_a_programs_schema_is_passed_on_with_its_own_strictness(home: House) -> None:
    key, schema = await home.key(), {"type": "object", "properties": {"city": {"type": "string"}}}
    for strict in (True, False):
        form = {"type": "json_schema", "json_schema": {"name": "city", "schema": schema, "strict": strict}}
        await home.chat(key, "Where?", model="assistant-recall", response_format=form)
        request = model_of(home).requests[-1]
        assert (request.json_schema, request.strict) == (schema, strict)


async def test_what_a_front_end_asks_for_itself_gets_no_memory_and_leaves_none(home: House) -> None:
    """Titles, tags and follow-ups, known by their header or their words."""
    await home.world.say("/remember my bike is called Zottelbär", author="7")
    key = await home.key()
    model_of(home).answers = ['{"title": "Bike"}', '{"tags": ["bike"]}']
    task = "### Task:\nGenerate a concise, 3-5 word title with an emoji. What is my bike called?"
    assert content(await home.chat(key, task)) == '{"title": "Bike"}'
    assert content(await home.chat(key, "Tags?", headers={"X-OpenWebUI-Task": "tags"})) == '{"tags": ["bike"]}'
    assert not any("Zottelbär" in message.content for one in model_of(home).requests for message in one.messages)
    assert await home.world.rows("select count(*) from messages where text like '%title%' or text = 'Tags?'") == [(0,)]


async def test_responses_go_on_by_the_id_of_the_answer_before(home: House) -> None:
    """The conversation is the one that the earlier answer was given in."""
    key = await home.key()
    model_of(home).answers = ["One.", "Two."]
    first = await home.ask("POST", "/v1/responses", key, {"model": "assistant", "input": "Hello", "conversation": "x1"})
    assert first.json()["output"][0]["content"][0]["text"] == "One."
    body = {"model": "assistant", "input": "And then?", "previous_response_id": first.json()["id"]}
    second = await home.ask("POST", "/v1/responses", key, body)
    assert second.json()["output"][0]["content"][0]["text"] == "Two." and second.json()["status"] == "completed"
    assert await home.world.rows("select key from sessions where key like 'api:%'") == [("api:1:assistant.x1",)]
    wrong = await home.ask("POST", "/v1/responses", key, body | {"previous_response_id": "chatcmpl-1"})
    assert wrong.json()["error"]["param"] == "previous_response_id"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"model": "assistant"}, "invalid_request"),
        ({"model": "assistant", "messages": []}, "invalid_request"),
        ({"messages": [{"role": "user", "content": "x"}]}, "invalid_request"),
        ({"model": "assistant", "messages": [{"role": "assistant", "content": "x"}]}, "no_message"),
        ({"model": "assistant", "messages": [{"role": "king", "content": "x"}]}, "invalid_request"),
        ({"model": "assistant", "messages": [{"role": "user", "content": "x"}], "n": 2}, "unsupported"),
        (
            {"model": "assistant", "messages": [{"role": "user", "content": "x"}], "tools": [{"type": "web"}]},
            "unsupported",
        ),
        ({"model": "assistant", "messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "unsupported"),
        ({"model": "assistant", "messages": "hello"}, "invalid_request"),
        ([1], "invalid_json"),
    ],
)
async def test_what_is_not_understood_is_refused_in_openais_shape(home: House, body: object, code: str) -> None:
    """A client shows the message, and a program reads the code; nothing reaches the agent."""
    answer = await home.ask("POST", "/v1/chat/completions", await home.key(), body)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["type"]) == (400, code, "invalid_request_error")
    assert model_of(home).requests == []


async def test_a_model_in_trouble_has_its_status(home: House) -> None:
    """With the agent the trouble is told in words, as in any chat; with recall as an error."""
    key = await home.key()
    model_of(home).answers = [ModelRateLimited("Too much.")]
    refused = await home.chat(key, "Hello", model="assistant-recall")
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "rate_limit_exceeded")


async def test_a_message_refused_for_its_haste_is_heard_when_it_is_sent_again(tmp_path: Path) -> None:
    """Clients wait and repeat the same request by themselves: the refusal must not be its answer for ever."""
    async with house(tmp_path, model=ScriptedModel("One.", "Two."), a_minute=1, burst=1) as home:
        key = await home.key()
        asked = [HELLO, [{"role": "user", "content": "And now?"}]]
        first, refused = [await home.ask("POST", CHAT, key, {"model": "assistant", "messages": one}) for one in asked]
        assert content(first) == "One."
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "rate_limit_exceeded")
        home.world.clock.move(minutes=2)
        again = await home.ask("POST", CHAT, key, {"model": "assistant", "messages": asked[1]})
        assert content(again) == "Two."


async def test_the_answer_of_a_command_makes_no_program_fetch_a_picture(home: House) -> None:
    """It quotes memories, whose words may be anybody's; programs show it as Markdown."""
    key = await home.key()
    await home.world.say("/remember my logo is ![a](https://evil.example/a.png) and <img src=x>", author="7")
    shown = content(await home.chat(key, "/memory"))
    assert "logo" in shown and "![" not in shown and "<img" not in shown


# Who asks -------------------------------------------------------------------------------------------------------


async def test_a_fault_behind_recall_ends_its_request(home: House) -> None:
    """Whatever it is: nobody waits for an answer that can't come."""
    key = await home.key()
    model_of(home).answers = [RuntimeError("a bug"), RuntimeError("a bug"), "One."]
    for stream in (False, True):
        answer = await home.chat(key, "Hello", model="assistant-recall", stream=stream)
        assert answer.status_code == 500
    assert content(await home.chat(key, "Hello", model="assistant-recall")) == "One."


async def test_each_person_of_a_front_end_has_a_memory_of_their_own(home: House) -> None:
    """The signed header says who asks, whatever else the request says."""
    for sub in ("u1", "u2"):
        headers = {"X-OpenWebUI-User-Jwt": signed(SUB | {"sub": sub}), "X-OpenWebUI-User-Id": "u1"}
        await home.chat(FRONT_KEY, f"/remember my pet is {sub}pet", headers=headers, user="u1")
    headers = {"X-OpenWebUI-User-Jwt": signed(SUB)}
    listed = content(await home.chat(FRONT_KEY, "/memory", headers=headers))
    assert "u1pet" in listed and "u2pet" not in listed


async def test_a_person_of_a_front_end_joins_their_account_by_a_code(home: House) -> None:
    await home.world.say("/remember my bike is called Zottelbär", author="7")
    await home.world.say("/link", author="7")
    headers = {"X-OpenWebUI-User-Jwt": signed(SUB)}
    assert "Is “N7” on Telegram you" in content(await home.chat(FRONT_KEY, "/link CDFG-2345", headers=headers))
    content(await home.chat(FRONT_KEY, "yes", headers=headers))
    asked = home.world.walls["telegram"].sent[-1]
    assert "wants to be linked with you" in asked.text
    await home.world.say("", author="7", pressed=asked.buttons[0].data)
    assert "Zottelbär" in content(await home.chat(FRONT_KEY, "/memory", headers=headers))


async def test_a_shared_key_names_people_within_its_own_room(home: House) -> None:
    """The number of somebody on another platform, or at another front end, is nobody there."""
    await home.world.say("/remember my bike is called Zottelbär", author="7")
    key = await home.key()
    await home.chat(key, "/remember my cat is Minka")
    for user in ("7", "1", "open-webui.u1"):
        listed = content(await home.chat(SHARED_KEY, "/memory", user=user))
        assert "Zottelbär" not in listed and "Minka" not in listed
    refused = await home.chat(SHARED_KEY, "Hello")
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "no_user")
    literal = await home.chat(SHARED_KEY, "Hello", headers={"X-OpenWebUI-User-Id": "{{USER_ID}}"})
    assert literal.json()["error"]["code"] == "unresolved_placeholder"
    literal = await home.chat(key, "Hello", headers={"X-OpenWebUI-Chat-Id": "{{CHAT_ID}}"})
    assert literal.json()["error"]["code"] == "unresolved_placeholder"


@pytest.mark.parametrize(
    "token",
    [
        "", "nonsense", "a.b.c", signed(SUB, secret="another-secret-0123456789ab"), signed(SUB, algorithm="none"),
        signed(SUB | {"exp": 1}), signed(SUB | {"iss": "other"}), signed({"iss": "open-webui", "sub": "u1"}),
        signed({k: v for k, v in SUB.items() if k != "sub"}), signed(SUB | {"exp": "soon"}), signed(SUB) + "x",
        signed(SUB).rsplit(".", 1)[0] + ".",
    ],
)  # fmt: skip
async def test_a_front_end_is_believed_only_what_it_has_signed(home: House, token: str) -> None:
    """Another secret, another algorithm, another issuer, an old token, a torn one."""
    answer = await home.chat(FRONT_KEY, "Hello", headers={"X-OpenWebUI-User-Jwt": token})
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_api_key")
    assert model_of(home).requests == []


async def test_a_key_ends_with_a_block_or_its_revocation(home: House) -> None:
    key, other = await home.key(), await home.key("other")
    content(await home.chat(key, "Hello"))
    await home.world.say("/keys revoke 1", author="7")
    assert (await home.chat(key, "Hello")).status_code == 401
    content(await home.chat(other, "Hello"))
    await home.world.memory.access.block("telegram", "person", "7", by="9")
    assert (await home.chat(other, "Hello")).status_code == 401


async def test_a_key_does_what_it_may(home: House) -> None:
    """One without the permission to chat gets no answer, and says why."""
    refused = await home.chat(await home.key("read reader"), "Hello")
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "missing_scope")


# Limits ---------------------------------------------------------------------------------------------------------


async def test_a_key_has_so_many_requests_a_minute(tmp_path: Path) -> None:
    """The rest are refused in OpenAI's words, with the time to wait, and other keys go on."""
    async with house(tmp_path, model=ScriptedModel(), requests_per_minute=4) as home:
        key, other = await home.key(), await home.key("other")
        answers = [await home.ask("GET", "/v1/models", key) for _ in range(4)]
        assert [one.status_code for one in answers] == [200, 200, 429, 429]
        assert answers[-1].json()["error"]["type"] == "rate_limit_error" and answers[-1].headers["retry-after"]
        assert (await home.ask("GET", "/v1/models", other)).status_code == 200


async def test_a_key_has_so_many_requests_at_a_time(tmp_path: Path) -> None:
    """A client gone wild keeps no one else out."""
    model = PiecewiseModel("done")
    async with house(tmp_path, model=model, concurrent=1) as home:
        key = await home.key()
        asking = asyncio.create_task(home.chat(key, "One."))
        await model.began.wait()
        assert (await home.chat(key, "Two.")).json()["error"]["code"] == "rate_limit_exceeded"
        model.gate.release()
        assert content(await asking) == "done"


async def test_a_body_is_read_up_to_its_limit(tmp_path: Path) -> None:
    async with house(tmp_path, model=ScriptedModel()) as home:
        key = await home.key()
        assert (await home.chat(key, "x" * 10_000_000)).status_code == 413
        assert (await home.chat(key, "x" * 500)).status_code == 200


async def test_only_paths_of_the_doors_are_theirs(home: House) -> None:
    """The health page stays where it was, and what is not there needs a key to be told so."""
    key = await home.key()
    assert (await home.ask("GET", "/healthz")).status_code == 200
    assert (await home.ask("GET", "/v1/nothing", key)).status_code == 404
    assert (await home.ask("GET", "/v1/nothing")).status_code == 401
    assert (await home.ask("GET", "/v1/chat/completions", key)).status_code == 405
    assert (await home.ask("GET", "/v2", key)).status_code == 404


async def test_what_nobody_asked_for_comes_with_the_next_answer_in_its_place(home: House) -> None:
    """It waits in the outbox meanwhile, is no trouble, and is not lost however long that takes."""
    key = await home.key()
    content(await home.chat(key, "Hello"))
    context = await home.world.memory.identities.known(
        Where(
            session_key="api:1:assistant.key1",
            platform="api",
            chat="1",
            chat_kind="private",
            thread="assistant.key1",
            agent="assistant",
        ),
        Who(platform="api", user_id="1", name="N7"),
    )
    assert context is not None
    await home.world.memory.requests.run(context, lambda _edits: "", tell=lambda _: [Part(text="Water the plants!")])
    home.world.store.delivery.wake(context.session.key)
    home.world.clock.move(days=1)
    assert await home.world.rows("select count(*) from outbox where state = 'pending'") == [(1,)]
    assert content(await home.chat(key, "Anything else?")) == "All right.\n\nWater the plants!"
    assert await home.world.rows("select count(*) from outbox where state = 'pending'") == [(0,)]


async def test_the_persons_own_rate_is_an_error_of_its_own(tmp_path: Path) -> None:
    """A notice that a chat would show in words is a status here, so that programs wait and ask again."""
    async with house(tmp_path, model=ScriptedModel(), a_minute=1, burst=2) as home:
        key = await home.key()
        answers = [await home.chat(key, f"Hello {n}") for n in range(3)]
        assert [answer.status_code for answer in answers] == [200, 200, 429]
        assert answers[-1].json()["error"]["code"] == "rate_limit_exceeded"


async def test_a_stranger_is_refused_before_the_body_comes(tmp_path: Path) -> None:
    """The key is in the head; so are the address and the size."""
    async with house(tmp_path, model=ScriptedModel()) as home:
        key = await home.key()
        at = httpx.URL(home.url)
        for path, given, size, status in (
            ("/v1/chat/completions", "rk_wrong", 9_900_000, 401),
            ("/v1/nothing", key, 9_900_000, 404),
            ("/v1/models", key, 9_900_000, 405),
            ("/mcp", key, 9_900_000, 413),
            ("/v1/memories", key, 9_900_000, 413),
            ("/v1/chat/completions", key, 99_000_000, 413),
        ):
            reader, writer = await asyncio.open_connection(at.host, at.port)
            head = f"Host: localhost\r\nAuthorization: Bearer {given}\r\nContent-Length: {size}\r\n\r\n"
            writer.write(f"POST {path} HTTP/1.1\r\n{head}".encode())
            async with limit():
                answer = await reader.readuntil(b"\r\n\r\n") + await reader.readuntil(b"}}")
            assert answer.startswith(f"HTTP/1.1 {status} ".encode()), (path, answer)
            assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["message"]
            writer.close()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tools", 5), ("tools", [5]), ("tools", [{"type": "function"}] * 200), ("stream", "no"), ("temperature", "hot"),
        ("temperature", True), ("max_tokens", "9"), ("user", 5), ("conversation", {"id": 5}), ("stream_options", []),
        ("previous_response_id", 5), ("response_format", 5), ("instructions", 5), ("messages", 5),
        ("messages", [{"role": "user", "content": "x" * 2_100_000}]),
    ],
)  # fmt: skip
async def test_a_field_of_another_type_is_refused_by_its_name(tmp_path: Path, field: str, value: Any) -> None:
    async with house(tmp_path, model=ScriptedModel()) as home:
        body = {"model": "assistant", "messages": HELLO, field: value}
        answer = await home.ask("POST", CHAT, await home.key(), body)
        assert answer.status_code == 400, answer.text
        assert answer.json()["error"]["param"] in (field, "name", "id")


async def test_a_message_that_is_kept_is_bounded(tmp_path: Path) -> None:
    """Of what is told to an agent, beginning and end are kept; a model alone may be shown all of it."""
    async with house(tmp_path, model=ScriptedModel("Kept.", "Long.")) as home:
        key, long = await home.key(), f"it begins {'word ' * 30_000} it ends"
        assert content(await home.chat(key, long)).startswith("Kept.")
        assert content(await home.chat(key, long, model="assistant-recall")) == "Long."
        cut, whole = (request.messages[-1].content for request in model_of(home).requests)
        assert "it begins" in cut and "it ends" in cut and len(cut) < 40_000
        assert len(whole) > len(long) - 10
        (stored,) = (await home.world.rows("select max(length(text)) from messages"))[0]
        assert stored < 40_000
