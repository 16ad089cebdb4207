"""`remora mcp`: memory as a server of tools over stdin and stdout, for programs that start their servers themselves.

It passes messages on to the running `remora serve`, which alone owns the database, and keeps nothing.

Invariants: the key comes from the environment, because arguments can be read by everybody on the machine. Nothing but
messages of the protocol is written to stdout.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import click

from gateway.cli.start import CONFIG, EX_NOINPUT, fail, loaded

_SECONDS: Final = 200.0
_META_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
_FAILED: Final = -32000


@click.command()
@CONFIG
@click.option("--url", help="The address of the running Remora (default: the one in config.yaml).")
def mcp(config_path: Path | None, url: str | None) -> None:
    """Serve memory as MCP tools over stdio. The key (see /keys) must be in the environment as REMORA_KEY."""
    key = os.environ.get("REMORA_KEY", "")
    if not key:
        fail("REMORA_KEY is not set. Make a key with /keys in a private chat, and set it to that.", EX_NOINPUT)
    if url is None:
        from gateway.app import api_address

        url = api_address(loaded(config_path))
        if not url:
            fail("The API is off. Write api: {enabled: true} into config.yaml and start `remora serve`.", EX_NOINPUT)
    proxy = StdioProxy(url, key)
    for line in sys.stdin:
        if line.strip():
            for answer in proxy.passed(line):
                sys.stdout.write(answer + "\n")
                sys.stdout.flush()


class StdioProxy:
    """Passes messages on, one at a time."""

    def __init__(self, url: str, key: str) -> None:
        self._url = urlsplit(url)
        self._key = key
        #: The version that an `initialize` has settled on, for the requests after it.
        self._version = ""

    def passed(self, line: str) -> Iterator[str]:
        try:
            message = json.loads(line)
        except ValueError:
            yield _error(None, "This is not JSON.")
            return
        message = message if isinstance(message, dict) else {}
        try:
            status, body = self._posted(line, self._headers(message))
        except (OSError, HTTPException) as exc:
            told = (
                f"Nothing answers at {self._url.geturl()} ({exc}). Start `remora serve`, or name its address by --url."
            )
            click.echo(told, err=True)  # where programs keep what their servers complain of
            if "id" in message:
                yield _error(message["id"], told)
            return
        answer = body.decode("utf-8", "replace").strip()
        if status >= 400 and "id" in message and "jsonrpc" not in answer:
            yield _error(message["id"], _told(status, answer))
        elif (answer and status < 300) or "jsonrpc" in answer:
            self._note(message, answer)
            yield " ".join(answer.splitlines())

    def _headers(self, message: Mapping[str, Any]) -> dict[str, str]:
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        meta = params.get("_meta")
        version = (meta.get(_META_VERSION) if isinstance(meta, dict) else None) or self._version
        named = params.get("name") or params.get("uri")
        return {
            "Authorization": f"Bearer {self._key}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            **({"MCP-Protocol-Version": version} if isinstance(version, str) and version else {}),
            **({"Mcp-Method": message["method"]} if isinstance(message.get("method"), str) else {}),
            **({"Mcp-Name": named} if isinstance(named, str) and named.isascii() else {}),
        }

    def _posted(self, line: str, headers: Mapping[str, str]) -> tuple[int, bytes]:
        kind = HTTPSConnection if self._url.scheme == "https" else HTTPConnection
        connection = kind(self._url.hostname or "", self._url.port, timeout=_SECONDS)
        try:
            connection.request("POST", "/mcp", body=line.encode(), headers=dict(headers))
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def _note(self, message: Mapping[str, Any], answer: str) -> None:
        if message.get("method") != "initialize":
            return
        result = json.loads(answer).get("result")
        self._version = str(result.get("protocolVersion", "")) if isinstance(result, dict) else ""


def _error(message_id: object, text: str) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": message_id, "error": {"code": _FAILED, "message": text}})


def _told(status: int, answer: str) -> str:
    try:
        return str(json.loads(answer)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return f"Remora answered with status {status}."
