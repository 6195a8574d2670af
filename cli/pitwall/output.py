"""What a command writes to standard output: text, or with `--json` one document at its end."""

from __future__ import annotations

import json
import sys
from typing import Any, NamedTuple

from .errors import PASS


class Result(NamedTuple):
    """The end of a command. `document` follows docs/schemas/command-line.json."""

    document: Any
    status: int = PASS


class Output:
    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json

    def print_text(self, text: str, end: str = "\n") -> None:
        """Write text for people or scripts at once, unless a document follows."""
        if not self.as_json:
            sys.stdout.write(text + end)
            sys.stdout.flush()

    def print_document(self, document: Any) -> None:
        if self.as_json:
            sys.stdout.write(json.dumps(document, indent=1) + "\n")
            sys.stdout.flush()
