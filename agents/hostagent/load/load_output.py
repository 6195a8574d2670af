"""What a load leaves behind, and its reduction to what is kept: tool.json and rows.json."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import TrialFailed
from ..files import tail_text, write_json
from ..paths import stdout_of
from ..platform.limits import ended_with
from ..protocol import load_files
from ..readers.registry import READERS
from ..step.plan import Load, Tool

#: What a reader may raise of garbage; see readers/registry.py.
_GARBAGE = (
    ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError,
    sqlite3.Error, FileNotFoundError,
)  # fmt: skip


class Traces(NamedTuple):
    """The files of one load: {out}, {rows}, and the reduced rows."""

    out: Path
    raw: Path
    reduced: Path

    @property
    def folder(self) -> Path:
        return self.out.parent

    @property
    def words(self) -> dict[str, str]:
        return {"out": str(self.out), "rows": str(self.raw)}

    def said(self) -> str:
        """The ends of what the tool wrote to stderr and stdout."""
        texts = [tail_text(self.folder / "tool.stderr"), tail_text(stdout_of(self.out))]
        return "\n".join(text for text in texts if text.strip())

    def remove(self) -> None:
        for path in (*self, stdout_of(self.out)):
            path.unlink(missing_ok=True)


def measured(folder: Path, n: int) -> Traces:
    """Of the n-th measured load of a trial, n from 0."""
    report, rows = load_files(n)
    return Traces(folder / report, (folder / rows).with_suffix(".raw"), folder / rows)


def passing(folder: Path, name: str) -> Traces:
    """Of a load whose traces nobody keeps; none of its names is a measured load's."""
    return Traces(*(folder / f"{name}.{ending}" for ending in ("json", "raw", "reduced")))


def check_end(traces: Traces, rc: int, hung: bool) -> None:
    """TrialFailed where the tool ended by itself and tells that it failed."""
    if rc != 0 and not hung:
        raise TrialFailed(
            "tool_failed", f"the load tool ended with {ended_with(rc)}", traces.said()
        )


def reduce(traces: Traces, tool: Tool, load: Load, hung: bool = False) -> dict[str, Any]:
    """The content of rows.json, written beside a report that is known to be JSON.

    `hung`: the tool was interrupted at its wall limit, so that this is why something is missing.
    """
    try:
        rows = _read(traces, tool, load)
        if not traces.out.exists():
            raise TrialFailed("tool_failed", "the load tool left no report")
        json.loads(traces.out.read_bytes())
        write_json(traces.reduced, rows)
    except TrialFailed as failed:
        output = failed.output or traces.said()
        if hung:
            why = f"the load tool did not end within {load.wall_limit_s:g} s: {failed.message}"
            raise TrialFailed("tool_failed", why, output) from failed
        raise TrialFailed(failed.code, failed.message, output) from failed
    except _GARBAGE as error:
        raise TrialFailed("tool_failed", _unreadable(error), traces.said()) from error
    traces.raw.unlink(missing_ok=True)
    stdout_of(traces.out).unlink(missing_ok=True)
    return rows


def _read(traces: Traces, tool: Tool, load: Load) -> dict[str, Any]:
    read = READERS.get(tool.reader)
    if read is None:
        known = ", ".join(sorted(READERS))
        raise TrialFailed("internal", f"no reader is called {tool.reader!r}; there are {known}")
    return read(traces.folder, traces.out, traces.raw, load.warmup_s)


def _unreadable(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return f"the load tool left no {Path(str(error.filename)).name}"
    return f"what the load tool left cannot be read: {type(error).__name__}: {error}"
