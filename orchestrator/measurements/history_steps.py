"""The steps of a worker that import a history: the preview, and the conversion to results."""

import gzip
from collections.abc import Callable, Iterable
from datetime import timedelta
from io import BytesIO
from pathlib import Path

from django.db import transaction

from orchestrator.accounts.members import Member
from orchestrator.measurements.history_import import (
    convert_plan,
    describe_fetch_problem,
    is_fetch_needed,
    is_fetch_running,
    preview_plan,
    read_plan,
)
from orchestrator.measurements.imports import PART_BYTES
from orchestrator.measurements.incoming import ResultIn
from orchestrator.results.models import ImportPart, ImportState, ResultImport, UnknownCommits

#: Store fields of the import; it fails if another worker has taken over the import.
Record = Callable[..., None]

#: Pause between two checks whether a fetch has ended.
FETCH_PAUSE = timedelta(seconds=1)
#: The preview of an import that waits for a fetch.
FETCHING = {"fetching": True}
_PROGRESS = {"tries": 0, "faults": []}


def run_history_step(
    row: ResultImport, member: Member, path: Path, record: Record
) -> timedelta | None:
    """Write the preview, or convert a started import; return the pause before the next step."""
    if row.unknown_commits:
        _convert(row, member, path, record)
        return None
    if row.preview == FETCHING and is_fetch_running(row, member):
        record(**_PROGRESS)
        return FETCH_PAUSE
    plan = read_plan(row, member, path)
    if is_fetch_needed(row, plan):
        record(preview=FETCHING, **_PROGRESS)
        return FETCH_PAUSE
    problem = describe_fetch_problem(row, plan.project) if plan.has_unknown_names else ""
    preview = preview_plan(plan, fetch_problem=problem)
    record(state=ImportState.READY, preview=preview, **_PROGRESS)
    return None


def _convert(row: ResultImport, member: Member, path: Path, record: Record) -> None:
    """Replace the file by its results in Pitwall's format."""
    plan = read_plan(row, member, path)
    keep = row.unknown_commits == UnknownCommits.KEEP
    content = _pack(convert_plan(member, plan, keep_unknown=keep))
    parts = [content[start : start + PART_BYTES] for start in range(0, len(content), PART_BYTES)]
    with transaction.atomic():
        record(converted=True, **_PROGRESS)
        ImportPart.objects.filter(result_import=row).delete()
        ImportPart.objects.bulk_create(
            ImportPart(result_import=row, number=number, content=part)
            for number, part in enumerate(parts)
        )


def _pack(results: Iterable[ResultIn]) -> bytes:
    packed = BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as file:
        for each in results:
            file.write(each.model_dump_json(exclude_defaults=True).encode() + b"\n")
    return packed.getvalue()
