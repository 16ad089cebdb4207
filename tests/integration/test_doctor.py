"""`remora doctor`: what it finds in broken installations, and that it finds nothing in a sound one."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from gateway import meaning
from gateway.__main__ import main
from gateway.cli import examination
from gateway.cli.examination import Diagnosis
from gateway.config.loading import Config, load
from gateway.config.settings import EmbeddingSettings
from gateway.ops import http
from gateway.ops.health import Report
from memory.jobs import runs
from memory.store.database import Transaction
from memory.store.sqlite import driver as drivers
from tests.kit import ollama
from tests.kit.fakes import NOON, Clock
from tests.kit.stores import address, opened, planted, wrote
from tests.kit.talk import private
from tests.platforms.telegram import serving as telegram_serving

TOKEN, REVOKED = ("123456789:" + "Aa0_-" * 7, "223456789:" + "Aa0_-" * 7)


def configured(folder: Path, more: str = "", agent: str = "") -> Config:
    """An installation of one agent in `folder`, without vectors."""
    file = folder / "config.yaml"
    more += "" if "http:" in more else "http: {enabled: false}\n"
    file.write_text(f"{database_of(folder)}embedding: {{provider: none}}\n{more}")
    (folder / "agents").mkdir(exist_ok=True)
    (folder / "agents" / "assistant.yaml").write_text(f"name: assistant\n{agent}")
    return load(file, {}, folder)


def database_of(folder: Path) -> str:
    """The line of the configuration that names the database of the store, if that is on a server."""
    on_server = address(folder / "data" / "remora.db")
    return f"database_url: {on_server}\n" if on_server else ""


async def found(config: Config, *, outside: bool = False, now: int = NOON) -> dict[str, Diagnosis]:
    return {one.about: one async for one in examination.examine(config, outside=outside, now=lambda: now)}


@asynccontextmanager
async def store(config: Config) -> AsyncIterator[Path]:
    """A store in which Ada has a memory; at the end nobody has it open."""
    path = config.data_dir / "remora.db"
    async with opened(path, Clock(), agents=("assistant",)) as memory:
        await planted(memory, await memory.identities.context(*private("ada")), "lives in Porto")
        yield path


@pytest.mark.sqlite("no file is there yet")
async def test_a_new_installation_has_no_trouble(tmp_path: Path) -> None:
    findings = await found(configured(tmp_path))
    assert examination.status([*findings.values()]) == "yellow"  # the running bot can't be asked
    assert findings["remora.db"].text == "not made yet; the first message makes it"
    assert findings["configuration"].state == findings["permissions"].state == "ok"


@pytest.mark.sqlite("its pages are checked and its backups looked at")
async def test_a_sound_store_is_counted_while_it_is_open(tmp_path: Path) -> None:
    config = configured(tmp_path)
    async with store(config):
        findings = await found(config)
    assert (findings["remora.db"].state, findings["remora.db"].text) == (
        "ok",
        "sound, 1 person, 0 messages, 1 memory",
    )
    assert findings["remora.db: backups"].fix.startswith("`remora backup`")


@pytest.mark.sqlite("damages its file")
async def test_a_damaged_store_is_trouble_and_says_how_to_restore(tmp_path: Path) -> None:
    """The first thing to know is what not to do."""
    config = configured(tmp_path)
    async with store(config) as path:
        pass
    pages = bytearray(path.read_bytes())
    pages[4096:] = b"\xff" * (len(pages) - 4096)
    path.write_bytes(pages)
    damage = (await found(config))["remora.db"]
    assert damage.state == "trouble" and "remora restore" in damage.fix


@pytest.mark.sqlite("damages its file")
async def test_a_file_that_is_no_store_is_trouble(tmp_path: Path) -> None:
    config = configured(tmp_path)
    config.data_dir.mkdir()
    (config.data_dir / "remora.db").write_text("these are my notes")
    assert (await found(config))["remora.db"].state == "trouble"


async def test_a_store_of_a_later_version_is_trouble(tmp_path: Path) -> None:
    config = configured(tmp_path)
    async with opened(config.data_dir / "remora.db", Clock()) as memory:
        await wrote(memory, lambda tx: tx.run("insert into migrations values (9999, 'later', 1)"))
    trouble = (await found(config))["remora.db"]
    assert trouble.state == "trouble" and "newer Remora" in trouble.text


@pytest.mark.sqlite("a backup is a copy of the file")
async def test_an_old_backup_is_a_warning(tmp_path: Path) -> None:
    """A bot that is off at night makes none, and nobody notices."""
    config = configured(tmp_path)
    async with store(config):
        pass
    (config.data_dir / "backups").mkdir()
    (config.data_dir / "backups" / "remora-20261110T030000Z.db").touch()
    backup = (await found(config))["remora.db: backups"]
    assert backup.state == "warning" and "days old" in backup.text


async def test_a_job_that_failed_is_a_warning_that_names_it(tmp_path: Path) -> None:
    config = configured(tmp_path)
    async with opened(config.data_dir / "remora.db", Clock(), agents=("assistant",)) as memory:
        ids = memory.agents.ids

        def fail(tx: Transaction) -> None:
            run = runs.begin(tx, "merge", ids["assistant"], "2026-11-20", now=NOON)
            assert run is not None
            runs.finish(tx, run.id, runs.RunEnd("failed", "model_failed"), now=NOON)

        await wrote(memory, fail)
    jobs = (await found(config))["remora.db: jobs"]
    assert jobs.state == "warning" and "merge of assistant" in jobs.text


@pytest.mark.sqlite("a backup is a copy of the file")
async def test_a_clock_that_was_put_back_is_trouble(tmp_path: Path) -> None:
    config = configured(tmp_path)
    async with store(config):
        pass
    (config.data_dir / "backups").mkdir()
    (config.data_dir / "backups" / "remora-20261201T030000Z.db").touch()
    clock = (await found(config))["remora.db: clock"]
    assert clock.state == "trouble" and "Set this machine's clock" in clock.fix


@pytest.mark.sqlite("about its file")
async def test_files_that_others_can_read_are_a_warning(tmp_path: Path) -> None:
    config = configured(tmp_path)
    async with store(config) as path:
        path.chmod(0o644)
        permissions = (await found(config))["permissions"]
    assert permissions.state == "warning" and "remora.db" in permissions.text


@pytest.mark.parametrize(("free", "state"), [(50_000_000, "trouble"), (500_000_000, "warning"), (5_000_000_000, "ok")])
def test_a_disk_is_judged_by_what_is_free(tmp_path: Path, free: int, state: str) -> None:
    assert examination.disk(tmp_path, free).state == state


async def test_a_running_bot_in_trouble_is_trouble_in_its_words(tmp_path: Path) -> None:
    async def report() -> Report:
        return Report(reasons=("telegram: no contact.",), channels={}, stores=(), version="1", uptime_seconds=9)

    async with http.serving(report, host="127.0.0.1", port=0) as url:
        port = int(url.split(":")[2].split("/")[0])
        process = (await found(configured(tmp_path, f"http: {{port: {port}}}\n")))["process"]
    assert (process.state, process.text) == ("trouble", "telegram: no contact.")


async def test_a_bot_that_does_not_run_is_a_warning(tmp_path: Path) -> None:
    process = (await found(configured(tmp_path, "http: {port: 1}\n")))["process"]
    assert process.state == "warning" and "remora serve" in process.fix


async def test_an_agent_that_answers_from_memory_asks_no_server(tmp_path: Path) -> None:
    findings = await found(configured(tmp_path, agent="models: [{provider: offline}]\n"), outside=True)
    assert findings["models"].state == "ok" and not any(about.startswith("model ") for about in findings)


async def test_each_model_is_asked_one_real_request(tmp_path: Path) -> None:
    """One that lacks memory says so in its server's words; the key's line and the file are named."""
    async with ollama.running(ollama.FakeOllama(broken=frozenset({"llama3.2:3b"}))) as server:
        models = "\n".join(
            f"  - {{provider: openai, model: '{name}', base_url: 'http://{server.address}/v1'}}"
            for name in server.models
        )
        config = configured(tmp_path, agent=f"models:\n{models}\n")
        findings = await found(config, outside=True)
        assert len(server.asked) >= 2
    assert findings["model openai/qwen3:8b"].state == "ok"
    broken = findings["model openai/llama3.2:3b"]
    assert broken.state == "trouble" and "assistant" in broken.fix


async def test_an_ollama_that_reads_less_than_is_configured_is_named(tmp_path: Path) -> None:
    """It drops the beginning of longer requests without a word; an older one does not tell what it reads."""
    for context, state in ((4_096, "warning"), (32_000, "ok"), (None, "ok")):
        async with ollama.running(ollama.FakeOllama(context=context)) as server:
            models = f"  - {{provider: ollama, model: 'qwen3:8b', base_url: 'http://{server.address}/v1'}}\n"
            findings = await found(configured(tmp_path, agent=f"models:\n{models}"), outside=True)
        finding = findings["model ollama/qwen3:8b"]
        assert finding.state == state, context
        assert state == "ok" or ("4096 tokens" in finding.text and "context: 4096" in finding.fix)


class Bare(drivers.Driver):
    """A SQLite of the many that were built without the loading of extensions."""

    @property
    def loads_extensions(self) -> bool:
        return False


async def test_search_by_meaning_needs_a_sqlite_that_loads_extensions() -> None:
    """Where it does not, words decide alone, and nobody wonders why."""
    settings = EmbeddingSettings(provider="none")
    assert "can't load sqlite-vec" in await meaning.without_meaning(settings, Bare(name="bare", module=sqlite3))
    assert drivers.bundled() is None or await meaning.without_meaning(settings) == ""


async def test_each_platform_is_asked_who_the_bot_is(tmp_path: Path) -> None:
    """A revoked token is found before people wait in vain."""
    async with telegram_serving((TOKEN,)) as telegram:
        bots = (
            f"channels:\n  telegram:\n    - {{id: telegram, token: '{TOKEN}', base_url: '{telegram.url}'}}\n"
            f"    - {{id: other, token: '{REVOKED}', base_url: '{telegram.url}'}}\n"
        )
        findings = await found(configured(tmp_path, bots), outside=True)
    assert findings["channel telegram"].state == "ok"
    assert findings["channel other"].state == "trouble" and "remora channels add" in findings["channel other"].fix
    assert REVOKED not in repr(findings)


@pytest.mark.sqlite("the tests' server has fsync off, which is trouble")
def test_the_command_prints_json_and_probes_a_memory(tmp_path: Path) -> None:
    configured(tmp_path)
    done = CliRunner().invoke(main, ["doctor", "--no-network", "--json", "--config", str(tmp_path / "config.yaml")])
    told = json.loads(done.stdout)
    (memory,) = [one for one in told["findings"] if one["about"] == "memory"]
    assert memory["state"] == "ok", memory
    assert (done.exit_code, told["status"]) == (0, "yellow")


def test_a_broken_configuration_is_told_with_code_78(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("data_dirr: x\n")
    done = CliRunner().invoke(main, ["doctor", "--config", str(tmp_path / "config.yaml")])
    assert done.exit_code == 78 and "data_dirr" in done.stderr
