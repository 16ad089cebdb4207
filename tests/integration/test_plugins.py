"""Parts that other packages bring: each is found by its entry point and used through the program's own doors."""

from __future__ import annotations

import asyncio
import re
import socket
import sys
from collections.abc import Iterator
from importlib import invalidate_caches
from pathlib import Path

import pytest
from click.testing import CliRunner

from agents import plugins
from gateway import app, bots
from gateway.__main__ import main
from gateway.config.loading import ConfigError, load
from gateway.ops.reloading import Sources
from gateway.serve import serve
from tests.kit.patience import SECONDS

DOCS = Path(__file__).parents[2] / "docs" / "extending.md"
OTHERS = """
import json

import numpy as np

from agents.llm import Completion
from memory.transfer.formats.material import ImportedItem


class Parrot:
    name = "parrot/green"

    async def complete(self, request, on_text=None):
        said = request.messages[-1].content
        return Completion(text="Hello yourself!", model="green", provider="parrot") if "hello" in said else None

    async def aclose(self):
        pass


class Flat:
    name, dimension = "flat 1", 8

    async def split(self, texts):
        return [[text] if text else [] for text in texts]

    async def embed(self, texts, *, query):
        return np.ones((len(texts), 8), dtype=np.float32) / np.sqrt(8)

    async def aclose(self):
        pass


def provider(model, *, client):
    return Parrot()


async def embedder(settings, *, client):
    return Flat()


def importer(data, name):
    for number, (key, value) in enumerate(json.loads(data).items()):
        yield ImportedItem(where=f"{name} {number}", kind="fact", category="personal", key=key, value=value)
"""


OWN_BOT = (
    "channels: {{other: [{{platform: lines, id: lines, options: {options}, allow: [ada], admins: [ada]}}]}}\n"
    "http: {{enabled: false}}\nembedding: {{provider: flat}}\nlimits: {{burst_seconds: 0}}\n"
)
PARROT = "models: [{provider: parrot, model: green}]\n"


@pytest.fixture
def package(tmp_path: Path) -> Iterator[Path]:
    """A package as pip lays it out: the channel is the one in the documentation, word for word."""
    site = tmp_path / "site"
    (site / "parts-1.0.dist-info").mkdir(parents=True)
    channel = re.search(r"```python\n# lines\.py\n(.*?)```", DOCS.read_text("utf-8"), re.DOTALL)
    assert channel is not None
    (site / "lines.py").write_text(channel[1], "utf-8")
    (site / "others.py").write_text(OTHERS, "utf-8")
    (site / "parts-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: parts\nVersion: 1.0\n")
    (site / "parts-1.0.dist-info" / "entry_points.txt").write_text(
        "[remora.channels]\nlines = lines:make\n[remora.providers]\nparrot = others:provider\n"
        "[remora.embedders]\nflat = others:embedder\n[remora.importers]\njson = others:importer\nbroken = nowhere:x\n"
    )
    sys.path.insert(0, str(site))
    invalidate_caches()
    try:
        yield site
    finally:
        sys.path.remove(str(site))
        for name in ("lines", "others"):
            sys.modules.pop(name, None)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


async def ask(port: int, name: str, text: str = "hello there") -> str:
    """Says something on the channel from outside once it listens. Returns the first line of the answer."""
    while True:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            break
        except ConnectionError:
            await asyncio.sleep(0)
    writer.write(f"{name}\n{text}\n".encode())
    answer = (await reader.readline()).decode()
    writer.close()
    await writer.wait_closed()
    return answer


def configured(folder: Path, text: str, agent: str = "") -> Path:
    (folder / "agents").mkdir()
    (folder / "agents" / "assistant.yaml").write_text(f"name: assistant\n{agent}")
    (folder / "config.yaml").write_text(text)
    return folder / "config.yaml"


