"""Spans: parts of the work that are told to OpenTelemetry, if the operator has switched that on.

Invariant: a span holds names of the program and of the configuration, and times. It never holds a person, a chat or a
word, nor the text of an error.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def span(name: str, **attributes: str) -> Iterator[None]:
    """Makes the block a part of the span around it. Does nothing unless `gateway.ops.traces` has been started."""
    api = sys.modules.get("opentelemetry.trace")
    if api is None:
        yield
        return
    named = {f"remora.{key}": value for key, value in attributes.items()}
    tracer = api.get_tracer("remora")
    with tracer.start_as_current_span(
        name, attributes=named, record_exception=False, set_status_on_exception=False
    ) as made:
        try:
            yield
        except BaseException as error:
            made.set_attribute("error.type", type(error).__name__)
            raise
