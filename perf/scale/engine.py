"""The runs of a part: each has one job, and compares a commit with the one before.

Only some of the trials have a row of the engine; their ids are those of their readings.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np
from django.db.models import F
from numpy.typing import NDArray

from orchestrator.core.clock import utc_now
from orchestrator.core.ids import new_id
from orchestrator.measurements.comparability import hash_block
from orchestrator.runs.models import HostRole, Job, Placement, Run, Trial, Variant
from perf.scale.catalog import BEGAN, EVERY, Catalog, Part
from perf.scale.copy_rows import build_reading_ids

LASTED = timedelta(minutes=20)
BATCH = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """`jobs[place]` measured the commit at `place` and the one before; that of 0 has no row."""

    jobs: Sequence[UUID]
    variants: Sequence[tuple[int, int] | None]

    def blocks(self, trials: int) -> NDArray[np.int64]:
        """Return `[place, trial]`: half in the rounds of its own run, half in the next one."""
        rounds = range(1, trials // 2 + 1)
        numbers = np.array([[hash_block(job, each) for each in rounds] for job in self.jobs])
        return np.hstack([numbers[:-1], numbers[1:]])


def make_runs(catalog: Catalog, part: Part) -> Runs:
    jobs = [new_id() for _ in range(len(part.commits) + 1)]
    places = range(1, len(part.commits))
    host = part.cells[0][1]
    runs = [_run(catalog, part, place) for place in places]
    Run.objects.bulk_create(runs, batch_size=BATCH)
    # Their creation time is when they started, not now.
    Run.objects.filter(definition=part.definition).update(created_at=F("started_at"))
    pairs = [
        (Variant(run=run, commit_id=part.commits[place - 1], position=0),
         Variant(run=run, commit_id=part.commits[place], position=1))
        for run, place in zip(runs, places, strict=True)
    ]  # fmt: skip
    Variant.objects.bulk_create([each for pair in pairs for each in pair], batch_size=BATCH)
    rows = [
        Job(
            id=jobs[place], run=run, host=host, state="finished", expected_s=600, round=1,
            started_at=_compute_start(place), ended_at=_compute_start(place) + LASTED,
        )
        for run, place in zip(runs, places, strict=True)
    ]  # fmt: skip
    Job.objects.bulk_create(rows, batch_size=BATCH)
    Placement.objects.bulk_create(
        [Placement(job=job, role=HostRole.TARGET, wanted_host=host, host=host) for job in rows],
        batch_size=BATCH,
    )
    return Runs(jobs=jobs, variants=[None, *((a.pk, b.pk) for a, b in pairs)])


def iterate_trial_lines(part: Part, runs: Runs) -> Iterator[str]:
    """Yield the trials of all runs as lines of a text COPY, in the order of `columns`."""
    fixed = _build_fixed()
    half = part.trials // 2
    for place in range(1, len(part.commits)):
        known = part.full + place > len(part.commits)
        cells = min(part.own_cells, len(part.cells) if known else part.line)
        ids = [_build_ids(part, place - 1, cells), _build_ids(part, place, cells)]
        position = 0
        for round_number in range(half):
            for cell in range(cells):
                for variant in (0, 1):
                    number = cell * part.trials + round_number + (0 if variant else half)
                    yield _format_line(
                        fixed,
                        id=ids[variant][number],
                        job_id=runs.jobs[place],
                        variant_id=(runs.variants[place] or (0, 0))[variant],
                        case_id=part.cells[cell][0],
                        host_id=part.cells[cell][1].pk,
                        round=round_number + 1,
                        position=position,
                        started_at=_compute_start(place).isoformat(),
                        ended_at=_compute_start(place).isoformat(),
                    )
                    position += 1


def list_columns() -> list[str]:
    return [str(field.column) for field in Trial._meta.concrete_fields]


def _run(catalog: Catalog, part: Part, place: int) -> Run:
    return Run(
        waits_until=utc_now() + timedelta(days=7),
        team=catalog.member.team,
        definition=part.definition,
        trigger="api",
        requested_by=catalog.member.user,
        rounds=part.trials // 2,
        seed=place,
        state="finished",
        started_at=_compute_start(place),
        ended_at=_compute_start(place) + LASTED,
    )


def _compute_start(place: int) -> datetime:
    return BEGAN + place * EVERY


def _build_ids(part: Part, place: int, cells: int) -> list[UUID]:
    count = cells * part.trials
    drawn = build_reading_ids(np.full(count, part.commits[place]), np.arange(count))
    return [UUID(bytes=each.tobytes()) for each in drawn]


def _build_fixed() -> dict[str, str]:
    """Return the values that all trials have in common."""
    row = Trial(
        state="measured", validity="valid", expected_s=6.0, attempt=1, round=1, position=0,
        provenance={"tool": {"name": "oha", "version": "1.10.0"}, "argv": ["oha", "--no-tui"]},
    )  # fmt: skip
    return {
        str(field.column): _format_value(getattr(row, field.attname))
        for field in Trial._meta.concrete_fields
    }


def _format_line(fixed: dict[str, str], **own: Any) -> str:
    return "\t".join({**fixed, **{name: str(value) for name, value in own.items()}}.values()) + "\n"


def _format_value(value: Any) -> str:
    if value is None:
        return r"\N"
    return json.dumps(value) if isinstance(value, dict | list) else str(value)
