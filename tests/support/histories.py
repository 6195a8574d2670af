"""Histories of other tools, of the same shape as real files, and their import by a worker."""

import json
import zipfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

from orchestrator.accounts.members import Member
from orchestrator.importers.history_values import HistoryOptions
from orchestrator.measurements.history_import import queue_history, start_history
from orchestrator.measurements.history_steps import FETCHING
from orchestrator.measurements.import_steps import import_some
from orchestrator.regressions.segmentation import detect_next_series
from orchestrator.results.models import ResultImport
from tests.support.fetches import run_fetches, wait_for_fetches

START = datetime(2025, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def build_data_js(
    shas: Sequence[str],
    *,
    names: Sequence[str] = ("hello_world_16",),
    shift_at: int | None = None,
    unit: str = "ns/iter",
    suite: str = "pipeline",
    start: datetime = START,
    step: timedelta = DAY,
) -> bytes:
    """Return a `data.js` of github-action-benchmark with one entry per commit, a `step` apart.

    From the commit `shift_at` on, the values are 20 % higher.
    """
    entries = []
    for number, sha in enumerate(shas):
        base = 60_000 + 30 * (number % 5)
        factor = 1.2 if shift_at is not None and number >= shift_at else 1.0
        moment = start + number * step
        benches = [
            {"name": name, "value": round((base + place) * factor), "range": "± 300", "unit": unit}
            for place, name in enumerate(names)
        ]
        entries.append(
            {
                "commit": {
                    "author": {"email": "a@example.org", "name": "Ada", "username": "ada"},
                    "id": sha,
                    "message": f"Change {number}\n\nMore words.",
                    "timestamp": moment.isoformat(),
                    "url": f"https://example.org/commit/{sha}",
                },
                "date": int(moment.timestamp() * 1000),
                "tool": "cargo",
                "benches": benches,
            }
        )
    whole = {"lastUpdate": 1, "repoUrl": "https://example.org", "entries": {suite: entries}}
    return b"window.BENCHMARK_DATA = " + json.dumps(whole, indent=1).encode()


def build_frameworks(count: int, *, levels: Sequence[int] = (64, 256)) -> tuple[bytes, int]:
    """Return a `data.json` of the-benchmarker, and the number of its known values."""
    labels = {"percentile50": 0.01, "total_requests_per_s": 1000.0, "average_latency": -1.0}
    metrics: list[dict[str, Any]] = [
        {"framework_id": framework, "level": level, "label": label, "value": value + framework}
        if value > 0
        else {"framework_id": framework, "level": level, "label": label, "value": value}
        for framework in range(1, count + 1)
        for level in levels
        for label, value in labels.items()
    ]
    frameworks = [
        {"id": number, "version": 0.5 + number, "label": f"f{number}", "language": "go"}
        for number in range(1, count + 1)
    ]
    whole = {
        "metrics": metrics,
        "frameworks": frameworks,
        "languages": [],
        "updated_at": "2026-02-11 23:25:12 UTC",
        "hardware": {"cpus": 16, "cpu_name": "A CPU"},
    }
    return json.dumps(whole).encode(), sum(each["value"] > 0 for each in metrics)


def build_zip(files: dict[str, bytes]) -> bytes:
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


def queue_content(
    member: Member,
    content: bytes,
    folder: Path,
    *,
    name: str = "data.js",
    project: str = "server",
    **options: Any,
) -> ResultImport:
    path = folder / "upload"
    path.write_bytes(content)
    return queue_history(
        member=member,
        path=path,
        project=project,
        name=name,
        options=HistoryOptions(**options),
    )


def run_imports() -> None:
    """Execute all steps as the tasks do, and the fetches that they request."""
    while import_some():
        waiting = ResultImport.objects.filter(state="running", preview=FETCHING)
        if waiting.exists():
            run_fetches()
            wait_for_fetches()
            waiting.update(claimed_until=None)


def detect_all() -> None:
    while detect_next_series():
        pass


def import_history(
    member: Member, content: bytes, folder: Path, *, unknown: str = "keep", **options: Any
) -> ResultImport:
    """Import a history up to its end, and search it for changes."""
    row = queue_content(member, content, folder, **options)
    run_imports()
    row.refresh_from_db()
    assert row.state == "ready", row.faults
    start_history(member=member, import_id=row.pk, unknown_commits=unknown)
    run_imports()
    detect_all()
    row.refresh_from_db()
    return row
