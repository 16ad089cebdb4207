"""Traces for OpenTelemetry: off unless its own environment variables name a collector.

Invariant: only Remora's spans are sent. The library's global tracer stays unset, because libraries that use it put the
words of errors into their spans.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import structlog

from agents.spans import TRACER

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
