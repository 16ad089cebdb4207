"""Logs: one structlog set-up through which every line of the process goes, ours and the libraries'.

Invariants: no string reaches a log before it has passed `redact`, be it an event's field, a library's
message, a traceback or the complaint about a record that can't be formatted. An event is `noun.verb` with
keyword fields (`turn.done`, session=..., ms=...): ids and counts, never the text of a message. Importing
sets up nothing.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from logging.handlers import WatchedFileHandler
from pathlib import Path
from types import TracebackType
from typing import Literal, TextIO, TypeAlias, cast

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

Level: TypeAlias = Literal["debug", "info", "warning", "error"]
Format: TypeAlias = Literal["console", "json"]

#: Libraries and the lowest level they may log at, whatever ours is. At INFO httpx writes whole URLs
#: (Telegram's hold the token), at DEBUG the platform libraries write what people said.
_FLOORS = {
    "aiosqlite": logging.WARNING,
    "apscheduler": logging.WARNING,
    "httpcore": logging.WARNING,
    "httpx": logging.WARNING,
    "urllib3": logging.WARNING,
    "aiogram": logging.INFO,
    "markdown_it": logging.WARNING,
    # It misses parts for voice, which nobody uses.
    "discord.client": logging.ERROR,
    # Their warnings of limits hold addresses with an interaction's token.
    "discord.http": logging.ERROR,
    "discord.webhook": logging.ERROR,
    "aiohttp": logging.INFO,
    "discord": logging.WARNING,
    "websockets": logging.INFO,
}
#: Escape sequences in a log could repaint the operator's terminal; tab and newline belong to tracebacks.
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if code not in (0x09, 0x0A)}
#: Nested fields deeper than this are written as their repr.
_DEPTH = 6


class LogFileError(Exception):
    """The log file can't be written; `str()` is for the operator."""


def configure(
    *,
    level: Level,
    format: Format,  # noqa: A002 - the key's name in config.yaml
    file: Path | None,
    redact: Callable[[str], str],
) -> None:
    """Send structlog and the standard library's logging, redacted, to stderr or to `file`.

    `console` is for eyes (coloured on a terminal only), `json` one object per line. Times are UTC in ISO
    8601. A file is appended to, and opened anew when something else has rotated it away. May be called
    again: the last call holds, and only handlers that an earlier call has set are replaced.

    Raises:
        LogFileError: `file` can't be opened.
    """
    handler = _handler(file, redact)
    before: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*before, structlog.stdlib.ExtraAdder()],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                # Tracebacks become text here, so that the next step sees them whole.
                structlog.processors.format_exc_info,
                _redactor(redact),
                _renderer(format, coloured=file is None and sys.stderr.isatty()),
            ],
        )
    )
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.PositionalArgumentsFormatter(),
            *before,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        # A logger kept by a module must follow when `configure` is called again.
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    for old in [each for each in root.handlers if isinstance(each, _Ours)]:
        root.removeHandler(old)
        old.close()
    root.addHandler(handler)
    threshold = logging.getLevelNamesMapping()[level.upper()]
    root.setLevel(threshold)
    for name, floor in _FLOORS.items():
        logging.getLogger(name).setLevel(max(floor, threshold))
    logging.captureWarnings(capture=True)


def log_crashes() -> None:
    """Let an exception that ends the process be logged (as `process.crashed`) instead of printed unredacted.

    Ctrl-C keeps Python's own handling.
    """
    sys.excepthook = _log_crash


def _log_crash(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    structlog.stdlib.get_logger("gateway").critical("process.crashed", exc_info=(kind, error, trace))


class _Ours(logging.Handler):
    """What both handlers share. The standard library answers a record that can't be formatted by printing its
    arguments to stderr, as they are; here only the place and the kind of error are told, redacted."""

    redact: Callable[[str], str]

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the standard library's name
        error = sys.exc_info()[1]
        place = f"{record.pathname}:{record.lineno}"
        line = f"log.failed logger={record.name} at={place} error={type(error).__name__}"
        try:
            sys.stderr.write(self.redact(line) + "\n")
        except (OSError, ValueError):
            # Stderr is gone as well: nobody is left to be told.
            return


class _ToStderr(_Ours, logging.StreamHandler[TextIO]):
    pass


class _ToFile(_Ours, WatchedFileHandler):
    pass


def _handler(file: Path | None, redact: Callable[[str], str]) -> _Ours:
    handler: _Ours
    if file is None:
        handler = _ToStderr(sys.stderr)
    else:
        try:
            handler = _ToFile(file, encoding="utf-8")
        except OSError as error:
            raise LogFileError(
                f"The log file {file} can't be opened: {error.strerror}. Nothing has been started. "
                "Create its folder and make it writable, or leave the file out to log to stderr."
            ) from error
    handler.redact = redact
    return handler


def _renderer(format: Format, *, coloured: bool) -> Processor:  # noqa: A002
    if format == "json":
        return structlog.processors.JSONRenderer(ensure_ascii=False, sort_keys=False)
    return structlog.dev.ConsoleRenderer(colors=coloured, exception_formatter=structlog.dev.plain_traceback)


def _redactor(redact: Callable[[str], str]) -> Processor:
    """A processor that makes every value plain (text, numbers, lists, mappings) and every text redacted."""

    def safe(value: object, depth: int) -> object:
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, str):
            return redact(value).translate(_CONTROLS)
        if depth < _DEPTH and isinstance(value, Mapping):
            return {safe(str(key), depth): field(str(key), each, depth + 1) for key, each in value.items()}
        if depth < _DEPTH and isinstance(value, list | tuple | set | frozenset):
            return [safe(each, depth + 1) for each in value]
        # URLs, paths, exceptions: a renderer would call repr on them, after us.
        return redact(str(value)).translate(_CONTROLS)

    def field(key: str, value: object, depth: int) -> object:
        """The value of a field; its name may be what tells that it is a secret (`password=...`)."""
        if isinstance(value, str):
            named = redact(f"{key}={value}")
            if named.startswith(f"{key}="):
                return named[len(key) + 1 :].translate(_CONTROLS)
        return safe(value, depth)

    def process(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        return cast(EventDict, safe(event, 0))

    return process
