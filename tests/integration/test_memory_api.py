"""The memory API: one person's memory for their own programs, and every byte gone through its door as well."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from bench.openapi import document
from gateway.api.operations import ROUTES
from tests.kit.doors import SHARED_KEY, House, house
from tests.kit.fakes import ScriptedModel


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path, model=ScriptedModel()) as home:
        yield home


async def added(home: House, key: str, text: str) -> dict[str, Any]:
    answer = await home.ask("POST", "/v1/memories", key, {"text": text})
    assert answer.status_code == 200, answer.text
    (one,) = answer.json()["results"]
    assert isinstance(one, dict)
    return one


async def test_what_a_program_keeps_names_its_source(home: House) -> None:
    """The person sees, wherever they ask, through which program it came."""
    key = await home.key("Claude Code")
    one = await added(home, key, "my bike is called Zottelbär")
    assert one["event"] == "ADD" and "Zottelbär" in one["memory"]
    (shown,) = await home.world.say(f"/memory show {one['id']}", author="7")
    assert "my bike is called Zottelbär" in shown
    full = (await home.ask("GET", f"/v1/memories/{one['id']}", key)).json()
    assert full["sources"][0]["by"] == "N7, through Claude Code" and full["sources"][0]["own"]
    assert [each["value"] for each in full["history"]] == [one["value"]]


async def test_what_was_told_elsewhere_is_listed_found_and_corrected(home: House) -> None:
    await home.world.say("/remember my bike is called Zottelbär", author="7")
    await home.world.say("/remember my cat is called Minka", author="8")
    key = await home.key()
    listed = (await home.ask("GET", "/v1/memories?limit=5&page=1", key)).json()
    assert listed["count"] == 1 and "Zottelbär" in listed["results"][0]["memory"]
    one = listed["results"][0]["id"]
    beyond = (await home.ask("GET", "/v1/memories?limit=5&page=2", key)).json()
    assert beyond == {"results": [], "count": 1, "page": 2}  # whoever leafs until nothing comes gets to the end
    for query in ({"query": "Zottelbär bike"}, {"query": "Zottelbär bike", "top_k": 3, "user_id": "8", "filters": {}}):
        found = (await home.ask("POST", "/v1/memories/search/", key, query)).json()["results"]
        assert found[0]["id"] == one and found[0]["score"] > 0
    fixed = (await home.ask("PUT", f"/v1/memories/{one}", key, {"text": "my bike is called Quaxolia"})).json()
    assert fixed["event"] == "UPDATE" and fixed["replaces"] == one
    history = (await home.ask("GET", f"/v1/memories/{fixed['id']}", key)).json()["history"]
    assert len(history) == 2 and {each["valid_until"] is None for each in history} == {True, False}
    pinned = (await home.ask("PATCH", f"/v1/memories/{fixed['id']}", key, {"pinned": True})).json()
    assert pinned["pinned"] is True
    sure = (await home.ask("POST", f"/v1/memories/{fixed['id']}/confirm", key, {})).json()
    assert sure["confirmed"] is True


async def test_a_search_takes_filters_with_words_or_without(home: House) -> None:
    """As an agent's own search does; with neither there is nothing to look for."""
    key = await home.key()
    for text in ("I'm allergic to peanuts", "I live in Porto"):
        await home.ask("POST", "/v1/memories", key, {"text": text})

    async def search(**body: object) -> list[str]:
        answer = await home.ask("POST", "/v1/memories/search", key, body)
        return sorted(row["value"] for row in answer.json()["results"] if row["kind"] == "fact")

    assert await search(category="health") == ["peanuts"]
    assert await search(query="where do I live", category="health") == []
    assert await search(until="2020") == []
    # What is made of others is listed where it is asked for, as in a chat.
    listed = await home.ask("GET", "/v1/memories?filter=category:profile", key)
    assert {row["kind"] for row in listed.json()["results"]} == {"profile"}
    empty = await home.ask("POST", "/v1/memories/search", key, {"query": " "})
    assert (empty.status_code, empty.json()["error"]["code"]) == (400, "invalid_request")
    unread = await home.ask("POST", "/v1/memories/search", key, {"since": "never"})
    assert (unread.status_code, unread.json()["error"]["code"]) == (400, "invalid_filter")


