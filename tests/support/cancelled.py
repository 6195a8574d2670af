"""A case that is cancelled under load."""

from django.db.models import QuerySet

from orchestrator.accounts.members import Member
from orchestrator.runs.cancelling import cancel_case
from orchestrator.runs.models import Run, Trial
from tests.support.engine import Engine

#: Longer than a test waits for the end of the run after its cancellation.
_LONG_S = 90


def with_a_long_case(source: str) -> str:
    """Return the usual definition with two cases: a long and a short one."""
    source = source.replace("connections: [4]", f"connections: [4]\n  seconds: [{_LONG_S}, 0.6]")
    return source.replace("duration_s: 0.6", 'duration_s: "{seconds}"')


def cancel_the_long_case(
    engine: Engine, member: Member, run: Run
) -> tuple[QuerySet[Trial], QuerySet[Trial]]:
    """Cancel the long case under load. Return the trials of the long case and of the other."""
    trials = Trial.objects.filter(job__run=run)
    long, short = (trials.filter(case__parameters__seconds=each) for each in (_LONG_S, 0.6))

    def is_under_load() -> bool:
        job = run.jobs.get()
        return job.phase == "measuring" and long.filter(pk=job.current_trial).exists()

    engine.wait_for(is_under_load)
    cancel_case(member=member, run_id=run.pk, case_id=long[0].case_id)
    return long, short
