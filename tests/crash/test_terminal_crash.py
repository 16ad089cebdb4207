"""kill -9 at any moment of a terminal chat: nothing committed is lost, nothing happens twice.

`REMORA_KILLS` sets how often the process is killed (a few in the ordinary run, `make crash` many).
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.kit.patience import SECONDS

pytestmark = pytest.mark.campaign

ROOT = Path(__file__).parents[2]
KILLS = int(os.environ.get("REMORA_KILLS", "5"))


def test_killing_the_process_at_any_moment_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """Every message that reached the inbox is answered once and teaches once."""
    (tmp_path / "config.yaml").write_text("data_dir: data\n")
    chance = random.Random(11)
    shown = ""
    for run in range(KILLS):
        process = start(tmp_path)
        assert process.stdin is not None and process.stdout is not None
        try:
            for n in range(30):
                process.stdin.write(f"I like thing{run}x{n}\n".encode())
            process.stdin.flush()
        except BrokenPipeError:
            pass
        # In the middle of the start, or of the talk: a moment after some of the answers have been shown.
        for _ in range(chance.randrange(-5, 25)):
            shown += process.stdout.readline().decode()
        time.sleep(chance.uniform(0, 0.1))
        process.send_signal(signal.SIGKILL)
        out, _ = process.communicate()
        shown += out.decode()
    process = start(tmp_path)
    out, errors = process.communicate(b"I like thingZ\n", timeout=SECONDS)
    shown += out.decode()
    assert process.returncode == 0, errors.decode()

    database = sqlite3.connect(tmp_path / "data" / "remora.db")
    states = dict(database.execute("select state, count(*) from inbox group by state").fetchall())
    errors_of = database.execute("select error, count(*) from inbox group by error").fetchall()
    unsent = database.execute("select count(*) from outbox where state <> 'sent'").fetchone()[0]
    said = Counter(text for (text,) in database.execute("select text from messages where role = 'user'"))
    answers = database.execute("select count(*) from messages where role = 'assistant'").fetchone()[0]
    likes = Counter(value for (value,) in database.execute("select value from memories where kind = 'fact'"))
    reinforced = database.execute("select max(reinforced_count) from memories where kind = 'fact'").fetchone()[0]
    taken = database.execute("select count(*) from inbox").fetchone()[0]
    (check,) = database.execute("pragma integrity_check").fetchone()
    database.close()

    assert check == "ok"
    assert states == {"done": taken}, errors_of
    assert unsent == 0
    assert taken > KILLS
    assert set(said.values()) == {1} and sum(said.values()) == taken == answers
    assert set(likes.values()) == {1} and len(likes) == taken and reinforced == 0
    missing = [text for text in said if text.removeprefix("I like ") not in shown]
    assert missing == [], "committed, answered, and never shown"


def start(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "gateway", "chat", "--config", str(folder / "config.yaml")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=folder,
    )