async def test_a_forget_leaves_no_byte(home: House) -> None:
    """The preview says what goes, and then it goes, with the message that the program left as its source."""
    key = await home.key()
    one = await added(home, key, "the vault opens with Quaxolia")
    preview = (await home.ask("GET", f"/v1/memories/{one['id']}/forget", key)).json()
    assert preview["messages"] == 1 and [each["id"] for each in preview["memories"]] == [one["id"]]
    receipt = (await home.ask("DELETE", f"/v1/memories/{one['id']}", key)).json()
    assert receipt["event"] == "DELETE" and receipt["memories"] == 1 and receipt["scrubbed"]
    folder = home.world.memory.database.path.parent
    assert not [file for file in folder.rglob("*") if file.is_file() and b"Quaxolia" in file.read_bytes()]
    assert (await home.ask("GET", f"/v1/memories/{one['id']}", key)).status_code == 404
    assert (await home.ask("DELETE", f"/v1/memories/{one['id']}", key)).status_code == 404


async def test_secrets_are_masked_before_they_are_kept(home: House) -> None:
    """As in every chat, and the program is told so."""
    key = await home.key()
    answer = await home.ask("POST", "/v1/memories", key, {"text": "note: my password is hunter2Quaxolia"})
    assert "is masked" in answer.json()["note"]
    tea = (await home.ask("POST", "/v1/memories", key, {"text": "I like tea"})).json()
    assert "note" not in tea
    tea_path = f"/v1/memories/{tea['results'][0]['id']}"
    corrected = (await home.ask("PUT", tea_path, key, {"value": "my password is hunter2Quaxolia"})).json()
    assert "is masked" in corrected["note"]
    for table in ("memories", "messages"):
        assert "hunter2Quaxolia" not in repr(await home.world.rows(f"select * from {table}"))


async def test_the_names_of_mem0s_clients_are_understood(home: House) -> None:
    """Messages in the place of a text, slashes at the end, and people that are named and mean nothing."""
    key = await home.key()
    messages = [{"role": "user", "content": "my bike is called Zottelbär"}, {"role": "assistant", "content": "Nice."}]
    body = {"messages": messages, "user_id": "alice", "agent_id": "x", "infer": True, "metadata": {"a": 1}}
    answer = await home.ask("POST", "/v1/memories/", key, body)
    assert "Zottelbär" in answer.json()["results"][0]["memory"]
    one = answer.json()["results"][0]["id"]
    assert (await home.ask("GET", f"/v1/memories/{one}/", key)).json()["id"] == one
    assert (await home.ask("GET", "/v1/memories/?user_id=bob", key)).json()["count"] == 1
    as_theirs = {"Authorization": f"Token {key}"}
    assert (await home.ask("GET", "/v1/memories/", headers=as_theirs)).json()["count"] == 1


