"""Visits to the web page as a browser makes them, without one: requests with its headers, its cookie and its forms.

    async with paged(tmp_path) as page:                  # `remora serve`, in the test's own process
        ada = await page.signed_in("ada")
        await ada.say("hello")
        assert "hello" in await ada.text("/chat/main")

Invariant: a form is sent only with the word that the page itself has put into it, unless a test says otherwise.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from html import unescape
from pathlib import Path
from typing import Any

import httpx

from gateway.page.visitors import leave_code
from tests.kit.patience import SECONDS, limit, until
from tests.kit.served import Served

_NONCE = re.compile(r'name="nonce" value="([^"]+)"')
_ALTERING = """
import json, sqlite3, sys
with sqlite3.connect(sys.argv[1], timeout=120) as store:
    for sql, values in json.loads(sys.argv[2]):
        rows = store.execute(sql, values).fetchall()
print(json.dumps(rows))
"""
#: Books a model call, for `Page.alter`: purpose, tokens, cost and time.
USED = (
    "insert into usage (agent_id, purpose, model, input_tokens, output_tokens, cached_tokens, estimated, cost,"
    " created_at) select id, ?, 'a-model-with-a-rather-long-name', ?, 11, 0, 0, ?, ? from agents limit 1"
)
_BUTTON = re.compile(r'name="key" value="([^"]+)">.*?<button name="data" value="([^"]+)"[^>]*>([^<]*)<', re.DOTALL)


class Guest:
    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client
        self._nth = 0

    async def get(self, path: str, **headers: str) -> httpx.Response:
        return await self.client.get(path, headers=headers)

    async def text(self, path: str) -> str:
        """The words of a page, which must be there, without its marks."""
        answer = await self.get(path)
        assert answer.status_code == 200, (path, answer.status_code, answer.text[:500])
        return words(answer.text)

    async def nonce(self, path: str = "/chat/main") -> str:
        found = _NONCE.search((await self.get(path)).text)
        assert found is not None, path
        return found[1]

    async def post(
        self, path: str, *, at: str = "/chat/main", files: Any = None, headers: Any = None, **form: str
    ) -> httpx.Response:
        """Sends a form that stands on the page `at`."""
        if "nonce" not in form and path not in ("/in", "/in/name"):
            form["nonce"] = await self.nonce(at)
        own: dict[str, str] = {"Sec-Fetch-Site": "same-origin"} | (headers or {})
        return await self.client.post(path, data=form, files=files, headers=own)

    async def say(self, text: str, *, thread: str = "main", **more: Any) -> httpx.Response:
        return await self.post(f"/chat/{thread}/say", at=f"/chat/{thread}", text=text, **more)

    async def told(self, path: str, *, at: str, **form: str) -> str:
        """The answer to a form of a memory page."""
        answer = await self.post(path, at=at, **form)
        if answer.status_code == 303:
            answer = await self.get(answer.headers["Location"])
        assert answer.status_code == 200, (path, answer.status_code, answer.text[:500])
        self.receipt = answer.text
        return words(answer.text)

    def buttons(self) -> list[tuple[str, str, str]]:
        """The buttons under the last answer: key, data and label."""
        return [(key, unescape(data), unescape(label)) for key, data, label in _BUTTON.findall(self.receipt)]

    @asynccontextmanager
    async def stream(self, thread: str = "main") -> AsyncIterator[AsyncIterator[tuple[str, dict[str, Any]]]]:
        """The events of a conversation, as they come."""
        seen = (await self.get(f"/chat/{thread}")).text.partition('data-seen="')[2].partition('"')[0]
        async with self.client.stream("GET", f"/chat/{thread}/events?seen={seen}", timeout=SECONDS) as answer:
            assert answer.status_code == 200
            yield _events(answer)


class Page:
    """A served page."""

    def __init__(self, folder: Path, url: str) -> None:
        self.data = folder / "data"
        self.url = url
        self._clients: list[httpx.AsyncClient] = []

    def guest(self, **headers: str) -> Guest:
        client = httpx.AsyncClient(base_url=self.url, trust_env=False, timeout=SECONDS, headers=headers)
        self._clients.append(client)
        return Guest(client)

    async def signed_in(self, person: str = "ada", **headers: str) -> Guest:
        """A browser in which the operator has signed in as a person of the terminal."""
        code = secrets.token_urlsafe(8)
        leave_code(self.data, code, person)
        guest = self.guest(**headers)
        answer = await guest.post("/in", code=code)
        assert answer.status_code == 303, answer.text
        return guest

    async def alter(self, *statements: tuple[str, Sequence[Any]]) -> list[list[Any]]:
        """Changes the database behind the program's back; returns the rows of the last statement.

        In a process of its own: two copies of SQLite in one process lose each other's locks.
        """
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-c", _ALTERING, str(self.data / "remora.db"), json.dumps(statements), stdout=PIPE
        )
        out, _ = await process.communicate()
        assert process.returncode == 0
        rows: list[list[Any]] = json.loads(out)
        return rows

    async def talked(self, count: int, *, words: str = "line") -> None:
        """Lengthens the first conversation by `count` lines, half of them the bot's: "line 1" to "line count"."""
        sql = (
            "with recursive n(i) as (select 1 union all select i + 1 from n where i < ?) insert into messages"
            " (session_id, role, author_id, author_name, text, tokens, learn, recall, sitting, said_at, recorded_at,"
            " owner_id, nth) select m.session_id, iif(i % 2, 'user', 'assistant'), iif(i % 2, m.author_id, null),"
            " m.author_name, ? || ' ' || i, 3, 0, 1, 1, m.said_at + i * 1000, m.recorded_at, m.owner_id, 1000 + i"
            " from n, (select * from messages where role = 'user' order by id limit 1) m"
        )
        await self.alter(
            (sql, (count, words)), ("insert into changes (doc) select 2 * id + 1 from messages where nth > 1000", ())
        )

    async def close(self) -> None:
        await asyncio.gather(*(client.aclose() for client in self._clients))


@asynccontextmanager
async def paged(folder: Path, *, port: int, served: Served | None = None) -> AsyncIterator[Page]:
    """The page of an installation in `folder`, as long as the block runs."""
    given = served or Served(folder, port=port)
    async with given.running():
        await given.ready()
        page = Page(folder, f"http://127.0.0.1:{port}")
        try:
            nobody = page.guest()

            async def ready() -> bool:
                return (await nobody.get("/in")).status_code != 503

            await until(ready)
            yield page
        finally:
            await page.close()


def words(html: str) -> str:
    bare = re.sub(r"<(head|script|style)\b.*?</\1>|<[^>]*>", " ", html, flags=re.DOTALL)
    return " ".join(unescape(bare).split())


async def _events(answer: httpx.Response) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    event = ""
    async for line in answer.aiter_lines():
        if line.startswith("event: "):
            event = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield event, json.loads(line.removeprefix("data: "))


async def grown(events: AsyncIterator[tuple[str, dict[str, Any]]], wanted: str) -> str:
    """The HTML of the first item with these words that grows no more."""
    async with limit():
        async for event, data in events:
            html = str(data.get("html", ""))
            if event in ("item", "log") and wanted in words(html) and "growing" not in html:
                return html
    raise AssertionError(f"the stream ended before {wanted!r} came")
