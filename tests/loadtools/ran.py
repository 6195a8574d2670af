"""A load of a tool against target.py, from its start to its reading, rows and all."""

from pathlib import Path
from typing import Any, NamedTuple

from orchestrator.loadtools.model import LoadSpec, TrialReading
from orchestrator.loadtools.registry import TOOLS

from .running import build_result, read_rows, run, tls_files

PROTOS = Path(__file__).parent / "protos"


class Ran(NamedTuple):
    reading: TrialReading
    rows: dict[str, Any]
    stderr: str


def ran(name: str, spec: LoadSpec, port: int, folder: Path) -> Ran:
    """The protos of this folder are the built tree, and 100/s is the rate of a search."""
    left = run(name, spec, port, folder, {"tree": str(PROTOS), "probe_rate": "100"})
    assert left.rc == 0, left.stderr
    rows = read_rows(name, left, spec.good_statuses)
    result = build_result(left, rate=100.0)
    return Ran(TOOLS[name].parse(spec, left.out.read_bytes(), rows, result), rows, left.stderr)


def with_tls(folder: Path) -> tuple[str, str, str]:
    """The target's arguments; `folder` gets the authority that the tool trusts."""
    _, cert, key = tls_files(folder)
    return "--tls", cert, key
