"""The servers of `bench.vendors` and their judge: what is served, what is refused, what counts as right; and the short form."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from bench.vendors.__main__ import chosen, table
from bench.vendors.cases import CASES, SPLIT
from bench.vendors.play import KEY, Case, Run, Turn, asks, says, serving
from bench.vendors.rules import Seat
from bench.vendors.table import VENDORS
from bench.vendors.wire import JSON
from bench.vendors.world import judged
from tests.kit.patience import SECONDS
from tests.kit.tables import each_row

ROOT = Path(__file__).parents[3]
TOOL = {
    "type": "function",
    "function": {"name": "now", "description": "Tells the time", "parameters": {"type": "object"}},
}


def test_the_cases_are_many_and_split_in_halves() -> None:
    """Of each kind as many are kept apart as are not, so nobody can mend by heart."""
    assert len(CASES) >= 120
    assert len({one.kind for one in CASES}) >= 20
    assert {name for one in CASES for name in one.vendors} == set(VENDORS)
    counts = Counter((one.kind, SPLIT[one.name]) for one in CASES)
    assert all(0 <= counts[kind, "kept"] - counts[kind, "tune"] <= 1 for kind in {one.kind for one in CASES})


def test_the_docs_say_what_was_played() -> None:
    assert table() in (ROOT / "docs" / "models.md").read_text("utf-8")


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(SystemExit, match="there is no vendor"):
        chosen(["nonsense"], split="all", short=False)


class Client:
    """A client by the vendors' own examples: it gives back each message as it came, or without what it doesn't know."""

    def __init__(self, run: Run, *, knows: bool) -> None:
        (self.seat,) = run.seats.values()
        self.run = run
        self.knows = knows
        self.claude = self.seat.vendor.form == "anthropic"
        (address,) = run.urls.values()
        self.url = f"{address}/{'messages' if self.claude else 'chat/completions'}"
        self.messages: list[JSON] = [{"role": "user", "content": f"What time is it? {run.mark}"}]

    def body(self) -> JSON:
        system = f"You are {self.run.agent}."
        body: JSON = {"model": self.seat.vendor.model, "messages": self.messages, "tools": [TOOL]}
        if self.claude:
            return body | {"system": system, "max_tokens": 4000, "thinking": {"type": "enabled", "budget_tokens": 2000}}
        return body | {"messages": [{"role": "system", "content": system}, *self.messages]}

    async def ask(self) -> httpx.Response:
        async with httpx.AsyncClient(trust_env=False, timeout=SECONDS) as client:
            return await client.post(
                self.url, json=self.body(), headers={"Authorization": f"Bearer {KEY}", "x-api-key": KEY}
            )

    def take(self, answer: JSON) -> None:
        if self.claude:
            blocks = [block for block in answer["content"] if self.knows or block["type"] != "thinking"]
            used = next(block["id"] for block in blocks if block["type"] == "tool_use")
            result = {"type": "tool_result", "tool_use_id": used, "content": "27 Nov 2026"}
            self.messages += [{"role": "assistant", "content": blocks}, {"role": "user", "content": [result]}]
            return
        message = answer["choices"][0]["message"]
        if not self.knows:
            calls = [{name: call[name] for name in ("id", "type", "function")} for call in message["tool_calls"]]
            message = {"role": "assistant", "content": None, "tool_calls": calls}
        used = message["tool_calls"][0]["id"]
        self.messages += [message, {"role": "tool", "tool_call_id": used, "content": "27 Nov 2026"}]


@asynccontextmanager
async def clients(*vendors: str, knows: bool) -> AsyncIterator[list[Client]]:
    turn = Turn(steps=(asks("now"), says()))
    runs = {}
    for number, vendor in enumerate(vendors):
        case = Case(kind="a test", name="a test", vendors=(vendor,), turns=(turn,))
        run = runs[f"ada{number}"] = Run(case, f"ada{number}", {vendor: Seat(VENDORS[vendor])})
        run.begin(turn, 1)
    async with serving(runs) as listen:
        for run in runs.values():
            await listen(run)
        yield [Client(run, knows=knows) for run in runs.values()]


@pytest.mark.stands("fifteen servers are put up in the test's own loop")
async def test_who_gives_back_what_came_is_answered() -> None:
    """By the vendors' own advice: return the message as it is."""
    async with clients(*VENDORS, knows=True) as all_of_them:
        for asking in all_of_them:
            asking.take((await asking.ask()).json())
            answer = await asking.ask()
            assert answer.status_code == 200, answer.text
            assert asking.run.secret in answer.text


