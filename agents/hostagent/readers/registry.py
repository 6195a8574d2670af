"""The readers of load tools by name, as the plan gives it in `tool.reader`.

A reader is called once per measured load, after all processes of the trial were stopped:

    read(folder, out, rows, warmup_s, good_statuses) -> the content of rows.json (protocol.py)

`folder` is the trial's, `out` the load's {out} and `rows` its {rows}. Each file may be missing.
`good_statuses`: the HTTP statuses that count as good. wrk, ghz and scripts decide themselves. The
tool's stdout is `build_stdout_path(out)` (paths.py). Afterwards `out` must be a JSON file: a reader
may rewrite it smaller, or write it if the tool reports on stdout. The caller removes `rows`.

It raises TrialFailed("tool_failed" | "output_lost", message) for a known problem. For other invalid
output it may raise ValueError, LookupError, TypeError, AttributeError, ArithmeticError,
RecursionError or sqlite3.Error; the trial fails with "tool_failed" and shows the tool's output.

A new reader is a module `<tool>.py` and an entry of READERS.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Optional

from .ghz import read as ghz
from .h2load import read as h2load
from .k6 import read as k6
from .oha import count_errors as count_oha_errors
from .oha import read as oha
from .script import read as script
from .wrk import read as wrk

Reader = Callable[[Path, Path, Path, float, Collection[int]], dict[str, Any]]

READERS: Mapping[str, Reader] = {
    "h2load": h2load,
    "oha": oha,
    "wrk": wrk,
    "script": script,
    "ghz": ghz,
    "k6": k6,
}

#: Readers whose rows have no errors: they count the errors of the whole load in the report.
_ERRORS: Mapping[str, Callable[[Path], int]] = {"oha": count_oha_errors}


def count_errors(reader: str, out: Path, rows: Mapping[str, Any]) -> Optional[int]:
    """Return the number of requests without a response; None if rows and report lack it."""
    if rows["errors"] is not None:
        return sum(rows["errors"].values())
    return _ERRORS[reader](out) if reader in _ERRORS else None
