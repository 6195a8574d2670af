"""OpenTelemetry traces, if PITWALL_TRACES is set.

Only then are the packages of `requirements/traces.txt` needed. OpenTelemetry's own variables, such
as OTEL_EXPORTER_OTLP_ENDPOINT, set where traces go.
"""

import importlib
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from orchestrator.core.spans import trace_with


class _OpenTelemetry:
    """Spans of one process, sent in batches by a separate thread."""

    def __init__(self, process: str) -> None:
        self._trace = importlib.import_module("opentelemetry.trace")
        resources = importlib.import_module("opentelemetry.sdk.resources")
        sdk = importlib.import_module("opentelemetry.sdk.trace")
        export = importlib.import_module("opentelemetry.sdk.trace.export")
        otlp = importlib.import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
        resource = resources.Resource.create({"service.name": f"pitwall-{process}"})
        self._provider = sdk.TracerProvider(resource=resource)
        self._provider.add_span_processor(export.BatchSpanProcessor(otlp.OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("pitwall")

    def open_span(self, name: str, attributes: dict[str, str]) -> AbstractContextManager[Any]:
        started: AbstractContextManager[Any] = self._tracer.start_as_current_span(
            name, attributes=attributes
        )
        return started

    def mark(self, attributes: dict[str, str]) -> None:
        self._trace.get_current_span().set_attributes(attributes)

    def add_past_span(
        self, name: str, attributes: dict[str, str], began: datetime, ended: datetime
    ) -> None:
        over = self._tracer.start_span(
            name, attributes=attributes, start_time=_convert_to_ns(began)
        )
        over.end(end_time=_convert_to_ns(ended))

    def close(self) -> None:
        """Send the spans that wait, then stop."""
        self._provider.shutdown()


_started: _OpenTelemetry | None = None


def start_tracing(process: str) -> None:
    """Start the exporter. Call it once per process, after its fork: the exporter has a thread."""
    global _started
    try:
        _started = _OpenTelemetry(process)
    except ImportError as error:
        raise ImproperlyConfigured(
            f"PITWALL_TRACES=1 needs requirements/traces.txt to be installed: {error}"
        ) from error
    trace_with(_started)


def stop_tracing() -> None:
    """Stop the exporter. Later spans are dropped."""
    trace_with(None)
    if _started is not None:
        _started.close()


def _convert_to_ns(instant: datetime) -> int:
    return round(instant.timestamp() * 1e6) * 1000
