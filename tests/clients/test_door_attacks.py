"""Each way in × each way to be refused: nothing is answered, nothing is done, and nothing tells what there is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.doors import FRONT_KEY, SHARED_KEY, House, content, house, signed
from tests.kit.fakes import NOON, ScriptedModel

pytestmark = pytest.mark.campaign

CHAT = {"model": "assistant", "messages": [{"role": "user", "content": "/remember Quaxolia is mine"}]}
RPC = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_memories", "arguments": {}}}
ACCEPT = {"Accept": "application/json, text/event-stream"}
#: Every route with a body that would do something.
ROUTES: tuple[tuple[str, str, Any], ...] = (
    ("GET", "/v1/models", None), ("GET", "/v1/models/assistant", None), ("POST", "/v1/chat/completions", CHAT),
    ("POST", "/v1/chat/completions", CHAT | {"stream": True}),
    ("POST", "/v1/chat/completions", CHAT | {"model": "assistant-recall"}),
    ("POST", "/v1/responses", {"model": "assistant", "input": "/remember Quaxolia is mine"}),
    ("GET", "/v1/memories", None),
    ("POST", "/v1/memories", {"text": "Quaxolia is mine"}),
    ("POST", "/v1/memories/search", {"query": "Minka"}),
    ("GET", "/v1/memories/ID", None),
    ("PUT", "/v1/memories/ID", {"text": "Quaxolia is mine"}),
    ("PATCH", "/v1/memories/ID", {"pinned": True}), ("DELETE", "/v1/memories/ID", None),
    ("GET", "/v1/memories/ID/forget", None), ("POST", "/v1/memories/ID/confirm", {}),
    ("POST", "/v1/memories/ID/tags", {"tags": ["x"]}),
    ("GET", "/v1/entities?name=Minka", None), ("POST", "/mcp", RPC), ("GET", "/v1/nothing", None),
)  # fmt: skip
KEPT = ("memories", "messages", "inbox", "outbox", "sessions", "usage")


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path, model=ScriptedModel()) as home:
        yield home


async def kept(home: House) -> list[object]:
    return [await home.world.rows(f"select * from {table}") for table in KEPT]


async def test_every_route_refuses_everybody_who_may_not(home: House) -> None:
    """Without a key, with a wrong or revoked one, for a blocked person, by another name, from another site."""
    await home.world.say("/remember my cat is called Minka", author="7")
    (one,) = (await home.world.rows("select short_id from memories where value like '%Minka%'"))[0]
    key, revoked, blocked = await home.key(), await home.key("old"), await home.key(author="8")
    await home.world.say("/keys revoke 2", author="7")
    await home.world.memory.access.block("telegram", "person", "8", by="9")
    later = {"iss": "open-webui", "sub": "u1", "exp": NOON / 1000 - 3_600}
    ways: dict[str, tuple[str, dict[str, str], int]] = {
        "no key": ("", {}, 401),
        "unknown key": ("rk_" + "a" * 43, {}, 401),
        "revoked": (revoked, {}, 401),
        "blocked": (blocked, {}, 401),
        "not bearer": ("", {"Authorization": f"Basic {key}"}, 401),
        "front end without a signature": (FRONT_KEY, {"X-OpenWebUI-User-Id": "7"}, 401),
        "front end with an old signature": (FRONT_KEY, {"X-OpenWebUI-User-Jwt": signed(later)}, 401),
        "shared without a name": (SHARED_KEY, {}, 400),
        "shared with a placeholder": (SHARED_KEY, {"X-OpenWebUI-User-Id": "{{USER_ID}}"}, 400),
        "wrong host": (key, {"Host": "rebound.example.org"}, 421),
        "host that begins like ours": (key, {"Host": "localhost.example.org"}, 421),
        "cross-site": (key, {"Sec-Fetch-Site": "cross-site"}, 403),
        "same site, other origin": (key, {"Sec-Fetch-Site": "same-site"}, 403),
        "foreign origin": (key, {"Origin": "https://example.org"}, 403),
        "no origin": (key, {"Origin": "null"}, 403),
    }
    before, wrong = await kept(home), []
    for name, (shown, headers, status) in ways.items():
        for method, path, body in ROUTES:
            answer = await home.ask(method, path.replace("ID", one), shown, body, {**ACCEPT, **headers})
            error = answer.json().get("error", {})
            # A front end's key is known, so it reads that nothing is there before it is asked for a person.
            expected = 404 if name.startswith("shared") and path == "/v1/nothing" else status
            if answer.status_code != expected or "Minka" in answer.text or not error.get("message"):
                wrong.append((name, method, path, answer.status_code, answer.text[:80]))
            if any(header.lower().startswith("access-control") for header in answer.headers):
                wrong.append((name, method, path, 0, "CORS"))
    assert wrong == []
    assert await kept(home) == before
    assert content(await home.chat(key, "Hello")) == "All right."


async def test_with_another_persons_key_there_is_only_their_own(home: House) -> None:
    """Ids of others are answered like ids that do not exist, on every route and for every name in the request."""
    await home.world.say("/remember my cat is called Minka", author="7")
    (one,) = (await home.world.rows("select short_id from memories where value like '%Minka%'"))[0]
    mine, theirs = await home.key(), await home.key(author="8")
    await home.chat(mine, "Hello", headers={"X-OpenWebUI-Chat-Id": "a"})
    named = {"X-OpenWebUI-User-Id": "7", "X-LibreChat-User-Id": "7", "X-User-Id": "7", "X-OpenWebUI-Chat-Id": "a"}
    before = await home.world.rows("select * from memories where short_id = ?", one)
    for method, path, body in ROUTES:
        beside = {**ACCEPT, **named}
        for shown in (theirs, SHARED_KEY):
            by_name = {"user": "7"} if path.startswith(("/v1/chat", "/v1/responses")) else {"user_id": "7"}
            given = {**body, **by_name} if body is not None and path != "/mcp" else body
            answer = await home.ask(method, path.replace("ID", one), shown, given, beside)
            unknown = await home.ask(method, path.replace("ID", "m_aaaaaa"), shown, given, beside)
            assert "Minka" in path or "Minka" not in answer.text, (method, path)
            if "ID" in path:
                assert answer.status_code == unknown.status_code == 404
                assert answer.text.replace(one, "m_aaaaaa") == unknown.text
    assert await home.world.rows("select * from memories where short_id = ?", one) == before
    sessions = await home.world.rows("select s.key from sessions s where s.key like 'api:%:assistant.a'")
    assert len(sessions) == 3 and len({key.split(":")[1] for (key,) in sessions}) == 3


async def test_a_request_that_is_replayed_does_nothing_more(home: House) -> None:
    """On every route, whoever has heard a request gets its answer again, at most; what is kept again has two sources."""
    await home.world.say("/remember my cat is called Minka", author="7")
    (one,) = (await home.world.rows("select short_id from memories where value like '%Minka%'"))[0]
    key = await home.key()
    told = {"name": "remember", "arguments": {"text": "my bike is called Zottelbär"}}
    more = (
        ("POST", "/v1/chat/completions", {"model": "assistant", "messages": [{"role": "user", "content": "Hello"}]}),
        ("POST", "/v1/responses", {"model": "assistant", "input": "Hello there"}),
        ("POST", "/mcp", {**RPC, "params": told}),
    )
    for method, path, body in sorted((*ROUTES, *more), key=lambda route: route[0] == "DELETE"):
        states = []
        for _ in range(2):
            headers = {**ACCEPT, "Idempotency-Key": f"{method} {path}"}
            await home.ask(method, path.replace("ID", one), key, body, headers)
            memories = "select value, pinned, confirmed, superseded_by from memories order by id"
            said = "select role, text from messages where text <> '' order by id"
            keeps = (method, path) in (("POST", "/v1/memories"), ("POST", "/mcp"))
            states.append([await home.world.rows(memories), [] if keeps else await home.world.rows(said)])
        assert states[0] == states[1], (method, path)
    assert not await home.world.rows("select 1 from memories where value like '%Minka%'")


async def test_what_somebody_says_through_a_program_is_no_admins_word(home: House) -> None:
    """A key has none of the rights that its person may have as an admin."""
    key = await home.key()
    for command in ("/admin memory 8 list", "/allow 9", "/pair", "/backup", "/dead"):
        assert "There is no command" in content(await home.chat(key, command)) or "don't know" in content(
            await home.chat(key, command)
        )
    assert await home.world.rows("select * from access") == []


async def test_a_forged_conversation_stays_within_its_person(home: House) -> None:
    """Whatever a conversation is called, it is one of the person's own."""
    mine, theirs = await home.key(), await home.key(author="8")
    await home.chat(mine, "/task plan Quaxolia", headers={"X-Conversation-Id": "x1"})
    for conversation in ("x1", "api:1:assistant.x1", "../x1", "assistant.x1"):
        answer = await home.chat(theirs, "/task", headers={"X-Conversation-Id": conversation})
        assert "Quaxolia" not in content(answer)
        body = {"model": "assistant", "input": "/task", "previous_response_id": f"resp_{conversation}_1"}
        assert "Quaxolia" not in (await home.ask("POST", "/v1/responses", theirs, body)).text
