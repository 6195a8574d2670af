"""Reads the JSON lines that a script as load tool writes to stdout (docs/script-tool.md).

{out} becomes {"lines": n, "ended_s": s | null}; the rest is in rows.json.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Optional

from ..errors import TrialFailed
from ..files import write_json
from ..paths import build_stdout_path
from .request_counter import RequestCounter

PROTOCOLS = ("h1", "h2", "h3", "grpc")
#: A higher latency is a mistake in the unit.
MAX_LATENCY_US = 86_400e6
MAX_READINGS = 100

_CLASS = re.compile(r"[a-z][a-z0-9_]{0,39}\Z")
_STATUS = re.compile(r"[A-Za-z0-9_]{1,40}\Z")
_EXCERPT_CHARS = 120


class _InvalidLine(Exception):
    """A line violates the contract; the message contains the problem."""


def read(
    _folder: Path, out: Path, _rows: Path, warmup_s: float, _good_statuses: Collection[int] = ()
) -> dict[str, Any]:
    """Read the output; TrialFailed("tool_failed") names the first invalid line."""
    output = _ScriptOutput(warmup_s)
    number, last = 0, ""
    with open(build_stdout_path(out), encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            last = line.strip()
            try:
                output.add(_parse_line(line))
            except _InvalidLine as wrong:
                raise TrialFailed(
                    "tool_failed",
                    f"line {number} of the script's output: {wrong}: {last[:_EXCERPT_CHARS]!r}",
                ) from wrong
    if not output.is_done:
        raise TrialFailed(
            "tool_failed",
            'the script\'s output ends without {"type": "done"}, so it is incomplete; '
            + (f"line {number} is the last: {last[:_EXCERPT_CHARS]!r}" if last else "it is empty"),
        )
    write_json(out, {"lines": number, "ended_s": output.ended_s})
    return output.rows_json()


def _parse_line(line: str) -> Mapping[str, Any]:
    try:
        parsed = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _InvalidLine("not JSON, and only JSON lines may go to stdout") from error
    if not isinstance(parsed, dict):
        raise _InvalidLine('not an object with a "type"')
    return parsed


class _ScriptOutput:
    """The content of the lines so far."""

    def __init__(self, warmup_s: float) -> None:
        self.is_done = False
        self.ended_s: Optional[float] = None
        self._corrected = False
        self._counter = RequestCounter(warmup_s)
        self._counter.reports_errors()
        self._readings: dict[str, float] = {}
        self._protocol: Optional[str] = None
        self._handlers: dict[str, Callable[[Mapping[str, Any]], None]] = {
            "request": self._request,
            "latencies": self._latencies,
            "error": self._error,
            "reading": self._reading,
            "protocol": self._protocol_line,
            "done": self._done,
        }

    def add(self, line: Mapping[str, Any]) -> None:
        kind = line.get("type")
        handler = self._handlers.get(kind) if isinstance(kind, str) else None
        if handler is None:
            raise _InvalidLine(f"its type is {kind!r}, expected one of {', '.join(self._handlers)}")
        if self.is_done:
            raise _InvalidLine("it comes after the line of type done")
        handler(line)

    def rows_json(self) -> dict[str, Any]:
        return self._counter.rows_json(
            protocol=self._protocol, corrected=self._corrected, tool_metrics=self._readings
        )

    def _request(self, line: Mapping[str, Any]) -> None:
        us = _parse_latency(line.get("latency_us"))
        start_s = _parse_optional(line, "start_s", _parse_seconds)
        self._counter.add(
            start_s,
            None if start_s is None else start_s + us / 1e6,
            us,
            _flag(line, "ok", required=True),
            _parse_optional(line, "status", _parse_status),
            _parse_optional(line, "bytes", _parse_whole_number),
        )

    def _latencies(self, line: Mapping[str, Any]) -> None:
        values, counts = line.get("value_us"), line.get("count")
        if not isinstance(values, list) or not isinstance(counts, list):
            raise _InvalidLine("value_us and count have to be lists")
        if len(values) != len(counts):
            raise _InvalidLine(f"value_us has {len(values)} entries and count {len(counts)}")
        good = _flag(line, "ok", required=False, default=True)
        status = _parse_optional(line, "status", _parse_status)
        for us, count in zip(values, counts):
            if _parse_whole_number(count, "count"):
                self._counter.add(None, None, _parse_latency(us), good, status, count=count)

    def _error(self, line: Mapping[str, Any]) -> None:
        kind, text = line.get("class"), line.get("text", "")
        if not isinstance(kind, str) or not _CLASS.match(kind):
            raise _InvalidLine(f"class is {kind!r}, expected a word such as timeout or refused")
        if not isinstance(text, str):
            raise _InvalidLine(f"text is {text!r}, expected a text")
        count = _parse_whole_number(line.get("count", 1), "count")
        if count:
            self._counter.fail(kind, text, count)

    def _reading(self, line: Mapping[str, Any]) -> None:
        key = line.get("metric")
        if not isinstance(key, str):
            raise _InvalidLine(f"metric is {key!r}, expected a key such as script.upload_s")
        if key in self._readings:
            raise _InvalidLine(f"{key} was reported before")
        if len(self._readings) >= MAX_READINGS:
            raise _InvalidLine(f"there are more than {MAX_READINGS} readings")
        self._readings[key] = _number(line.get("value"), "value")

    def _protocol_line(self, line: Mapping[str, Any]) -> None:
        spoken = line.get("spoken")
        if spoken not in PROTOCOLS:
            raise _InvalidLine(f"spoken is {spoken!r}, expected one of {', '.join(PROTOCOLS)}")
        if self._protocol not in (None, spoken):
            raise _InvalidLine(f"spoken was {self._protocol} before")
        self._protocol = spoken

    def _done(self, line: Mapping[str, Any]) -> None:
        self.ended_s = _parse_optional(line, "ended_s", _parse_seconds)
        self._corrected = _flag(line, "corrected", required=False, default=False)
        self.is_done = True


def _parse_optional(line: Mapping[str, Any], name: str, check: Callable[[Any, str], Any]) -> Any:
    """Return None if it is missing or null."""
    value = line.get(name)
    return None if value is None else check(value, name)


def _number(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise _InvalidLine(f"{name} is {value!r}, expected a number")
    return float(value)


def _parse_seconds(value: Any, name: str) -> float:
    seconds = _number(value, name)
    if not 0 <= seconds <= MAX_LATENCY_US / 1e6:
        raise _InvalidLine(f"{name} is {value!r}, expected seconds since the load began")
    return seconds


def _parse_latency(value: Any) -> float:
    us = _number(value, "latency_us")
    if not 0 <= us <= MAX_LATENCY_US:
        raise _InvalidLine(f"a latency is {value!r}, expected microseconds")
    return us


def _parse_whole_number(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise _InvalidLine(f"{name} is {value!r}, expected a whole number from 0 on")
    return value


def _parse_status(value: Any, name: str) -> str:
    text = str(value)
    if isinstance(value, bool) or not isinstance(value, (int, str)) or not _STATUS.match(text):
        raise _InvalidLine(f"{name} is {value!r}, expected a status such as 200")
    return text


def _flag(line: Mapping[str, Any], name: str, *, required: bool, default: bool = False) -> bool:
    value = line.get(name, None if required else default)
    if not isinstance(value, bool):
        raise _InvalidLine(f"{name} is {value!r}, expected true or false")
    return value
