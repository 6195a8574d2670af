"""The text of a file that a command is given."""

import sys
from pathlib import Path

from orchestrator.core.errors import InvalidRequestError


def text_of(name: str) -> str:
    """All of it; `-` is standard input. InvalidRequestError where it cannot be read as text."""
    try:
        content = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise InvalidRequestError(f"it cannot be read: {error.strerror}") from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidRequestError("it is no UTF-8 text: give a file of JSON") from error
