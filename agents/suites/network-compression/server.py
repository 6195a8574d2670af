"""A server of one JSON message, compressed for each answer in the coding that the client requests.

COMPRESSION_LEVEL is the level of every coding.
"""

import argparse
import gzip
import os
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import brotli
import zstandard
from messages import encoded, message

LEVEL = int(os.environ.get("COMPRESSION_LEVEL", "3"))
BODY = encoded(message("large"))
CODINGS: dict[str, Callable[[bytes], bytes]] = {
    "br": lambda body: bytes(brotli.compress(body, quality=LEVEL)),
    "gzip": lambda body: gzip.compress(body, LEVEL, mtime=0),
    "zstd": lambda body: zstandard.ZstdCompressor(level=LEVEL).compress(body),
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Headers and body are separate writes; without this the second one waits for an answer.
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        coding = self.headers.get("accept-encoding", "").strip()
        compress = CODINGS.get(coding)
        body = BODY if compress is None else compress(BODY)
        self.send_response(200)
        if compress is not None:
            self.send_header("content-encoding", coding)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bind", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    given = parser.parse_args()
    ThreadingHTTPServer((given.bind, given.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
