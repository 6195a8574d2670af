"""Records of builds: a row per commit, recipe, host and job, with the log as far as read."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import BigIntegerField, F, Func, Q, Sum, Value
from django.db.models.functions import Concat

from orchestrator.benchmarks.models import Commit
from orchestrator.core.spans import record_past_span
from orchestrator.dispatch.agent import AgentError
from orchestrator.dispatch.job_hosts import HostSession
from orchestrator.dispatch.plan import MAX_ATTEMPTS
from orchestrator.dispatch.rounds import build_step_id
from orchestrator.measurements.build_provenance import read_digest
from orchestrator.runs import claims
from orchestrator.runs.models import Build, Job
from orchestrator.runs.states import BuildState

#: The limits in bytes for the log of a build, and for all logs of a job. A longer log ends with a
#: note.
LOG_LIMIT = 2_000_000
JOB_LOG_LIMIT = 20_000_000
#: The limit of calls for one log in one poll; they suffice for a log of maximum size.
LOG_CALLS = 40
_CUT = "\n… the rest of this log was not kept\n"


def record_build_start(
    job: Job, session: HostSession, event: Mapping[str, Any], at: datetime
) -> None:
    """Record the start of a build. Later rounds find it in the cache and report it again."""
    if _filter_builds(job, session, event).exists():
        return
    _check_number(job, session)
    with transaction.atomic():
        claims.update_job(job)
        Build.objects.create(
            job=job,
            host=session.host,
            commit=_load_commit(job, event),
            recipe=_parse_recipe(event),
            label=str(event.get("label") or "")[:200],
            started_at=at,
        )


def record_build_done(
    job: Job, session: HostSession, event: Mapping[str, Any], at: datetime
) -> None:
    _end_build(
        job,
        session,
        event,
        at,
        state=BuildState.DONE,
        cached=bool(event.get("cached")),
        seconds=event.get("seconds"),
        installed=str(event.get("installed") or "")[:64],
        **_read_digests(event),
    )


def _read_digests(event: Mapping[str, Any]) -> dict[str, str]:
    digests = event.get("digests")
    given = digests if isinstance(digests, Mapping) else {}
    return {
        "source_digest": read_digest(given.get("source")),
        "digest": read_digest(given.get("build")),
    }


def record_build_failure(
    job: Job, session: HostSession, event: Mapping[str, Any], at: datetime
) -> None:
    message = str(event.get("message"))[:4000]
    _end_build(job, session, event, at, state=BuildState.FAILED, message=message)


def read_logs(job: Job, session: HostSession) -> None:
    """Read more of the logs of the current builds on this host."""
    going_on = Build.objects.filter(job=job, host=session.host, state=BuildState.BUILDING)
    for build in going_on.select_related("commit"):
        _read_log(job, session, build)


def _end_build(
    job: Job, session: HostSession, event: Mapping[str, Any], at: datetime, **changes: Any
) -> None:
    build = _filter_builds(job, session, event).filter(state=BuildState.BUILDING).first()
    if build is not None:
        if not changes.get("cached"):
            record_past_span("build", build.started_at, at, commit=build.commit.sha)
            _read_log(job, session, build)
        with transaction.atomic():
            claims.update_job(job)
            Build.objects.filter(pk=build.pk).update(**changes)


def _read_log(job: Job, session: HostSession, build: Build) -> None:
    """Read more of a log, within its limits.

    The conditional UPDATE keeps two readers from appending the same text.
    """
    room = _measure_log_room(job, build)
    for _ in range(LOG_CALLS):
        if room <= 0:
            return
        text, offset = session.agent.log(
            str(job.pk), build_step_id(job), build.agent_id, build.log_offset
        )
        if offset <= build.log_offset:
            return
        came = text.encode()
        kept = text if len(came) < room else came[:room].decode(errors="ignore") + _CUT
        room -= len(came)
        mine = Build.objects.filter(pk=build.pk, log_offset=build.log_offset)
        mine.update(log=Concat(F("log"), Value(kept)), log_offset=offset)
        build.log_offset = offset


def _measure_log_room(job: Job, build: Build) -> int:
    """Return how many bytes may still be added to the log."""
    size = Func(F("log"), function="OCTET_LENGTH", output_field=BigIntegerField())
    kept = Build.objects.filter(job=job).aggregate(
        own=Sum(size, filter=Q(pk=build.pk)), of_job=Sum(size)
    )
    return min(LOG_LIMIT - (kept["own"] or 0), JOB_LOG_LIMIT - (kept["of_job"] or 0))


def _check_number(job: Job, session: HostSession) -> None:
    """Check the number of builds: at most those of each commit and case, in each attempt."""
    pairs = job.trials.order_by().values("variant", "case").distinct().count()
    most = MAX_ATTEMPTS * pairs * job.run.builds
    if Build.objects.filter(job=job, host=session.host).count() >= most:
        raise AgentError(
            f"its journal has more builds than the {most} that the job makes at most; "
            "did something other than the agent write it?"
        )


def _filter_builds(job: Job, session: HostSession, event: Mapping[str, Any]) -> Any:
    return Build.objects.filter(
        job=job, host=session.host, commit__sha=str(event["commit"]), recipe=_parse_recipe(event)
    ).select_related("commit")


def _parse_recipe(event: Mapping[str, Any]) -> str:
    """Return the recipe, the part of a build's id after the commit."""
    return str(event["build"]).rpartition("-")[2][:64]


def _load_commit(job: Job, event: Mapping[str, Any]) -> Commit:
    sha = str(event["commit"])
    variant = job.run.variants.select_related("commit").filter(commit__sha=sha).first()
    if variant is None:
        raise AgentError(f"its journal has a build of {sha[:40]!r}, which is not of the job")
    return variant.commit
