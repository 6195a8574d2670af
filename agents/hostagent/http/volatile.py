"""Digests of bodies without their volatile parts, which regular expressions of a team describe."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Sequence

from .content_codings import DecodingError, decode_body

_LIMIT_S = 10.0
#: Runs in a separate process, because some regular expressions do not terminate.
_PROGRAM = """\
import base64, hashlib, json, re, sys
request = json.load(sys.stdin)
patterns = [re.compile(each) for each in request["patterns"]]
digests = []
for body in request["bodies"]:
    text = base64.b64decode(body).decode("utf-8", "surrogateescape")
    for pattern in patterns:
        text = pattern.sub("", text)
    rest = text.encode("utf-8", "surrogateescape")
    digests.append([hashlib.sha256(rest).hexdigest(), len(rest)])
print(json.dumps(digests))
"""


class MaskingError(Exception):
    """The patterns cannot be applied; the message contains the reason."""


def digest_without(
    patterns: Sequence[str], bodies: Sequence[tuple[bytes, str]]
) -> list[tuple[str, int]]:
    """Return SHA-256 and length of each decoded body without the parts that a pattern matches.

    `bodies`: each with its content coding; one that cannot be decoded is used as received.
    """
    request = {
        "patterns": list(patterns),
        "bodies": [base64.b64encode(_decode(*each)).decode() for each in bodies],
    }
    argv = [sys.executable, "-I", "-S", "-c", _PROGRAM]
    try:
        done = subprocess.run(
            argv, input=json.dumps(request), capture_output=True, text=True, timeout=_LIMIT_S,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise MaskingError(
            f"the patterns of volatile did not end within {_LIMIT_S:g} s: simplify them"
        ) from error
    if done.returncode != 0:
        reason = "".join(done.stderr.strip().splitlines()[-1:])
        raise MaskingError(f"the patterns of volatile cannot be applied: {reason[:300]}")
    return [(sha256, length) for sha256, length in json.loads(done.stdout)]


def _decode(body: bytes, encoding: str) -> bytes:
    try:
        return decode_body(body, encoding)
    except DecodingError:
        return body
