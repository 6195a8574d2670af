"""Who reduces what a load tool left behind, by the plan's `tool.reader`.

A reader is called once a measured load, after everything of the trial was stopped:

    read(folder, out, rows, warmup_s) -> the content of rows.json (protocol.py)

`folder` is the trial's, `out` the load's {out} and `rows` its {rows}, each of which may be missing;
what the tool said on stdout is `stdout_of(out)` (paths.py). A reader may rewrite `out` smaller, or
write it where the tool said all on stdout: afterwards it is a JSON file. The caller removes `rows`.

It raises TrialFailed("tool_failed" | "output_lost", message) where it knows what is wrong. What is
garbage may raise what it likes of ValueError, LookupError, TypeError, AttributeError,
ArithmeticError, RecursionError and sqlite3.Error; the trial fails with "tool_failed" and shows what
the tool said.

A new reader is a module `read_<tool>.py` and a line here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Optional

from .ghz import read as ghz
from .h2load import read as h2load
from .k6 import read as k6
from .oha import errors as oha_errors
from .oha import read as oha
from .script import read as script
from .wrk import read as wrk

Reader = Callable[[Path, Path, Path, float], dict[str, Any]]

READERS: Mapping[str, Reader] = {
    "h2load": h2load,
    "oha": oha,
    "wrk": wrk,
    "script": script,
    "ghz": ghz,
    "k6": k6,
}

#: Where rows do not tell of errors and the report does: its number, of the whole load.
_ERRORS: Mapping[str, Callable[[Path], int]] = {"oha": oha_errors}


def count_errors(reader: str, out: Path, rows: Mapping[str, Any]) -> Optional[int]:
    """How many requests got no answer; None where neither the rows nor the report tell."""
    if rows["errors"] is not None:
        return sum(rows["errors"].values())
    return _ERRORS[reader](out) if reader in _ERRORS else None
