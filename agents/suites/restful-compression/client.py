"""The RESTful client: one request at a time, each message decoded and parsed into a dictionary.

A load tool of Pitwall (docs/script-tool.md): its last argument contains the load, and it writes its
measurements to stdout as JSON lines. It reports the size of the message, the transferred size, and
their ratio.
"""

import gzip
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import brotli
import zstandard
from connections import Connection, connect

DECODERS: dict[str, Callable[[bytes], bytes]] = {
    "identity": bytes,
    "br": brotli.decompress,
    "gzip": gzip.decompress,
    "zstd": zstandard.ZstdDecompressor().decompress,
}


class Got(NamedTuple):
    """One response: seconds since the load began, sizes in bytes."""

    start_s: float
    end_s: float
    status: int
    transferred: int
    message: int


class WrongAnswerError(Exception):
    """The response is not the requested one."""


def main() -> None:
    asked = json.loads(sys.argv[-1])
    with connect(asked) as connection:
        lines = list(load(asked, connection))
    for line in lines:
        print(json.dumps(line))
    print(json.dumps({"type": "done"}))


def load(asked: dict[str, Any], connection: Connection) -> Iterator[dict[str, Any]]:
    """Send the load, and report it line by line."""
    began, got, done = time.perf_counter(), [], 0
    while goes_on(asked, time.perf_counter() - began, done):
        try:
            got.append(fetch(asked, connection, began))
            done += got[-1].start_s >= asked["warmup_s"]
        except Exception as error:
            # Any exception of the libraries: a request without a response.
            done += 1
            yield {"type": "error", "class": class_of(error), "text": repr(error)[:300]}
    yield from map(line_of, got)
    if connection.spoken is not None:
        yield {"type": "protocol", "spoken": connection.spoken}
    yield from readings([each for each in got if each.status == 200])


def goes_on(asked: dict[str, Any], now_s: float, done: int) -> bool:
    if asked["requests"] is not None:
        return done < asked["requests"]
    return now_s < asked["warmup_s"] + asked["duration_s"]


def fetch(asked: dict[str, Any], connection: Connection, began: float) -> Got:
    """Send one request, and measure until its message is a dictionary."""
    wanted = (asked["compression"] or ["identity"])[0]
    start = time.perf_counter()
    answer = connection.get(asked["path"], wanted)
    if answer.status != 200:
        return Got(start - began, time.perf_counter() - began, answer.status, len(answer.body), 0)
    if answer.coding != wanted:
        raise WrongAnswerError(f"{answer.coding} instead of {wanted}")
    text = DECODERS[wanted](answer.body)
    message = json.loads(text)
    end = time.perf_counter()
    if not isinstance(message, dict):
        raise WrongAnswerError(f"a {type(message).__name__} instead of a dictionary")
    return Got(start - began, end - began, answer.status, len(answer.body), len(text))


def line_of(got: Got) -> dict[str, Any]:
    return {
        "type": "request",
        "start_s": got.start_s,
        "latency_us": (got.end_s - got.start_s) * 1e6,
        "ok": got.status == 200,
        "status": got.status,
        "bytes": got.transferred,
    }


def readings(got: list[Got]) -> Iterator[dict[str, Any]]:
    if not got:
        return
    message = statistics.fmean(each.message for each in got)
    transferred = statistics.fmean(each.transferred for each in got)
    told = {
        "script.message_bytes": message,
        "script.transferred_bytes": transferred,
        "script.compression_ratio": message / transferred,
    }
    for metric, value in told.items():
        yield {"type": "reading", "metric": metric, "value": value}


def class_of(error: Exception) -> str:
    if isinstance(error, WrongAnswerError):
        return "wrong_answer"
    return "timeout" if "Timeout" in type(error).__name__ else "broken"


if __name__ == "__main__":
    main()
