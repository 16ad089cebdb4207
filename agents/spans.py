"""Spans: parts of the work that are told to OpenTelemetry, if the operator has switched that on.

Invariant: a span holds names of the program and of the configuration, and times. It never holds a person, a chat or a
word, nor the text of an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

#: Makes the spans; `gateway.ops.traces` sets it for all work that is begun within its block.
TRACER: Final[ContextVar[Any]] = ContextVar("tracer", default=None)


@contextmanager
def span(name: str, **attributes: str) -> Iterator[None]:
    """Makes the block a part of the span around it. Does nothing where nothing is traced."""
    tracer = TRACER.get()
    if tracer is None:
        yield
        return
    named = {f"remora.{key}": value for key, value in attributes.items()}
    with tracer.start_as_current_span(
        name, attributes=named, record_exception=False, set_status_on_exception=False
    ) as made:
        try:
            yield
        except BaseException as error:
            made.set_attribute("error.type", type(error).__name__)
            raise
