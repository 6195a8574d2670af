"""A worker without Celery, as a separate process: it advances any due job.

    python -m tests.support.lone_worker JOB CLAIM_S CLOCK_S

It ends when the job has ended. Claims last CLAIM_S seconds, and the process' clock is ahead by
CLOCK_S.
"""

import sys
import time
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import django


def shift_clock(by_s: float) -> None:
    """Shift `utc_now` for all callers; the monotonic clock is unchanged."""
    from orchestrator.core import clock

    class Shifted:
        @staticmethod
        def now(zone: Any = None) -> datetime:
            return datetime.now(zone or UTC) + timedelta(seconds=by_s)

    clock.datetime = Shifted  # type: ignore[attr-defined]


def main(job_id: UUID, claim_s: float, clock_s: float) -> None:
    django.setup()
    from orchestrator.core import heartbeat
    from orchestrator.dispatch import engine
    from orchestrator.runs import claims
    from orchestrator.runs.models import Job
    from orchestrator.runs.states import JOB_ENDED

    shift_clock(clock_s)
    claims.CLAIM_S = claim_s
    heartbeat.BEAT_S = claim_s / 10
    while Job.objects.get(pk=job_id).state not in JOB_ENDED:
        for due in claims.load_due_job_ids():
            engine.advance(due)
        time.sleep(0.05)


if __name__ == "__main__":
    main(UUID(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]))