async def test_an_entity_is_found_by_its_name(home: House) -> None:
    """An entity is told with the memories that name it."""
    key = await home.key()
    await home.world.say("/remember my sister Miriam lives in Porto", author="7")
    found = await home.ask("GET", "/v1/entities?name=Miriam", key)
    assert found.json()["name"] == "Miriam" and found.json()["memories"]
    assert (await home.ask("GET", "/v1/entities?name=Nobody", key)).status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("POST", "/v1/memories", {}, 400, "invalid_request"),
        ("POST", "/v1/memories", {"text": "x" * 3_000}, 400, "invalid_request"),
        ("POST", "/v1/memories", {"text": "x", "owner": 1}, 400, "invalid_request"),
        ("GET", "/v1/memories?page=0", None, 400, "invalid_request"),
        ("GET", "/v1/memories?filter=since:never", None, 400, "invalid_filter"),
        ("GET", "/v1/memories?filter=colour:red", None, 400, "invalid_filter"),
        ("GET", "/v1/memories/m_aaaaaa", None, 404, "not_found"),
        ("DELETE", "/v1/memories/m_aaaaaa", None, 404, "not_found"),
        ("PUT", "/v1/memories", {"text": "x"}, 405, "method_not_allowed"),
        ("GET", "/v1/memories/a/b/c", None, 404, "not_found"),
        ("DELETE", "/v1/memories", None, 405, "method_not_allowed"),
    ],
)
async def test_what_is_not_understood_is_said(
    home: House, method: str, path: str, body: object, status: int, code: str
) -> None:
    """With a code for the program, and nothing done."""
    answer = await home.ask(method, path, await home.key(), body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


async def test_a_key_reads_or_writes_as_it_may(home: House) -> None:
    reader, writer = await home.key("read reader"), await home.key("write writer")
    assert (await home.ask("GET", "/v1/memories", writer)).json()["error"]["code"] == "missing_scope"
    assert (await home.ask("POST", "/v1/memories", reader, {"text": "x y z"})).json()["error"][
        "code"
    ] == "missing_scope"
    one = await added(home, writer, "my bike is called Zottelbär")
    assert (await home.ask("GET", f"/v1/memories/{one['id']}", reader)).status_code == 200
    assert (await home.ask("DELETE", f"/v1/memories/{one['id']}", reader)).status_code == 403


async def test_of_who_wants_nothing_learned_programs_keep_nothing(home: House) -> None:
    """A wish not to be learned from holds for programs as for tools, and their words stay nowhere."""
    key = await home.key()
    await home.world.say("/privacy out", author="7")
    answer = (await home.ask("POST", "/v1/memories", key, {"text": "my bike is called Zottelbär"})).json()
    assert answer["results"] == [] and "Not saved" in answer["note"]
    for table in ("memories", "messages", "inbox"):
        assert "Zottelbär" not in repr(await home.world.rows(f"select * from {table}"))


async def test_a_shared_key_names_people_as_mem0s_clients_do(home: House) -> None:
    """By `user_id`, in the body or the query; each has a memory of their own."""
    for user in ("alice", "bob"):
        body = {"text": f"my pet is called {user}pet", "user_id": user}
        assert (await home.ask("POST", "/v1/memories", SHARED_KEY, body)).json()["results"]
    listed = (await home.ask("GET", "/v1/memories?user_id=alice", SHARED_KEY)).json()
    assert listed["count"] == 1 and "alicepet" in listed["results"][0]["memory"]


# docs/openapi.json says what the memory API answers: each answer of each route is held against it


FILE = Path(__file__).parents[2] / "docs" / "openapi.json"


def test_the_file_is_made_from_the_table() -> None:
    assert json.loads(FILE.read_text()) == document()


def holds(told: dict[str, Any], route: tuple[str, str], answer: Any) -> None:
    """Raises unless an answer is as the file says."""
    responses = told["paths"][route[1]][route[0].lower()]["responses"]
    meant = responses["200" if answer.status_code == 200 else "default"]["content"]["application/json"]["schema"]
    schema = {**meant, "components": told["components"]}
    jsonschema.Draft202012Validator(schema).validate(answer.json())


async def test_every_answer_is_as_the_file_says(tmp_path: Path) -> None:
    """On every route, done and refused; and a member that the file does not name would be seen."""
    told = json.loads(FILE.read_text())
    seen: set[tuple[str, str]] = set()

    async def ask(home: House, method: str, path: str, key: str, body: object = None, **names: str) -> Any:
        for shown in ("", key):
            answer = await home.ask(method, path.format(**names), shown, body)
            holds(told, (method, path.partition("?")[0]), answer)
        assert answer.status_code == 200, answer.text
        seen.add((method, path.partition("?")[0]))
        return answer.json()

    async with house(tmp_path, model=ScriptedModel()) as home:
        key = await home.key()
        await home.world.say("I met Miriam in Porto.", author="7")
        kept = await ask(home, "POST", "/v1/memories", key, {"text": "my sister Miriam lives in Porto"})
        one = kept["results"][0]["id"]
        await ask(home, "GET", "/v1/memories", key)
        await ask(home, "POST", "/v1/memories/search", key, {"query": "Miriam Porto"})
        await ask(home, "PATCH", "/v1/memories/{id}", key, {"pinned": False}, id=one)
        await ask(home, "POST", "/v1/memories/{id}/confirm", key, {}, id=one)
        await ask(home, "POST", "/v1/memories/{id}/tags", key, {"tags": ["work"]}, id=one)
        one = (await ask(home, "PUT", "/v1/memories/{id}", key, {"value": "Braga"}, id=one))["id"]
        masked = await ask(home, "PUT", "/v1/memories/{id}", key, {"value": "my password is hunter2Quaxolia"}, id=one)
        assert masked["note"]
        one = masked["id"]
        await ask(home, "GET", "/v1/memories/{id}", key, id=one)
        await ask(home, "GET", "/v1/entities?name=Miriam", key)
        await ask(home, "GET", "/v1/memories/{id}/forget", key, id=one)
        await ask(home, "DELETE", "/v1/memories/{id}", key, id=one)
    assert seen == {(route.method, route.path) for route in ROUTES}
