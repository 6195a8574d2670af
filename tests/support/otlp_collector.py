"""A collector of traces on loopback: it receives OTLP over HTTP, and prints one JSON line per span.

It runs with the Python that has `requirements/traces.txt`: `python otlp_collector.py SPANS`. Its
first line is the port.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

SPANS = Path(sys.argv[1])
_writing = Lock()


class Collector(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path != "/v1/traces":
            self.send_error(404)
            return
        request = ExportTraceServiceRequest.FromString(content)
        lines = [f"{json.dumps(each)}\n" for each in list_spans(request)]
        with _writing, SPANS.open("a") as out:
            out.writelines(lines)
        body = ExportTraceServiceResponse().SerializeToString()
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def list_spans(request: Any) -> list[dict[str, object]]:
    return [
        {
            "service": named(of_process.resource.attributes)["service.name"],
            "name": span.name,
            "trace": span.trace_id.hex(),
            "id": span.span_id.hex(),
            "parent": span.parent_span_id.hex(),
            "attributes": named(span.attributes),
            "began_ns": span.start_time_unix_nano,
            "ended_ns": span.end_time_unix_nano,
            "failed": span.status.code == span.status.STATUS_CODE_ERROR,
        }
        for of_process in request.resource_spans
        for of_scope in of_process.scope_spans
        for span in of_scope.spans
    ]


def named(attributes: Any) -> dict[str, str]:
    return {each.key: each.value.string_value for each in attributes}


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    print(server.server_port, flush=True)
    server.serve_forever()
