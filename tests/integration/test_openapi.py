"""docs/openapi.json says what the memory API answers: each answer of each route is held against it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]

from bench.openapi import document
from gateway.api.operations import ROUTES
from tests.kit.doors import House, house
from tests.kit.fakes import ScriptedModel

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
