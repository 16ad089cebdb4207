"""Logs, by one structlog set-up for every line of the process, and traces, if their own variables name a collector.

Invariants: no string reaches a log before it has passed `redact`, be it an event's field, a library's message, a
traceback or the complaint about a record that can't be formatted. An event is `noun.verb` with keyword fields
(`turn.done`, session=..., ms=...): ids and counts, never the text of a message. Importing this module sets up
nothing. Of spans only Remora's are sent: the tracer of OpenTelemetry's own stays unset, because libraries that use it
put the words of errors into their spans.
"""

from __future__ import annotations

import logging
import re
import sys
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from logging.handlers import RotatingFileHandler, WatchedFileHandler
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, TextIO, TypeAlias, cast

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from agents.spans import TRACER

Level: TypeAlias = Literal["debug", "info", "warning", "error"]
Format: TypeAlias = Literal["console", "json"]

#: Libraries and the lowest level they may log at, whatever level is configured. At INFO httpx writes whole URLs
#: (Telegram's hold the token), at DEBUG the platform libraries write what people said.
_FLOORS = {
    "aiosqlite": logging.WARNING,
    "apscheduler": logging.WARNING,
    "httpcore": logging.WARNING,
    "httpcore2": logging.WARNING,
    "httpx": logging.WARNING,
    "httpx2": logging.WARNING,
    # It writes down the unreadable data that a server of tools sends.
    "mcp": logging.CRITICAL,
    "client": logging.CRITICAL,  # the name under which its sessions log
    "urllib3": logging.WARNING,
    "aiogram": logging.INFO,
    "markdown_it": logging.WARNING,
    # It warns about missing parts for voice, which Remora does not use.
    "discord.client": logging.ERROR,
    # Their warnings about rate limits hold URLs with an interaction's token.
    "discord.http": logging.ERROR,
    "discord.webhook": logging.ERROR,
    "aiohttp": logging.INFO,
    # It logs a traceback, with a piece of the data, for everything it gets that is no HTTP request.
    "aiohttp.server": logging.CRITICAL,
    "discord": logging.WARNING,
    "websockets": logging.INFO,
}
#: Escape sequences in a log could repaint the operator's terminal; tab and newline belong to tracebacks.
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if code not in (0x09, 0x0A)}
#: Bytes of a rotated log file, and the number of older ones that are kept.
_ROTATED_BYTES, _ROTATED = 1_000_000, 3
#: Characters of an error that a person is told.
_TOLD = 300
#: The lines of the log that are kept in memory, and the characters of one.
_KEPT, _LINE = 200, 1_000
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
_LAST: Final[deque[tuple[str, object]]] = deque(maxlen=_KEPT)
#: Nested fields deeper than this are written as their repr.
_DEPTH = 6


#: The processors that every event passes first.
_FIRST: tuple[Processor, ...] = (
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.StackInfoRenderer(),
)


class LogFileError(Exception):
    """Raised when the log file can't be written; `str()` is for the operator."""


def configure(
    *,
    level: Level,
    format: Format,  # noqa: A002 - the key's name in config.yaml
    file: Path | None,
    redact: Callable[[str], str],
    rotate: bool = False,
) -> None:
    """Sends structlog and the standard library's logging, redacted, to stderr or to `file`.

    `console` is for eyes (coloured on a terminal only), `json` is one object per line. Times are UTC in ISO 8601. A
    file is appended to, and opened anew when something else has rotated it away; with `rotate` it is rotated here. The
    function may be called again: the last call holds, and only handlers that an earlier call has set are replaced.

    Raises:
        LogFileError: `file` can't be opened.
    """
    handler = _handler(file, redact, rotate=rotate)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*_FIRST, structlog.stdlib.ExtraAdder()],
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
            *_FIRST,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        # A logger kept by a module must follow when `configure` is called again.
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    _replace_handlers(root, handler)
    threshold = logging.getLevelNamesMapping()[level.upper()]
    root.setLevel(threshold)
    for name, floor in _FLOORS.items():
        logging.getLogger(name).setLevel(max(floor, threshold))
    logging.captureWarnings(capture=True)


def tell_errors(tell: Callable[[str], None], *, redact: Callable[[str], str]) -> None:
    """Tells each error in one redacted line, in any thread. Call it after `configure`, which would undo it."""
    handler = _ToPerson(tell, redact)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*_FIRST, structlog.stdlib.ExtraAdder()],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                _exception_as_error,
                _redactor(redact),
                _in_one_line,
            ],
        )
    )
    logging.getLogger().addHandler(handler)


def _replace_handlers(root: logging.Logger, handler: logging.Handler) -> None:
    for old in [each for each in root.handlers if isinstance(each, _Ours)]:
        root.removeHandler(old)
        old.close()
    root.addHandler(handler)


def last_lines(*, channel: str | None = None) -> list[str]:
    """Returns the last lines of this process's log, redacted as they were written, the newest first.

    With a channel, as it begins the keys of its sessions, the lines about sessions of other channels are left out.
    """
    return [
        line
        for line, session in reversed(_LAST)
        if channel is None or not isinstance(session, str) or session.partition(":")[0] == channel
    ]


def log_crashes() -> None:
    """Logs an exception that ends the process instead of printing it unredacted. Ctrl-C keeps Python's own handling."""
    sys.excepthook = _log_crash


