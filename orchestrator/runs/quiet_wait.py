"""The wait for quiet hosts: what a user sees of it, when a job pauses, and its end on request.

A trial waits while other processes use its host (`agents/hostagent/trials/quiet_wait.py`). After
rounds without a usable block the whole job pauses.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now

from cli.pitwall.units import format_duration, format_percent
from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.services import record_audit
from orchestrator.core.errors import ConflictError
from orchestrator.loadtools.thresholds import NEIGHBOURS, THRESHOLDS
from orchestrator.runs import selectors
from orchestrator.runs.models import Job, Run
from orchestrator.runs.states import (
    COUNTED_VALIDITIES,
    JOB_ACTIVE,
    RUN_ENDED,
    JobState,
    TrialState,
    describe_run_state,
)
from orchestrator.runs.step_rounds import list_step_rounds
from orchestrator.runs.version_keys import NEXT_REVISION

#: The phase of a job whose trial waits.
WAITING_PHASE = "waiting for a quiet host"
#: The phase of a job that is queued again after disturbed rounds.
PAUSED_PHASE = "paused"
#: After this many disturbed rounds in a row a job pauses.
DISTURBED_ROUNDS = 2
#: The duration of a pause, and how often a job pauses before it measures without a further one.
PAUSE_S = 600.0
MOST_PAUSES = 3
_BY_OTHERS = frozenset(code for code, rule in THRESHOLDS.items() if rule.cause == NEIGHBOURS)


def get_limit_s(job: Job) -> float:
    """Return for how long the trials of a round together wait; 0 if they do not.

    A shared host is rarely quiet, so its trials do not wait.
    """
    waits = job.run.wait_for_quiet and not job.shared_hosts
    return float(settings.QUIET_WAIT_S) if waits else 0.0


def describe_busy_host(
    host: str, busy_share: float | None, foreign: Iterable[Mapping[str, Any]]
) -> str:
    """Return why a trial waits; `foreign` are the other processes that use the most CPU time."""
    # A host may report any name, and PostgreSQL stores no NUL byte.
    names = ", ".join(dict.fromkeys(each["name"].replace("\0", "")[:40] for each in foreign))
    mostly = f", mostly {names}" if names else ""
    share = "much" if busy_share is None else format_percent(busy_share)
    return (
        f"{host} is busy: other processes use {share} of its CPUs{mostly}. The trial waits for at "
        f"most {settings.QUIET_WAIT_S} s in this round. Stop these programs, or measure now: then "
        "trials may be suspect or invalid."
    )


def describe_pause(job: Job) -> str:
    """Return why the job should pause now; empty if it should not."""
    if not get_limit_s(job) or job.pauses >= MOST_PAUSES:
        return ""
    ended = list_step_rounds(job)[-1]
    if ended < DISTURBED_ROUNDS:
        return ""
    last = range(ended, ended - DISTURBED_ROUNDS, -1)
    if not all(_is_disturbed(job, each) for each in last):
        return ""
    host = job.host.name if job.host else "a host"
    return (
        f"Paused: the last {DISTURBED_ROUNDS} rounds have no usable block, because other processes "
        f"used {host}. The job continues in {format_duration(PAUSE_S)}. Stop these programs, or "
        "measure now: then the job does not pause or wait again."
    )


def end_quiet_waits(*, member: Member, run_id: UUID) -> Run:
    """Let the trials of a run start at once, also while other processes use a host."""
    member.require(Role.MEMBER, to="end the wait of a run")
    run = selectors.load_run(member, run_id)
    if run.state in RUN_ENDED:
        raise ConflictError(f"this run has already ended: {describe_run_state(run.state)}")
    with transaction.atomic():
        Run.objects.filter(pk=run.pk).update(wait_for_quiet=False)
        run.jobs.update(revision=NEXT_REVISION)
        run.jobs.filter(state__in=JOB_ACTIVE, phase=WAITING_PHASE).update(poll_at=Now())
        run.jobs.filter(state=JobState.QUEUED, phase=PAUSED_PHASE).update(not_before=None)
        record_audit(member=member, action="run.wait_ended", subject=run.pk)
    run.refresh_from_db()
    return run


def _is_disturbed(job: Job, number: int) -> bool:
    """Return whether a round has no usable block, and other processes are a reason."""
    trials = job.trials.filter(round=number, state=TrialState.MEASURED)
    usable: dict[int, list[bool]] = defaultdict(list)
    codes: set[str] = set()
    for case, validity, reasons in trials.values_list("case_id", "validity", "reasons"):
        usable[case].append(validity in COUNTED_VALIDITIES)
        codes |= _parse_codes(reasons)
    return bool(usable) and not any(map(all, usable.values())) and bool(codes & _BY_OTHERS)


def _parse_codes(reasons: Iterable[str] | None) -> set[str]:
    return {reason.partition(":")[0] for reason in reasons or ()}
