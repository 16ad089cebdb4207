"""`remora init` as people run it: at a terminal, in scripts, and in folders where something is already."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import stat
import struct
import sys
import termios
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from gateway.config.loading import load
from tests.kit.ollama import ANSWER, FakeOllama, running
from tests.kit.patience import limit, until

pytestmark = pytest.mark.campaign

ROOT = Path(__file__).parents[2]


@dataclass(slots=True, kw_only=True)
class Machine:
    """A person's home folder, and an environment without any key."""

    home: Path
    ollama: FakeOllama
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return self.home / ".config" / "remora"

    @property
    def environment(self) -> dict[str, str]:
        system = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
        address = {"OLLAMA_HOST": self.ollama.address, "NO_PROXY": "*"}
        return {
            **system,
            "HOME": str(self.home),
            "PYTHONPATH": str(ROOT),
            "LANG": "C.UTF-8",
            **address,
            **self.variables,
        }

    async def run(self, *arguments: str, cwd: Path | None = None) -> tuple[int, str]:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "gateway", *arguments),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=self.environment,
            cwd=cwd or self.home,
        )
        async with limit():
            shown, _ = await process.communicate()
        assert process.returncode is not None
        return process.returncode, shown.decode()

    async def type(self, *steps: tuple[str, str], command: str = "init") -> tuple[int, str]:
        """Runs a command at a terminal: waits for each text, then types. Returns the exit code and the screen."""
        screen, terminal = os.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 300, 0, 0))
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "gateway", command),
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            env=self.environment,
            cwd=self.home,
            start_new_session=True,
            # Ctrl-C is a signal for those whose terminal it is.
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(terminal)
        os.set_blocking(screen, False)
        shown, seen = "", 0

        def shows(text: str) -> bool:
            nonlocal shown
            shown += _read(screen)
            return text in shown[seen:]

        try:
            for expected, keys in steps:
                await until(partial(shows, expected))
                seen = len(shown)
                # Ctrl-C between the question and the wait for an answer would end the wait with the next key only.
                await until(partial(_waits, process.pid))
                os.write(screen, keys.encode())
            looks = count(1)

            def has_ended() -> bool:
                # A Ctrl-C just before the wait for a key is seen with the next one only, so people press it again.
                if steps[-1][1] == "\x03" and next(looks) % 200 == 0 and process.returncode is None:
                    os.write(screen, b"\x03")
                return shows("") and process.returncode is not None

            await until(has_ended)
            shown += _read(screen)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
            os.close(screen)
        assert process.returncode is not None
        return process.returncode, shown.replace("\r\n", "\n")


def _waits(pid: int) -> bool:
    """Returns whether a program waits for a key; where the system does not tell for what it waits, whether it does."""
    place = Path(f"/proc/{pid}/wchan").read_text()
    if place not in ("", "0"):
        return place == "wait_woken" or "poll" in place  # a line is read, or keys are
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


def _read(screen: int) -> str:
    try:
        return os.read(screen, 65536).decode()
    except OSError:  # nothing to read now, or the program has gone
        return ""


def models(machine: Machine) -> list[tuple[str, str]]:
    config = load(machine.folder / "config.yaml", machine.environment, machine.home)
    return [(model.model, model.base_url) for model in config.agents[config.default_agent].models]


async def test_from_nothing_to_the_first_answer_of_a_model_takes_two_keys(tmp_path: Path) -> None:
    """Enter for the Ollama that runs here, Enter for its latest model."""
    async with running(FakeOllama()) as ollama:
        machine = Machine(home=tmp_path, ollama=ollama)
        code, shown = await machine.type(("Number [1]: ", "\n"), ("Number [1]: ", "\n"))
        assert code == 0, shown
        assert "Ollama on this machine: qwen3:8b, llama3.2:3b" in shown and "It answers." in shown
        assert "remora channels add telegram" in shown and "Timezone: " in shown
        code, shown = await machine.run("chat", "--once", "hello")
        assert code == 0 and ANSWER in shown
        code, shown = await machine.run("check")
    assert code == 0 and "Warning" not in shown and "agent assistant (default): ollama/qwen3:8b" in shown
    assert stat.S_IMODE((machine.folder / ".env").stat().st_mode) == 0o600
    assert sorted(path.name for path in machine.folder.iterdir()) == [".env", "agents", "config.yaml", "data"]
    assert (machine.folder / "data" / "remora.db").is_file()


async def test_a_model_that_fails_is_told_and_another_can_be_chosen(tmp_path: Path) -> None:
    """Nobody finds out in the first chat that the machine is too small."""
    async with running(FakeOllama(broken=frozenset({"qwen3:8b"}))) as ollama:
        machine = Machine(home=tmp_path, ollama=ollama)
        steps = [("Number [1]: ", "\n")] * 3 + [("Number [1]: ", "2\n")]
        code, shown = await machine.type(*steps)
    assert code == 0
    assert "model requires more system memory" in shown
    assert models(machine) == [("llama3.2:3b", f"http://{ollama.address}/v1")]


