"""One request at a time, each message received, decoded and parsed into a dictionary.

A load tool of Pitwall (docs/script-tool.md): its last argument contains the load, and it writes its
measurements to stdout as JSON lines.
"""

import gzip
import http.client
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import brotli
import zstandard

DECODERS: dict[str, Callable[[bytes], bytes]] = {
    "identity": bytes,
    "br": brotli.decompress,
    "gzip": gzip.decompress,
    "zstd": zstandard.ZstdDecompressor().decompress,
}


def main() -> None:
    asked = json.loads(sys.argv[-1])
    timeout_s = asked["request_timeout_s"]
    connection = http.client.HTTPConnection(asked["address"], asked["port"], timeout=timeout_s)
    began, end_s = time.perf_counter(), asked["warmup_s"] + asked["duration_s"]
    lines: list[dict[str, Any]] = [{"type": "protocol", "spoken": "h1"}]
    sizes = (0, 0)
    while (start_s := time.perf_counter() - began) < end_s:
        try:
            transferred, decoded = fetch(connection, asked)
        except (OSError, ValueError, http.client.HTTPException) as error:
            connection.close()
            lines.append({"type": "error", "class": "broken", "text": repr(error)[:300]})
            continue
        took_s = time.perf_counter() - began - start_s
        sizes = (transferred, decoded)
        lines.append(
            {
                "type": "request",
                "start_s": start_s,
                "latency_us": took_s * 1e6,
                "ok": True,
                "status": 200,
                "bytes": transferred,
            }
        )
    if sizes[0]:
        ratio = sizes[1] / sizes[0]
        lines.append({"type": "reading", "metric": "script.compression_ratio", "value": ratio})
    for line in [*lines, {"type": "done"}]:
        print(json.dumps(line))


def fetch(connection: http.client.HTTPConnection, asked: dict[str, Any]) -> tuple[int, int]:
    """Return the bytes of the body as transferred, and decoded; ValueError for a wrong answer."""
    wanted = (asked["compression"] or ["identity"])[0]
    connection.request("GET", asked["path"], headers={"accept-encoding": wanted})
    answer = connection.getresponse()
    body = answer.read()
    coding = answer.headers.get("content-encoding", "identity")
    if answer.status != 200 or coding != wanted:
        raise ValueError(f"status {answer.status} in {coding} instead of 200 in {wanted}")
    text = DECODERS[coding](body)
    if not isinstance(json.loads(text), dict):
        raise ValueError("the message is no dictionary")
    return len(body), len(text)


if __name__ == "__main__":
    main()