@pytest.mark.usefixtures("package")
async def test_a_channel_a_provider_and_an_embedder_from_outside_answer_a_person(tmp_path: Path) -> None:
    """A stranger is refused as on any other platform."""
    port = free_port()
    path = configured(tmp_path, OWN_BOT.format(options=f"{{port: {port}}}"), PARROT)
    config = load(path, {}, tmp_path)
    stop = asyncio.Event()
    serving = asyncio.create_task(serve(config, bots.channels(config, now=app.now), stop=stop, say=lambda line: None))
    async with asyncio.timeout(SECONDS):
        assert await ask(port, "ada") == "Hello yourself!\n"
        assert "no usable answer" in await ask(port, "ada", "break")
        assert "yourself" not in await ask(port, "mallory")
    stop.set()
    assert await serving == 0


@pytest.mark.usefixtures("package")
async def test_nothing_of_a_reload_holds_whose_channel_can_not_be_made(tmp_path: Path) -> None:
    """Else agents would answer by files of which the admin has just read that they can't be used."""
    port = free_port()
    path = configured(tmp_path, OWN_BOT.format(options=f"{{port: {port}}}"), PARROT)
    sources = Sources(lambda: load(path, {}, tmp_path), asyncio.Event())
    config = sources.read()
    stop = asyncio.Event()
    serving = asyncio.create_task(
        serve(config, bots.channels(config, now=app.now), stop=stop, say=lambda line: None, sources=sources)
    )
    async with asyncio.timeout(SECONDS):
        assert await ask(port, "ada") == "Hello yourself!\n"
        path.write_text(OWN_BOT.format(options="{}"))
        (tmp_path / "agents" / "assistant.yaml").write_text("name: assistant\n")
        assert "can't be used" in await ask(port, "ada", "/reload")
        assert await ask(port, "ada", "hello again") == "Hello yourself!\n"
    stop.set()
    assert await serving == 0


def test_a_part_that_is_not_installed_is_a_mistake_with_a_remedy(tmp_path: Path) -> None:
    path = configured(
        tmp_path, "channels: {other: [{platform: lines, id: lines}]}\n", "models: [{provider: parrot, model: x}]\n"
    )
    with pytest.raises(ConfigError) as refused:
        load(path, {}, tmp_path)
    assert "is offered by no installed package" in str(refused.value)
    assert "must be one of openai, anthropic" in str(refused.value)


@pytest.mark.usefixtures("package")
@pytest.mark.sqlite("starts the program on a file")
def test_an_importer_from_outside_reads_a_file(tmp_path: Path) -> None:
    """Its memories are shown first, and kept as any other import's."""
    path = configured(tmp_path, "embedding: {provider: none}\n")
    (tmp_path / "old.json").write_text('{"home": "Porto", "likes": "fado"}')

    def run(*options: str) -> str:
        command = ["import", str(tmp_path / "old.json"), "--person", "console:ada", *options, "--config", str(path)]
        return CliRunner().invoke(main, command).output

    assert "Porto" in run("--format", "json", "--yes")
    assert "can't be loaded" in run("--format", "broken", "--yes")
    assert "No installed package offers csv" in run("--format", "csv", "--yes")


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ('options["port"]', 'options["harbour"]', "lines of remora.channels can't be made: KeyError: 'harbour'"),
        ('platform = "lines"', 'platform = "rows"', "its id and platform are 'l' and 'rows', not 'l' and 'lines'"),
        ("async def send(", "async def sent(", "it has no method send"),
        ("import asyncio", "import asyncio, nowhere", "can't be loaded: ModuleNotFoundError"),
    ],
)
def test_a_channel_that_would_lose_messages_is_refused_at_the_start(
    package: Path, tmp_path: Path, before: str, after: str, problem: str
) -> None:
    """Where it only answers, or never hears, nobody would be told."""
    source = package / "lines.py"
    source.write_text(source.read_text().replace(before, after, 1))
    path = configured(tmp_path, "channels: {other: [{platform: lines, id: l, options: {port: 1}}]}\n")
    with pytest.raises(ConfigError) as refused:
        bots.channels(load(path, {}, tmp_path), now=app.now)
    assert problem in str(refused.value)


def test_a_part_that_breaks_as_it_is_loaded_is_named(package: Path) -> None:
    (package / "lines.py").write_text("raise RuntimeError('no luck')")
    with pytest.raises(
        plugins.PluginUnusable, match=r"lines of remora\.channels can't be loaded: RuntimeError: no luck"
    ):
        plugins.load(plugins.CHANNELS, "lines")
