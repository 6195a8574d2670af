"""Each format is read as its golden file says: `<name>.rows.csv` lists every row that is due."""

import csv
import io
import json
from pathlib import Path

import pytest

from orchestrator.importers.registry import FORMATS
from orchestrator.importers.rows import Row

GOLDEN = Path(__file__).parent / "golden"
FILES = sorted(path for path in GOLDEN.iterdir() if not path.name.endswith(".rows.csv"))
COLUMNS = (
    "suite", "environment", "parameters", "metric", "statistic", "unit", "better", "value",
    "sentinel", "measured_at", "commit",
)  # fmt: skip


def find_format(path: Path) -> str:
    """`k6-handle-summary.json` is another file of the format k6."""
    return next(name for name in sorted(FORMATS, reverse=True) if path.stem.startswith(name))


def listed(rows: list[Row]) -> str:
    """Rows as CSV, to be compared and to be read."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        fields = {name: getattr(row, name) for name in COLUMNS}
        fields["parameters"] = json.dumps(dict(row.parameters))
        fields["value"] = "" if row.value is None else repr(row.value)
        fields["measured_at"] = row.measured_at.isoformat() if row.measured_at else ""
        writer.writerow(fields.values())
    return out.getvalue()


def test_every_format_has_a_golden_file() -> None:
    assert {find_format(path) for path in FILES} == set(FORMATS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_value_of_a_golden_file_is_read(path: Path) -> None:
    rows = list(FORMATS[find_format(path)].read(path.read_bytes()))
    assert listed(rows) == (GOLDEN / f"{path.stem}.rows.csv").read_text()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_unknown_value_is_empty_and_keeps_its_text(path: Path) -> None:
    for row in FORMATS[find_format(path)].read(path.read_bytes()):
        assert row.value is None or row.sentinel == ""
