"""`remora import` and `remora export` as somebody types them."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.kit.program import ran

pytestmark = pytest.mark.campaign

SECRET = "sk-ant-" + "a1B2" * 8


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A bot's folder beside another assistant's workspace."""
    (tmp_path / "config.yaml").write_text("data_dir: data\nembedding: {provider: none}\n", "utf-8")
    for name, text in {
        "MEMORY.md": f"# Memory\n## Projects\n- Deploys go out on Tuesdays\n- the token {SECRET} is for staging\n",
        "USER.md": "- **Name:** Ada\n- The user lives in Lisbon\n",
        "memory/2026-05-12.md": "- went to Sintra\n",
        "SOUL.md": "You are calm.\n",
        "AGENTS.md": "- Be brief.\n",
    }.items():
        file = tmp_path / "workspace" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    return tmp_path


def remora(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    config = ("--config", str(folder / "config.yaml"))
    done = ran(*arguments, *config, folder=folder, env={**os.environ, "NO_PROXY": "*"})
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def test_a_workspace_comes_in_goes_out_and_is_taken_back(folder: Path) -> None:
    """Shown first, brought in once, handed out, undone to the byte."""
    person = ("--person", "telegram:77")
    unasked = remora(folder, "import", "workspace", *person)
    assert unasked.returncode == 2 and "--yes" in unasked.stderr
    assert "New: 4 facts, 1 event, 0 messages." in unasked.stdout and "home: Lisbon" in unasked.stdout
    assert "AGENTS.md: these are an agent's rules" in unasked.stdout and "/agents/SOUL.md." in unasked.stdout
    dry = remora(folder, "import", "workspace", *person, "--dry-run", "--yes")
    assert dry.returncode == 0 and "Nothing was changed." in dry.stdout
    done = remora(folder, "import", "workspace", *person, "--yes")
    assert done.returncode == 0, done.stderr
    short_id = done.stdout.split("Imported as ")[1].split(":")[0]
    again = remora(folder, "import", "workspace", *person, "--yes")
    assert f"as {short_id}" in again.stdout and "Already there: 5 memories" in again.stdout
    asked = remora(folder, "export", *person, "--to", "out")
    assert asked.returncode == 0, asked.stderr
    (data,) = (folder / "out").glob("*.json")
    (page,) = (folder / "out").glob("*.md")
    assert len(json.loads(data.read_text("utf-8"))["memories"]) >= 5 and "Lisbon" in page.read_text("utf-8")
    assert data.stat().st_mode & 0o077 == 0
    listed = remora(folder, "import", "list")
    assert short_id in listed.stdout and "telegram:77" in listed.stdout
    assert remora(folder, "import", "undo", short_id).returncode == 0
    stored = b"".join(file.read_bytes() for file in (folder / "data").iterdir())
    assert b"Sintra" not in stored and b"Lisbon" not in stored and SECRET.encode() not in stored
    home = remora(folder, "import", "out", "--person", "console:ada", "--yes")
    assert home.returncode == 0 and "5 memories" in home.stdout, home.stderr


def test_a_telegram_chat_with_our_bot_comes_into_history(folder: Path) -> None:
    """As the owner's and the bot's words; a second time nothing is doubled."""
    messages = [
        {
            "id": n, "type": "message", "date_unixtime": str(1_704_103_200 + n), "from": "x", "from_id": user,
            "text": text,
        }
        for n, (user, text) in enumerate([("user77", "I live in Lisbon"), ("user999", "Noted.")], 2)
    ]  # fmt: skip
    chat = {"name": "Remora", "type": "bot_chat", "id": 999, "messages": messages}
    (folder / "result.json").write_text(json.dumps(chat), "utf-8")
    done = remora(folder, "import", "result.json", "--person", "telegram:77", "--yes")
    assert done.returncode == 0 and "0 memories, 2 messages" in done.stdout, done.stderr
    again = remora(folder, "import", "result.json", "--person", "telegram:77", "--yes")
    assert "2 messages" in again.stdout and "Nothing was changed." in again.stdout
    remora(folder, "export", "--person", "telegram:77", "--to", "out", "--transcript")
    (page,) = (folder / "out").glob("*.md")
    assert "**home**: Lisbon" in page.read_text("utf-8")


def test_an_archive_of_another_assistant_comes_in_and_is_taken_back(folder: Path) -> None:
    message = {"sender": "human", "text": "I live in Lisbon", "created_at": "2024-01-01T10:00:00Z", "attachments": []}
    with zipfile.ZipFile(folder / "data-2026.zip", "w") as archive:
        archive.writestr("users.json", "[]")
        archive.writestr("conversations.json", json.dumps([{"name": "Home", "chat_messages": [message]}]))
        archive.writestr(
            "memories.json", json.dumps([{"conversations_memory": "**Work**\n\n- Bakes bread for a living"}])
        )
    done = remora(folder, "import", "data-2026.zip", "--person", "telegram:77", "--yes")
    assert done.returncode == 0 and "1 memory, 1 message." in done.stdout, done.stderr + done.stdout
    short_id = done.stdout.split("Imported as ")[1].split(":")[0]
    assert remora(folder, "import", "undo", short_id).returncode == 0
    sessions = folder / "workspace" / "sessions"
    sessions.mkdir()
    said = {"type": "message", "timestamp": 1_704_103_200_000, "message": {"role": "user", "content": "I like tea"}}
    (sessions / "s.jsonl").write_text(json.dumps(said), "utf-8")
    whole = remora(folder, "import", "workspace", "--person", "telegram:77", "--dry-run")
    assert "New: 4 facts, 1 event, 1 message." in whole.stdout, whole.stdout + whole.stderr
    (folder / "broken.zip").write_bytes(b"PK\3\4 and nothing more")
    broken = remora(folder, "import", "broken.zip", "--person", "telegram:77")
    assert broken.returncode == 65 and "can't be unpacked" in broken.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("workspace",), 2, "Whose memory do you mean?"),
        (("nowhere", "--person", "telegram:77"), 65, "There is nothing at nowhere"),
        (("workspace", "--person", "telegram:ada"), 65, "not a user id on telegram"),
        (("workspace", "--person", "telegram:77", "--agent-wide"), 65, "one owner"),
        (("workspace", "--chat", "whatsapp:1"), 65, "not a platform"),
        (("config.yaml", "--person", "telegram:77"), 65, "can't be imported"),
        (("undo", "i_abc"), 65, "There is no import i_abc"),
        (("workspace", "--person", "telegram:77", "--agent", "nobody"), 65, "There is no agent nobody"),
    ],
)
def test_what_can_not_be_done_is_said_in_words(folder: Path, arguments: tuple[str, ...], code: int, said: str) -> None:
    """Without a traceback, and with what to do."""
    done = remora(folder, "import", *arguments)
    assert done.returncode == code and said in done.stderr and "Traceback" not in done.stderr, done.stderr


