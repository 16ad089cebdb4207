"""Logs: every line has one form, and no token is ever in one."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
import warnings
from pathlib import Path

import httpx
import pytest
import structlog

from gateway.ops.telemetry import Format, Level, LogFileError, configure, log_crashes, tell_errors
from memory.text.secrets.redact import redact

# Put together here, so that no scanner finds a token in the repository.
TELEGRAM = "7123456789:" + "AAHd3k5Jt" * 3 + "AAb4c6d8"
OPENAI = "sk-" + "proj-" + "a1B2c3D4" * 8
GITHUB = "gh" + "p_" + "a1B2c3D4e5F6" * 3
PASSWORD = "hunter2" + "Zx9"
PLANTED = (TELEGRAM, OPENAI, GITHUB, PASSWORD)

log = structlog.stdlib.get_logger("remora.test")


def logged(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def to_json(file: Path, level: Level = "debug") -> None:
    configure(level=level, format="json", file=file, redact=redact)


def test_an_event_is_one_json_object_with_its_fields_and_a_utc_time(tmp_path: Path) -> None:
    """Log collectors parse lines; a time without its zone can't be compared with another machine's."""
    to_json(tmp_path / "log")
    log.info("turn.done", session="telegram:-1001:45", ms=12, cached=True, model=None)
    (line,) = logged(tmp_path / "log")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", str(line.pop("timestamp")))
    assert line == {
        "event": "turn.done", "session": "telegram:-1001:45", "ms": 12, "cached": True, "model": None, "level": "info",
        "logger": "remora.test",
    }  # fmt: skip


def test_bound_context_is_on_every_event(tmp_path: Path) -> None:
    """Events of a turn are found again by its id, without every call repeating it."""
    to_json(tmp_path / "log")
    structlog.contextvars.bind_contextvars(turn="t_1")
    log.info("step.done")
    assert logged(tmp_path / "log")[0]["turn"] == "t_1"


def test_a_library_s_record_goes_the_same_way(tmp_path: Path) -> None:
    """Two formats in one stream are read by nobody."""
    to_json(tmp_path / "log")
    logging.getLogger("aiogram.event").warning("Update %d is late", 7, extra={"bot": "b1"})
    (line,) = logged(tmp_path / "log")
    assert (line["event"], line["logger"], line["level"], line["bot"]) == (
        "Update 7 is late", "aiogram.event", "warning", "b1",
    )  # fmt: skip


def leak_everywhere() -> None:
    """Puts every planted token through every way into a log."""
    url = f"https://api.telegram.org/bot{TELEGRAM}/getUpdates"
    log.debug(f"poll.failed {url}")
    log.info("poll.failed", url=url, real=httpx.URL(url), key=OPENAI, password=PASSWORD)
    log.info("poll.failed", nested={"headers": [("Authorization", f"Bearer {GITHUB}")], GITHUB: 1}, raw=url.encode())
    log.info("deep.field", a={"b": {"c": {"d": {"e": {"f": {"g": {"h": GITHUB}}}}}}})
    log.info("positional %s", OPENAI)
    log.info("stack.shown", stack_info=True, note=f"password is {PASSWORD}")
    structlog.contextvars.bind_contextvars(token=OPENAI)
    log.warning("bound.context")
    stdlib = logging.getLogger("somebody.else")
    stdlib.debug("GET %s", url)
    stdlib.warning("with extra", extra={"api_key": OPENAI})
    logging.getLogger("httpx").info('HTTP Request: POST %s "HTTP/1.1 200 OK"', url)
    try:
        try:
            raise ValueError(f"401 for url '{url}'")
        except ValueError as error:
            error.add_note(f"tried with {GITHUB}")
            raise RuntimeError(f"login with password: {PASSWORD}") from error
    except RuntimeError as error:
        log.exception("call.failed")
        log.error("call.failed", error=error, exc_info=error)
        stdlib.exception("call failed for %s", OPENAI)
    warnings.warn(f"deprecated: {OPENAI}", UserWarning, stacklevel=1)


@pytest.mark.parametrize("form", ["json", "console"])
@pytest.mark.filterwarnings("always")
def test_no_planted_token_is_in_the_raw_log_at_debug(
    tmp_path: Path, form: Format, capsys: pytest.CaptureFixture[str]
) -> None:
    """A log is copied into bug reports; one token in it is a stolen bot."""
    file = tmp_path / "log"
    configure(level="debug", format=form, file=file, redact=redact)
    leak_everywhere()
    written = file.read_text(encoding="utf-8") + capsys.readouterr().err
    assert [token for token in PLANTED if token in written] == []
    assert written.count("[secret: telegram token]") >= 5
    assert "Traceback" in written
    assert "deprecated" in written


SET_UP = """
import logging, sys
from gateway.ops.telemetry import configure, log_crashes
from memory.text.secrets.redact import redact
configure(level="info", format="json", file=None, redact=redact)
log_crashes()
"""


def alone(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", SET_UP + code, TELEGRAM], capture_output=True, text=True, check=False)


def test_a_record_that_can_t_be_formatted_is_reported_without_its_arguments() -> None:
    """The standard library would print the arguments as they are; losing the record silently would hide the bug."""
    run = alone("logging.getLogger('somebody.else').warning('bad arguments %d', sys.argv[1])")
    assert run.stderr.startswith("log.failed logger=somebody.else at=<string>:7 error=TypeError")
    assert TELEGRAM not in run.stderr


def test_http_and_database_chatter_is_dropped_even_at_debug(tmp_path: Path) -> None:
    """httpx logs each URL at INFO, aiosqlite each statement with its values at DEBUG."""
    to_json(tmp_path / "log")
    for name in ("httpx", "httpcore.http11", "aiosqlite"):
        logging.getLogger(name).info("chatter")
        logging.getLogger(name).warning("trouble")
    logging.getLogger("discord.gateway").debug("what somebody said")
    assert [line["event"] for line in logged(tmp_path / "log")] == ["trouble"] * 3


@pytest.mark.parametrize(("level", "events"), [("debug", 4), ("info", 3), ("warning", 2), ("error", 1)])
def test_the_level_holds_for_events_and_records(tmp_path: Path, level: Level, events: int) -> None:
    to_json(tmp_path / "log", level)
    for logger in (log, logging.getLogger("somebody.else")):
        for method in ("debug", "info", "warning", "error"):
            getattr(logger, method)("a.happened")
    assert len(logged(tmp_path / "log")) == 2 * events


def test_configuring_again_moves_existing_loggers_and_doubles_nothing(tmp_path: Path) -> None:
    """Modules keep their logger; a reload must not leave them writing to the old place, or to both."""
    first, second = tmp_path / "first", tmp_path / "second"
    to_json(first)
    log.info("a.happened")
    to_json(second)
    log.info("b.happened")
    logging.getLogger("somebody.else").info("c.happened")
    assert [line["event"] for line in logged(first)] == ["a.happened"]
    assert [line["event"] for line in logged(second)] == ["b.happened", "c.happened"]


def test_handlers_of_others_are_left_alone(tmp_path: Path) -> None:
    """Test tools and hosts hang their own handlers on the root logger."""
    mine = logging.NullHandler()
    logging.getLogger().addHandler(mine)
    to_json(tmp_path / "log")
    to_json(tmp_path / "log")
    assert mine in logging.getLogger().handlers


def test_a_console_line_is_plain_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Colour codes in a file or a pipe are noise."""
    configure(level="info", format="console", file=None, redact=redact)
    log.info("turn.done", ms=12)
    told = capsys.readouterr().err
    assert "turn.done" in told
    assert "ms=12" in told
    assert "\x1b" not in told


