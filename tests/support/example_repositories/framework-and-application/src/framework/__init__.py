"""A framework: functions by path, on the server of the standard library."""

from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def serve(host: str, port: int, pages: Mapping[str, Callable[[], str]]) -> None:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            page = pages.get(self.path)
            body = page().encode() if page else b"not found"
            self.send_response(200 if page else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    ThreadingHTTPServer((host, port), Handler).serve_forever()