#: What each of these wants back, and names when it is missing.
WANTED = {
    "anthropic": "thinking", "gemini": "thought_signature", "openrouter": "reasoning details",
    "deepseek": "reasoning_content", "kimi": "reasoning_content",
}  # fmt: skip


@pytest.mark.stands("fifteen servers are put up in the test's own loop")
async def test_who_drops_what_came_is_refused_where_the_vendor_wants_it_back() -> None:
    async with clients(*VENDORS, knows=False) as all_of_them:
        for asking in all_of_them:
            asking.take((await asking.ask()).json())
            answer = await asking.ask()
            wanted = WANTED.get(asking.seat.vendor.name)
            assert answer.status_code == (400 if wanted else 200), answer.text
            assert wanted is None or wanted in answer.text


async def test_no_result_means_no_word() -> None:
    """The word is the proof that the tool's result came back."""
    async with clients("vllm", knows=True) as (asking,):
        asking.take((await asking.ask()).json())
        asking.messages[-1]["content"] = "It is late."
        assert asking.run.secret not in (await asking.ask()).text


async def test_a_wrong_key_and_a_wrong_model_are_refused() -> None:
    async with clients("openai", knows=True) as (asking,):
        async with httpx.AsyncClient(trust_env=False, headers={"Authorization": "Bearer x"}, timeout=SECONDS) as wrong:
            assert (await wrong.post(asking.url, json=asking.body())).status_code == 401
        async with httpx.AsyncClient(
            trust_env=False, headers={"Authorization": f"Bearer {KEY}"}, timeout=SECONDS
        ) as right:
            assert (await right.post(asking.url, json={**asking.body(), "model": "other"})).status_code == 404


TOLD: dict[str, Any] = {"want": "told", "cause": "out of credit"}


@each_row(
    ("given", "text", "log", "wrong"),
    [
        ({}, "The answer is WORD.", "", ""), ({}, "I have no result.", "", "did not come"),
        ({}, "WORD WORD", "", "more than once"), ({}, "MUSE WORD", "", "thoughts"),
        ({}, 'WORD {"error": 1}', "", "raw text"),
        (TOLD, "It failed.", "the account is out of credit", ""),
        (TOLD, "It failed.", "something failed", "the log does not name"),
        (TOLD, "WORD", "the account is out of credit", "out of a failure"),
        (TOLD, " ", "the account is out of credit", "nothing was told"),
        ({"want": "either", "cause": "broke"}, "WORD", "", ""),
        ({"want": "either", "cause": "broke"}, "It failed.", "it broke", ""),
        ({"has": "cut"}, "WORD", "", "lacks 'cut'"), ({"most": 0}, "WORD", "", "1 requests"),
    ],
)  # fmt: skip
def test_what_counts_as_right(given: dict[str, Any], text: str, log: str, wrong: str) -> None:
    turn = Turn(steps=(), **given)
    run = Run(Case(kind="a test", name="a test", vendors=("vllm",), turns=(turn,)), "ada", {})
    run.begin(turn, 1)
    run.requests.append({})
    said = text.replace("WORD", run.secret).replace("MUSE", run.muse)
    why = judged(run, turn, said, log, log)
    assert bool(why) == bool(wrong) and wrong in why


@pytest.mark.campaign(long=True)
def test_people_talk_with_the_running_bot_and_are_judged() -> None:
    """The short form, on the code of this checkout."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.vendors", "--json", "--short"],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    played = {one["name"]: one for one in json.loads(done.stdout)["played"]}
    assert set(played) == {"tool there and back: vllm", "three turns: vllm", "unknown model: vllm"}, done.stderr
    assert [one["why"] for one in played.values()] == ["", "", ""]
    assert done.returncode == 0