def test_terminal_control_characters_in_values_are_shown_not_obeyed(capsys: pytest.CaptureFixture[str]) -> None:
    """A display name with escape sequences could repaint the operator's terminal."""
    configure(level="info", format="console", file=None, redact=redact)
    log.info("person.met", name="Bob\x1b[2J\x07")
    assert "Bob\\x1b[2J\\x07" in capsys.readouterr().err


def test_a_log_file_that_can_t_be_opened_is_told_with_what_to_do(tmp_path: Path) -> None:
    """A path error in a traceback helps nobody at the first start."""
    with pytest.raises(LogFileError, match=r"can't be opened: No such file or directory\..*Create its folder"):
        to_json(tmp_path / "missing" / "log")


def test_an_exception_that_ends_the_process_is_logged_redacted() -> None:
    """The last words of a process are the most copied ones."""
    run = alone("raise RuntimeError('401 for https://api.telegram.org/bot' + sys.argv[1] + '/getMe')")
    (line,) = [json.loads(each) for each in run.stderr.splitlines()]
    assert run.returncode == 1
    assert (line["event"], line["level"]) == ("process.crashed", "critical")
    assert "[secret: telegram token]" in line["exception"]
    assert TELEGRAM not in run.stderr


def test_interrupting_the_process_is_no_crash(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    to_json(tmp_path / "log")
    log_crashes()
    sys.excepthook(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert (tmp_path / "log").read_text() == ""
    assert "KeyboardInterrupt" in capsys.readouterr().err


def test_an_error_is_told_in_one_plain_line_without_secrets(tmp_path: Path) -> None:
    """A person who chats on the terminal reads it; warnings are for the file."""
    told: list[str] = []
    to_json(tmp_path / "log")
    tell_errors(told.append, redact=redact)
    log.warning("turn.slow", ms=12)
    log.error("turn.failed", session="console:you:-", error=f"the key {OPENAI} was\nrefused")
    logging.getLogger("a.library").error("Task %s was destroyed\nbut it is pending", "x")
    log.error("turn.broken", error="e" * 1_000)
    assert told[0].startswith("Turn failed: the key [secret") and told[0].endswith("was refused")
    assert told[1] == "Task x was destroyed"
    assert len(told) == 3 and len(told[2]) == 300
    try:
        raise KeyError(OPENAI)
    except KeyError:
        log.exception("send.broken")
        logging.getLogger("a.library").error("Broken", exc_info=True)
    assert [line[:30] for line in told[3:]] == ["Send broken: KeyError: '[secre", "Broken: KeyError: '[secret: op"]
    to_json(tmp_path / "log")
    log.error("turn.failed")
    assert len(told) == 5, "the last set-up holds"


def test_a_log_can_be_rotated(tmp_path: Path) -> None:
    """A terminal chat has nobody who would do it for it."""
    configure(level="info", format="json", file=tmp_path / "log", redact=str, rotate=True)
    for n in range(120):
        log.info("filled", n=n, text="x" * 50_000)
    assert {file.name for file in tmp_path.iterdir()} == {"log", "log.1", "log.2", "log.3"}
    assert all(file.stat().st_size <= 1_000_000 for file in tmp_path.iterdir())
