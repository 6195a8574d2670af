"""The text of a file that is an argument of a command."""

import sys
from pathlib import Path

from orchestrator.core.errors import InvalidRequestError


def read_command_file(name: str) -> str:
    """Return the whole text; `-` is standard input. InvalidRequestError if it cannot be read."""
    try:
        content = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise InvalidRequestError(f"it cannot be read: {error.strerror}") from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidRequestError("it is not UTF-8 text: pass a JSON file") from error
