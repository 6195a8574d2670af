"""Traces by OpenTelemetry, where PITWALL_TRACES asks for them; else a span costs a comparison.

The packages of `requirements-traces.txt` are needed only then. Where traces go is told by
OpenTelemetry's own variables, such as OTEL_EXPORTER_OTLP_ENDPOINT.
"""

import importlib
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from django.core.exceptions import ImproperlyConfigured

_tracer: Any = None
_NO_SPAN: AbstractContextManager[None] = nullcontext()


def span(name: str, **attributes: str) -> AbstractContextManager[Any]:
    """A span around a block; a child of the one around it."""
    if _tracer is None:
        return _NO_SPAN
    started: AbstractContextManager[Any] = _tracer.start_as_current_span(
        name, attributes=attributes
    )
    return started


def start_tracing(process: str) -> None:
    """Once a process, after its fork: the exporter sends from a thread of its own."""
    global _tracer
    try:
        trace = importlib.import_module("opentelemetry.trace")
        resources = importlib.import_module("opentelemetry.sdk.resources")
        sdk = importlib.import_module("opentelemetry.sdk.trace")
        export = importlib.import_module("opentelemetry.sdk.trace.export")
        otlp = importlib.import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    except ImportError as error:
        raise ImproperlyConfigured(
            f"PITWALL_TRACES=1 needs requirements-traces.txt to be installed: {error}"
        ) from error
    resource = resources.Resource.create({"service.name": f"pitwall-{process}"})
    provider = sdk.TracerProvider(resource=resource)
    provider.add_span_processor(export.BatchSpanProcessor(otlp.OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    _tracer = provider.get_tracer("pitwall")