@pytest.mark.parametrize("name", ["result.json", "MEMORY.md", "notes.md"])
def test_a_pipe_or_a_device_is_refused_at_once(folder: Path, name: str) -> None:
    """Neither would ever end."""
    os.mkfifo(folder / name)
    (folder / "zeros.json").symlink_to("/dev/zero")
    for given in (name, "zeros.json"):
        refused = remora(folder, "import", given, "--person", "telegram:77", "--yes")
        assert refused.returncode == 65 and "neither a file nor a folder" in refused.stderr


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("gbk", "- 我妹妹喜欢喝绿茶，不喜欢咖啡\n- 护照在书房的抽屉里\n"),
        ("cp932", "- 妹は緑茶が好きです\n- 会議は三時です\n"),
        ("cp1252", "- Grüße von Jörg aus Köln\n- Café am Platz\n"),
        ("utf-16-le", "- Grüße von Jörg\n"),
        ("utf-8-sig", "- Grüße von Jörg\n"),
    ],
)
def test_notes_from_older_systems_are_read_as_what_they_are(folder: Path, encoding: str, text: str) -> None:
    """Nobody can find a memory of question marks."""
    (folder / "old").mkdir()
    (folder / "old" / "MEMORY.md").write_bytes(text.encode(encoding))
    done = remora(folder, "import", "old", "--person", "telegram:77", "--yes")
    assert done.returncode == 0 and "\ufffd" not in done.stdout, done.stderr
    remora(folder, "export", "--person", "telegram:77", "--to", "out")
    (page,) = (folder / "out").glob("*.md")
    shown = page.read_text("utf-8")
    assert all(line.removeprefix("- ") in shown for line in text.splitlines()) and "\ufeff" not in shown


def test_an_archive_under_the_name_of_a_note_is_no_memory(folder: Path) -> None:
    packed = gzip.compress(b"- I like tea\n" * 9, mtime=0)
    (folder / "workspace" / "HISTORY.md").write_bytes(packed)
    beside = remora(folder, "import", "workspace", "--person", "telegram:77", "--yes")
    assert beside.returncode == 0 and "HISTORY.md: it holds no text" in beside.stdout
    alone = remora(folder, "import", "workspace/HISTORY.md", "--person", "telegram:77", "--yes")
    assert alone.returncode == 65 and "holds no text" in alone.stderr
