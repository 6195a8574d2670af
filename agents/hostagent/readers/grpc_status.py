"""gRPC's status codes, and which of them a client sets itself without a response."""

from __future__ import annotations

import functools
import re
from typing import Optional

#: Their names as in grpc-go, in the order of their numbers.
NAMES = (
    "OK", "Canceled", "Unknown", "InvalidArgument", "DeadlineExceeded", "NotFound",
    "AlreadyExists", "PermissionDenied", "ResourceExhausted", "FailedPrecondition", "Aborted",
    "OutOfRange", "Unimplemented", "Internal", "Unavailable", "DataLoss", "Unauthenticated",
)  # fmt: skip
_NUMBERS = {name: number for number, name in enumerate(NAMES)}
#: Codes that a client sets without a response; all others come from the server.
_CLIENT_CODES = frozenset(
    _NUMBERS[name] for name in ("Canceled", "Unknown", "Internal", "Unavailable")
)

#: The messages of grpc-go for them; the first match decides.
_FAILURES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, re.IGNORECASE))
    for kind, pattern in (
        ("refused", r"connection refused|actively refused"),
        ("client_fd_limit", r"too many open files"),
        ("tls", r"x509:|tls:|authentication handshake failed"),
        ("dns", r"no such host|name resolver error|produced zero addresses"),
        ("timeout", r"i/o timeout|context deadline exceeded|timed? ?out"),
        ("h2_protocol", r"server preface|unexpected HTTP status|malformed header|RST_STREAM"),
        (
            "broken",
            r"transport is closing|connection closed|connection reset|broken pipe|(?<!<)\bEOF\b|"
            r"client connection is closing|connection is draining|error reading from server|"
            r"the connection is being closed|use of closed|error while dialing|connection error|"
            r"context canceled",
        ),
    )
)


def get_code_number(name: str) -> Optional[int]:
    """Return the code of a name such as `NotFound`; None for a name that gRPC does not have."""
    return _NUMBERS.get(name)


@functools.lru_cache(maxsize=4096)
def classify_failure(code: Optional[int], text: str) -> Optional[str]:
    """Return the class of a call without a response; None if the server sent this code.

    `text` is the message of the client. An exceeded deadline is always a timeout, on both sides.
    """
    if code is None:
        return "other"
    if code == _NUMBERS["DeadlineExceeded"]:
        return "timeout"
    if code not in _CLIENT_CODES:
        return None
    return next((kind for kind, pattern in _FAILURES if pattern.search(text)), None)