async def test_a_key_that_was_typed_is_in_env_alone_and_never_shown(tmp_path: Path) -> None:
    async with running(FakeOllama(models=())) as ollama:
        machine = Machine(home=tmp_path, ollama=ollama)
        code, shown = await machine.type(
            ("Number [9]: ", "8\n"),
            ("v1: ", f"{ollama.address}/v1\n"),
            ("Model: ", "mine\n"),
            ("(not shown)", "sk-typed\n"),
        )
        assert code == 0, shown
    assert ollama.asked[0]["authorization"] == "Bearer sk-typed"
    assert "sk-typed" not in shown
    assert "sk-typed" in (machine.folder / ".env").read_text()
    assert "sk-typed" not in (machine.folder / "agents" / "assistant.yaml").read_text()
    assert models(machine) == [("mine", f"http://{ollama.address}/v1")]


async def test_ctrl_c_at_a_question_leaves_nothing(tmp_path: Path) -> None:
    """Half a home would be found by the next start."""
    async with running(FakeOllama()) as ollama:
        machine = Machine(home=tmp_path, ollama=ollama)
        code, shown = await machine.type(("Number [1]: ", "\n"), ("Number [1]: ", "\x03"))
    assert code == 130 and "Nothing was written" in shown
    assert list(tmp_path.iterdir()) == []


async def test_the_questions_are_chinese_where_the_terminal_is(tmp_path: Path) -> None:
    """LANG says what the person reads, and the agent answers commands in it."""
    async with running(FakeOllama(models=())) as ollama:
        machine = Machine(home=tmp_path, ollama=ollama, variables={"LANG": "zh_CN.UTF-8"})
        code, shown = await machine.type(("编号 [9]: ", "\n"))
    assert code == 0 and "接下来" in shown
    assert load(machine.folder / "config.yaml", {}, tmp_path).agents["assistant"].language == "zh"


async def test_without_a_terminal_options_answer_and_a_missing_one_is_named(tmp_path: Path) -> None:
    """Scripts and containers have nobody to ask."""
    async with running(FakeOllama(broken=frozenset({"bad"}))) as ollama:
        machine = Machine(home=tmp_path, ollama=ollama, variables={"MY_KEY": "sk-mine"})
        url = f"http://{ollama.address}/v1"
        code, shown = await machine.run("init")
        assert code == 2 and "--yes" in shown and "--model" in shown
        code, shown = await machine.run("init", "--model", "bad", "--base-url", url)
        assert code == 75 and "more system memory" in shown
        code, shown = await machine.run("init", "--model", "m", "--key-env", "UNSET_KEY")
        assert code == 78 and "UNSET_KEY is not set" in shown
        assert list(tmp_path.iterdir()) == []
        code, shown = await machine.run("init", "--model", "m", "--base-url", url, "--key-env", "MY_KEY")
        assert code == 0, shown
        assert ollama.asked[-1]["authorization"] == "Bearer sk-mine"
    assert "sk-mine" not in "".join(path.read_text() for path in machine.folder.rglob("*") if path.is_file())
    assert models(machine) == [("m", url)]


async def test_what_is_there_stays_and_what_is_missing_is_added(tmp_path: Path) -> None:
    async with running(FakeOllama()) as ollama:
        machine = Machine(home=tmp_path, ollama=ollama)
        code, shown = await machine.run("init", "--model", "none")
        assert code == 0, shown
        config = machine.folder / "config.yaml"
        config.write_text(config.read_text() + "limits: {concurrent_turns: 7}  # mine\n")
        mine = config.read_text()
        (machine.folder / ".env").unlink()
        code, shown = await machine.run("init", "--yes")
        assert code == 0, shown
        assert config.read_text() == mine and (machine.folder / ".env").exists()
        agent = (machine.folder / "agents" / "assistant.yaml").read_text()
        assert agent.startswith("# The agent that answers.") and models(machine)[0][0] == "qwen3:8b"
        code, shown = await machine.run("init", "--yes")
    assert code == 0 and "Nothing was missing" in shown and "uses qwen3:8b" in shown
    assert (machine.folder / "agents" / "assistant.yaml").read_text() == agent


async def test_a_home_with_a_mistake_is_left_alone(tmp_path: Path) -> None:
    async with running(FakeOllama()) as ollama:
        machine = Machine(home=tmp_path, ollama=ollama)
        machine.folder.mkdir(parents=True)
        (machine.folder / "config.yaml").write_text("data_dirr: x\n")
        code, shown = await machine.run("init", "--yes")
    assert code == 78 and "data_dirr" in shown and "Nothing was written" in shown
    assert [path.name for path in machine.folder.iterdir()] == ["config.yaml"]


