"""Whether an answer is the expected one, and the words for it where it is not."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Optional

from ..step.plan import Check, Expected
from .content_codings import Undecodable, decoded
from .messages import Answer

_SHOWN = 200
_BEFORE = 20
#: A process of its own: some regular expressions never come to an end.
_PATTERN_PROGRAM = """\
import json, re, sys
request = json.load(sys.stdin)
print(json.dumps(re.search(request["pattern"], request["text"]) is not None))
"""


def problem_of(check: Check, answer: Answer) -> Optional[str]:
    """None where the answer is right; else all that is wrong with it, as what it was instead."""
    return "; ".join(_problems(check, answer)) or None


def _problems(check: Check, answer: Answer) -> Iterator[str]:
    if answer.fault is not None:
        yield answer.fault
    if answer.status is None:
        return
    if check.status not in (None, answer.status):
        yield f"status {answer.status} instead of {check.status}, with {_excerpt(answer)}"
        return
    if answer.grpc_status is not None and check.grpc_status not in (None, answer.grpc_status):
        message = answer.trailers.get("grpc-message", "")
        yield f"grpc-status {answer.grpc_status} ({message!r}) instead of {check.grpc_status}"
        return
    yield from _header_problems(check, answer)
    if answer.fault is None and check.response is not None:
        yield from filter(None, [_body_problem(check.response, answer, check.timeout_s)])


def _header_problems(check: Check, answer: Answer) -> Iterator[str]:
    if check.encoding not in (None, answer.encoding):
        yield f"content-encoding {answer.encoding} instead of {check.encoding}"
    for name, value in check.response_headers.items():
        came = answer.headers.get(name)
        if came is None:
            yield f"no header {name} (expected: {value!r})"
        elif came != value:
            yield f"header {name} {came!r} instead of {value!r}"


def _body_problem(expected: Expected, answer: Answer, timeout_s: float) -> Optional[str]:
    body, (kind, value) = answer.body or b"", expected
    if kind == "length":
        return None if len(body) == value else f"a body of {len(body)} bytes instead of {value}"
    if kind == "sha256":
        came = hashlib.sha256(body).hexdigest()
        return None if came == value else f"a body with SHA-256 {came} instead of {value}"
    try:
        text = decoded(body, answer.encoding or "identity").decode("utf-8", "replace")
    except Undecodable as error:
        return str(error)
    if kind == "text":
        return _text_problem(str(value), text)
    return _pattern_problem(str(value), text, timeout_s)


def _text_problem(expected: str, came: str) -> Optional[str]:
    if came == expected:
        return None
    if max(len(came), len(expected)) <= _SHOWN:
        return f"body {came!r} instead of {expected!r}"
    start = max(0, _common(came, expected) - _BEFORE)
    part = slice(start, start + _SHOWN)
    return f"body {came[part]!r} instead of {expected[part]!r}, from character {start} on"


def _common(one: str, other: str) -> int:
    """How many characters both begin with."""
    pairs = enumerate(zip(one, other))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))


def _excerpt(answer: Answer) -> str:
    body = answer.body or b""
    try:
        body = decoded(body, answer.encoding or "identity")
    except Undecodable:
        return f"a body of {len(body)} bytes"
    return f"body {body[:_SHOWN].decode('utf-8', 'replace')!r}"


def _pattern_problem(pattern: str, text: str, timeout_s: float) -> Optional[str]:
    """None where `pattern` is found anywhere in `text`; else why not."""
    argv = [sys.executable, "-I", "-S", "-c", _PATTERN_PROGRAM]
    request = json.dumps({"pattern": pattern, "text": text})
    try:
        done = subprocess.run(
            argv, input=request, capture_output=True, text=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired:
        return f"a body in which {pattern!r} was searched for {timeout_s:g} s, without an end"
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()[-1:]
        return f"a body in which {pattern!r} cannot be searched for: {''.join(said)}"
    return None if json.loads(done.stdout) else f"body {text[:200]!r} without {pattern!r}"
