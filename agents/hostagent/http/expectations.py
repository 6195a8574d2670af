"""Compare a response with the expectations of a check, and describe the differences."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Optional

from ..step.plan import Check, Expected
from .content_codings import DecodingError, decode_body
from .messages import Response

_EXCERPT_CHARS = 200
_CONTEXT_CHARS = 20
#: Runs in a separate process, because some regular expressions do not terminate.
_PATTERN_PROGRAM = """\
import json, re, sys
request = json.load(sys.stdin)
print(json.dumps(re.search(request["pattern"], request["text"]) is not None))
"""


def find_problem(check: Check, response: Response) -> Optional[str]:
    """Return all differences as "actual instead of expected"; None if there is none."""
    return "; ".join(_iterate_problems(check, response)) or None


def accepts_status(check: Check, status: int) -> bool:
    return check.statuses is None or status in check.statuses


def format_statuses(check: Check) -> str:
    return " or ".join(map(str, check.statuses or ()))


def _iterate_problems(check: Check, response: Response) -> Iterator[str]:
    if response.fault is not None:
        yield response.fault
    if response.status is None:
        return
    if not accepts_status(check, response.status):
        excerpt = _format_excerpt(response)
        yield f"status {response.status} instead of {format_statuses(check)}, with {excerpt}"
        return
    if response.grpc_status is not None and check.grpc_status not in (None, response.grpc_status):
        message = response.trailers.get("grpc-message", "")
        yield f"grpc-status {response.grpc_status} ({message!r}) instead of {check.grpc_status}"
        return
    yield from _iterate_header_problems(check, response)
    if response.fault is None and check.response is not None:
        yield from filter(None, [_find_body_problem(check.response, response, check.timeout_s)])


def _iterate_header_problems(check: Check, response: Response) -> Iterator[str]:
    if check.encoding not in (None, response.encoding):
        yield f"content-encoding {response.encoding} instead of {check.encoding}"
    for name, value in check.response_headers.items():
        actual = response.headers.get(name)
        if actual is None:
            yield f"no header {name} (expected: {value!r})"
        elif actual != value:
            yield f"header {name} {actual!r} instead of {value!r}"


def _find_body_problem(expected: Expected, response: Response, timeout_s: float) -> Optional[str]:
    body, (kind, value) = response.body or b"", expected
    if kind == "length":
        return None if len(body) == value else f"a body of {len(body)} bytes instead of {value}"
    if kind == "sha256":
        actual = hashlib.sha256(body).hexdigest()
        return None if actual == value else f"a body with SHA-256 {actual} instead of {value}"
    try:
        text = decode_body(body, response.encoding or "identity").decode("utf-8", "replace")
    except DecodingError as error:
        return str(error)
    if kind == "text":
        return _describe_text_mismatch(str(value), text)
    return _find_pattern_problem(str(value), text, timeout_s)


def _describe_text_mismatch(expected: str, actual: str) -> Optional[str]:
    if actual == expected:
        return None
    if max(len(actual), len(expected)) <= _EXCERPT_CHARS:
        return f"body {actual!r} instead of {expected!r}"
    start = max(0, _measure_common_prefix(actual, expected) - _CONTEXT_CHARS)
    part = slice(start, start + _EXCERPT_CHARS)
    return f"body {actual[part]!r} instead of {expected[part]!r}, from character {start} on"


def _measure_common_prefix(first: str, second: str) -> int:
    """Return the length of the common prefix."""
    pairs = enumerate(zip(first, second))
    return next((n for n, (a, b) in pairs if a != b), min(len(first), len(second)))


def _format_excerpt(response: Response) -> str:
    body = response.body or b""
    try:
        body = decode_body(body, response.encoding or "identity")
    except DecodingError:
        return f"a body of {len(body)} bytes"
    return f"body {body[:_EXCERPT_CHARS].decode('utf-8', 'replace')!r}"


def _find_pattern_problem(pattern: str, text: str, timeout_s: float) -> Optional[str]:
    """Return None if `pattern` matches anywhere in `text`, else the problem."""
    argv = [sys.executable, "-I", "-S", "-c", _PATTERN_PROGRAM]
    request = json.dumps({"pattern": pattern, "text": text})
    try:
        done = subprocess.run(
            argv, input=request, capture_output=True, text=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired:
        return f"a body in which {pattern!r} was searched for {timeout_s:g} s, without an end"
    if done.returncode != 0:
        stderr = done.stderr.strip().splitlines()[-1:]
        return f"a body in which {pattern!r} cannot be searched for: {''.join(stderr)}"
    return None if json.loads(done.stdout) else f"body {text[:200]!r} without {pattern!r}"