async def test_the_folder_of_the_program_is_refused(tmp_path: Path) -> None:
    """An update would overwrite what is written there."""
    machine = Machine(home=tmp_path, ollama=FakeOllama())
    code, shown = await machine.run("init", str(ROOT), "--yes")
    assert code == 2 and "Name another folder" in shown


async def test_the_first_chat_names_the_command_in_one_line(tmp_path: Path) -> None:
    """It works without a set-up, and says once that there is one."""
    machine = Machine(home=tmp_path, ollama=FakeOllama(address="127.0.0.1:9"))
    code, shown = await machine.type(("leaves", "\x04"), command="chat")
    assert code == 0, shown
    assert shown.count("`remora init`") == 1
    code, shown = await machine.run("init", "--model", "none")
    assert code == 0, shown
    code, shown = await machine.type(("leaves", "\x04"), command="chat")
    assert code == 0 and "`remora init`" not in shown


async def test_in_a_clone_the_set_up_keeps_its_memories_and_its_files(tmp_path: Path) -> None:
    """Nothing in the repository changes, and what was told before is still known."""
    clone = tmp_path / "clone"
    clone.mkdir()
    shutil.copyfile(ROOT / "config.yaml", clone / "config.yaml")
    machine = Machine(home=tmp_path, ollama=FakeOllama(address="127.0.0.1:9"))
    code, shown = await machine.run("chat", "--once", "I live in Lisbon", cwd=clone)
    assert code == 0, shown
    code, shown = await machine.run("init", "--model", "none", cwd=clone)
    assert code == 0 and f"Your memories stay where they are: {clone / 'data'}" in shown
    code, shown = await machine.run("chat", "--once", "Where do I live?", cwd=clone)
    assert code == 0 and "Lisbon" in shown
    code, shown = await machine.run("check", cwd=clone)
    assert str(machine.folder / "config.yaml") in shown
    assert sorted(path.name for path in clone.iterdir()) == ["config.yaml", "data"]
    assert (clone / "config.yaml").read_bytes() == (ROOT / "config.yaml").read_bytes()


@pytest.mark.parametrize("wish", ["y\n", "n\n"])
async def test_notes_of_another_assistant_are_offered_once_and_can_be_undone(tmp_path: Path, wish: str) -> None:
    """At the first chat where they lie; whoever declines is not asked again either."""
    machine = Machine(home=tmp_path, ollama=FakeOllama(address="127.0.0.1:9"))
    (tmp_path / "MEMORY.md").write_text("- The user lives in Porto\n- The user likes tea\n")
    (tmp_path / "USER.md").write_text("- Name: Ada\n")
    code, shown = await machine.run("init", "--model", "none")
    assert code == 0 and "MEMORY.md and USER.md in" in shown and "can become memories" in shown
    code, shown = await machine.type(("Import them now?", wish), ("leaves", "\x04"), command="chat")
    assert code == 0 and f"MEMORY.md and USER.md in {tmp_path} can become memories" in shown
    assert ("Imported as" in shown) is (wish == "y\n")
    code, shown = await machine.type(("leaves", "\x04"), command="chat")
    assert code == 0 and "Import them" not in shown
    code, shown = await machine.run("chat", "--once", "/memory list")
    assert code == 0 and ("Porto" in shown) is (wish == "y\n")
    code, shown = await machine.run("import", "list")
    assert code == 0
    if wish == "y\n":
        ids = [line.split()[0] for line in shown.splitlines() if "markdown" in line]
        assert len(ids) == 2
        for short_id in ids:
            assert (await machine.run("import", "undo", short_id))[0] == 0
        assert "Porto" not in (await machine.run("chat", "--once", "/memory list"))[1]


async def test_notes_that_hold_no_text_are_left_out_and_the_chat_begins(tmp_path: Path) -> None:
    """The offer is made only once, so what can be read is imported."""
    machine = Machine(home=tmp_path, ollama=FakeOllama(address="127.0.0.1:9"))
    (tmp_path / "MEMORY.md").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00")
    (tmp_path / "USER.md").write_text("- The user lives in Porto\n")
    code, shown = await machine.type(("Import them now?", "y\n"), ("leaves", "\x04"), command="chat")
    assert code == 0 and f"Left out: {tmp_path / 'MEMORY.md'}" in shown and "Imported as" in shown, shown
    code, shown = await machine.run("chat", "--once", "/memory list")
    assert code == 0 and "Porto" in shown


async def test_ctrl_d_at_the_offer_of_notes_means_no(tmp_path: Path) -> None:
    machine = Machine(home=tmp_path, ollama=FakeOllama(address="127.0.0.1:9"))
    (tmp_path / "USER.md").write_text("- The user lives in Porto\n")
    code, shown = await machine.type(("Import them now?", "\x04"), ("leaves", "\x04"), command="chat")
    assert code == 0 and "Aborted" not in shown and "Imported as" not in shown, shown
