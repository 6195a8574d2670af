"""Answers /N with N bytes."""

import argparse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        body = b"x" * int(self.path[1:] or 0)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


parser = argparse.ArgumentParser()
parser.add_argument("--bind")
parser.add_argument("--port", type=int)
given = parser.parse_args()
ThreadingHTTPServer((given.bind, given.port), Handler).serve_forever()
