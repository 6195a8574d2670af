"""The files of a load, and their reduction to tool.json and rows.json."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any, NamedTuple, Optional

from ..errors import TrialFailed
from ..files import read_tail_text, write_json
from ..paths import build_stdout_path
from ..platform.limits import describe_exit
from ..protocol import load_files
from ..readers.registry import READERS
from ..redaction import Redactor
from ..step.plan import Load, Tool

#: The errors that a reader may raise for invalid output; see readers/registry.py.
_GARBAGE = (
    ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError,
    sqlite3.Error, FileNotFoundError,
)  # fmt: skip


class LoadFiles(NamedTuple):
    """The files of one load: {out}, {rows}, and the reduced rows."""

    out: Path
    raw: Path
    reduced: Path

    @property
    def folder(self) -> Path:
        return self.out.parent

    @property
    def placeholders(self) -> dict[str, str]:
        return {"out": str(self.out), "rows": str(self.raw)}

    def output(self) -> str:
        """Return the tails of stderr and stdout of the tool."""
        texts = [
            read_tail_text(self.folder / "tool.stderr"),
            read_tail_text(build_stdout_path(self.out)),
        ]
        return "\n".join(text for text in texts if text.strip())

    def remove(self) -> None:
        for path in (*self, build_stdout_path(self.out)):
            path.unlink(missing_ok=True)


def get_measured_files(folder: Path, n: int) -> LoadFiles:
    """Return the files of the n-th measured load of a trial, n from 0."""
    report, rows = load_files(n)
    return LoadFiles(folder / report, (folder / rows).with_suffix(".raw"), folder / rows)


def get_unmeasured_files(folder: Path, name: str) -> LoadFiles:
    """Return the files of a load that are removed after it; no name is that of a measured load."""
    return LoadFiles(*(folder / f"{name}.{ending}" for ending in ("json", "raw", "reduced")))


def check_exit_code(files: LoadFiles, rc: int, hung: bool) -> None:
    """Raise TrialFailed if the tool ended by itself with an error."""
    if rc != 0 and not hung:
        raise TrialFailed(
            "tool_failed", f"the load tool ended with {describe_exit(rc)}", files.output()
        )


def reduce_output(
    files: LoadFiles,
    tool: Tool,
    load: Load,
    hung: bool = False,
    redactor: Optional[Redactor] = None,
) -> dict[str, Any]:
    """Write and return the content of rows.json, after the check that the report is JSON.

    `hung`: the tool was interrupted at its wall limit, which explains missing output.
    """
    try:
        rows = _read(files, tool, load)
        if redactor is not None:
            rows = redactor.redact_json(rows)
        if not files.out.exists():
            raise TrialFailed("tool_failed", "the load tool left no report")
        json.loads(files.out.read_bytes())
        write_json(files.reduced, rows)
    except TrialFailed as failed:
        output = failed.output or files.output()
        if hung:
            why = f"the load tool did not end within {load.wall_limit_s:g} s: {failed.message}"
            raise TrialFailed("tool_failed", why, output) from failed
        raise TrialFailed(failed.code, failed.message, output) from failed
    except _GARBAGE as error:
        raise TrialFailed("tool_failed", _describe_error(error), files.output()) from error
    files.raw.unlink(missing_ok=True)
    build_stdout_path(files.out).unlink(missing_ok=True)
    return rows


def _read(files: LoadFiles, tool: Tool, load: Load) -> dict[str, Any]:
    read = READERS.get(tool.reader)
    if read is None:
        names = ", ".join(sorted(READERS))
        raise TrialFailed("internal", f"unknown reader {tool.reader!r}; the readers are {names}")
    return read(files.folder, files.out, files.raw, load.warmup_s, load.good_statuses)


def _describe_error(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return f"the load tool left no {Path(str(error.filename)).name}"
    return f"the output of the load tool cannot be read: {type(error).__name__}: {error}"