def _log_crash(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    structlog.stdlib.get_logger("gateway").critical("process.crashed", exc_info=(kind, error, trace))


class _Ours(logging.Handler):
    """The base of both handlers, which reports a record that can't be formatted without its arguments.

    The standard library prints such a record's arguments to stderr as they are. This class writes only the place and
    the kind of error, redacted.
    """

    redact: Callable[[str], str]
    keeps = True
    #: The record that was kept last. Its error would hold much that nobody needs any more.
    _kept: weakref.ref[logging.LogRecord] | None = None

    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        # One that may fill a file is formatted twice.
        if self.keeps and (self._kept is None or record is not self._kept()):
            self._kept = weakref.ref(record)
            session = record.msg.get("session") if isinstance(record.msg, dict) else None
            _LAST.append((_COLOUR.sub("", line)[:_LINE], session))
        return line

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the standard library's name
        error = sys.exc_info()[1]
        place = f"{record.pathname}:{record.lineno}"
        line = f"log.failed logger={record.name} at={place} error={type(error).__name__}"
        try:
            sys.stderr.write(self.redact(line) + "\n")
        except (OSError, ValueError):
            # Stderr is gone as well, so there is nowhere left to report the error.
            return


class _ToStderr(_Ours, logging.StreamHandler[TextIO]):
    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__(sys.stderr)
        self.redact = redact


class _ToFile(_Ours, WatchedFileHandler):
    def __init__(self, file: Path, redact: Callable[[str], str]) -> None:
        super().__init__(file, encoding="utf-8")
        self.redact = redact


class _ToRotatedFile(_Ours, RotatingFileHandler):
    def __init__(self, file: Path, redact: Callable[[str], str]) -> None:
        super().__init__(file, maxBytes=_ROTATED_BYTES, backupCount=_ROTATED, encoding="utf-8")
        self.redact = redact


class _ToPerson(_Ours):
    keeps = False

    def __init__(self, tell: Callable[[str], None], redact: Callable[[str], str]) -> None:
        super().__init__(logging.ERROR)
        self._tell = tell
        self.redact = redact

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._tell(self.format(record))
        except ValueError:
            self.handleError(record)


def _handler(file: Path | None, redact: Callable[[str], str], *, rotate: bool) -> _Ours:
    if file is None:
        return _ToStderr(redact)
    try:
        return _ToRotatedFile(file, redact) if rotate else _ToFile(file, redact)
    except OSError as error:
        raise LogFileError(
            f"The log file {file} can't be opened: {error.strerror}. Nothing was started. "
            "Create its folder and make it writable, or leave out the file to log to stderr."
        ) from error


def _renderer(format: Format, *, coloured: bool) -> Processor:  # noqa: A002
    if format == "json":
        return structlog.processors.JSONRenderer(ensure_ascii=False, sort_keys=False)
    return structlog.dev.ConsoleRenderer(colors=coloured, exception_formatter=structlog.dev.plain_traceback)


def _exception_as_error(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Gives an event with an exception, but without an error in words, the exception's own words."""
    raised = event.pop("exc_info", None)
    exception = raised[1] if isinstance(raised, tuple) else sys.exc_info()[1] if raised else None
    if exception is not None:
        event.setdefault("error", f"{type(exception).__name__}: {exception}")
    return event


def _in_one_line(_logger: WrappedLogger, _method: str, event: EventDict) -> str:
    """Returns the event in words, without the fields that only the operator needs: "Turn failed: no answer"."""
    named = str(event.get("event", "")).split("\n", 1)[0]
    happened = named.replace(".", " ").replace("_", " ") if " " not in named else named
    error = event.get("error", "")
    line = " ".join(f"{happened[:1].upper()}{happened[1:]}{': ' if error else ''}{error}".split())
    return line if len(line) <= _TOLD else line[: _TOLD - 1] + "…"


def _redactor(redact: Callable[[str], str]) -> Processor:
    """Returns a processor that makes every value plain (text, numbers, lists, mappings) and redacts every text."""

    def safe(value: object, depth: int) -> object:
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, str):
            return redact(value).translate(_CONTROLS)
        if depth < _DEPTH and isinstance(value, Mapping):
            return {safe(str(key), depth): field(str(key), each, depth + 1) for key, each in value.items()}
        if depth < _DEPTH and isinstance(value, list | tuple | set | frozenset):
            return [safe(each, depth + 1) for each in value]
        # URLs, paths, exceptions: a renderer would call repr on them after this processor.
        return redact(str(value)).translate(_CONTROLS)

    def field(key: str, value: object, depth: int) -> object:
        """Returns the value of a field, made safe; the name alone may show that it is a secret (`password=...`)."""
        if isinstance(value, str):
            named = redact(f"{key}={value}")
            if named.startswith(f"{key}="):
                return named[len(key) + 1 :].translate(_CONTROLS)
        return safe(value, depth)

    def process(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        return cast(EventDict, safe(event, 0))

    return process


log = structlog.get_logger(__name__)

#: Any of these names a collector.
_COLLECTOR: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


@contextmanager
def traced(env: Mapping[str, str]) -> Iterator[None]:
    """Sends spans to the collector that `env` names, as OpenTelemetry's SDK reads it, while the block runs."""
    off = env.get("OTEL_SDK_DISABLED", "").lower() == "true" or env.get("OTEL_TRACES_EXPORTER", "otlp") != "otlp"
    if off or not any(env.get(name) for name in _COLLECTOR):
        yield
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        log.warning("traces.off", error=str(error), fix="pip install 'remora[otel]', or unset OTEL_…")
        yield
        return
    resource = Resource.create({"service.name": env.get("OTEL_SERVICE_NAME") or "remora"})
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    token = TRACER.set(provider.get_tracer("remora"))
    try:
        yield
    finally:
        TRACER.reset(token)
        provider.shutdown()
