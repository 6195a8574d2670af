"""The live panel of a run: the context of its parts, and the tag that changes with them."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.http import HttpRequest

from orchestrator.accounts.members import Member
from orchestrator.comparisons.verdict_cache import VerdictCard, load_verdict_cards
from orchestrator.core.clock import utc_now
from orchestrator.core.ids import hash_value
from orchestrator.core.page_cache import get_or_make_part
from orchestrator.measurements.cpu_traces import load_cpu_traces
from orchestrator.measurements.removals import load_run_removals
from orchestrator.measurements.run_numbers import load_run_summary
from orchestrator.measurements.validity_issues import RunValidity, load_run_validity
from orchestrator.reports.saved_reports import load_saved_reports
from orchestrator.retention.pins import find_pin
from orchestrator.runs.hosts_live import HostProgress, build_host_progress
from orchestrator.runs.job_details import JobDetails
from orchestrator.runs.models import Job, Run, Trial
from orchestrator.runs.selectors import RunProgress, load_trials
from orchestrator.runs.states import JOB_ACTIVE, RUN_ENDED, RunState, TrialState
from orchestrator.web.forms import build_benchmark_key
from orchestrator.web.runs.case_cells import build_cases_context
from orchestrator.web.runs.trials_table import build_trials_table
from orchestrator.web.sparklines import CpuSparkline, build_cpu_sparkline

LATEST_TRIALS = 12
#: How often the verdicts of a running run are computed at most.
VERDICT_STEPS = 400
#: The most changed cases on the card of a contender.
CHANGES_SHOWN = 3
#: The kind of notice that shows the message of a run in this state; otherwise it is information.
MESSAGE_KINDS = {RunState.FAILED: "error", RunState.NO_DATA: "warning"}
Details = Mapping[UUID, JobDetails]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostView:
    """A host with the details of its jobs: (progress, details); the running job is separate."""

    at: HostProgress
    cpu: CpuSparkline | None
    failed: Trial | None
    current: tuple[Any, JobDetails]
    others: tuple[tuple[Any, JobDetails], ...]


def build_live_context(
    request: HttpRequest, member: Member, run: Run, now: RunProgress, details: Details
) -> dict[str, Any]:
    """Return the context. `request` selects the cases: `?cases=failed&page=2`."""
    done = load_trials(run).filter(state__in=[TrialState.MEASURED, TrialState.FAILED])
    cards = _load_cards(member, run, now)
    return {
        "run": run,
        "progress": now,
        "hosts": _build_host_views(now, details),
        "measured": now.trials_finished - now.trials_not_needed,
        "ended": run.state in RUN_ENDED,
        "message_kind": MESSAGE_KINDS.get(RunState(run.state), "info"),
        "poll_headers": json.dumps({"If-None-Match": hash_panel(now, details)}),
        "took_s": _compute_duration_s(run),
        "contenders": _build_contenders(run, cards),
        "with_verdicts": bool(cards),
        "summary": load_run_summary(run) if len(run.variants.all()) == 1 else None,
        "baseline": run.variants.all()[0],
        "validity": load_run_validity([run.pk])[run.pk],
        "table": build_trials_table(
            run, list(done.order_by("-ended_at", "-position")[:LATEST_TRIALS])
        ),
        "benchmark_key": build_benchmark_key(run.definition.benchmark),
        "removed": list(load_run_removals(run.pk).values()),
        "pin": find_pin(run) if run.state in RUN_ENDED else None,
        "reports": load_saved_reports(member).filter(benchmark=run.definition.benchmark),
        **build_cases_context(request, now, cards),
    }


def hash_panel(now: RunProgress, details: Details) -> str:
    """Return a tag that changes with everything that the live panel shows, except the time."""
    jobs = [
        [
            *_list_job_values(part.job),
            part.trials_done,
            part.trials_failed,
            [each.text for each in part.case_statuses],
            *_list_detail_values(details[part.job.pk]),
        ]
        for part in now.jobs
    ]
    cancelled = now.run.cancel_requested_at is not None
    return f'"{hash_value([now.run.state, now.run.message, cancelled, jobs])[:32]}"'


def load_run_cards(member: Member, run: Run) -> list[VerdictCard]:
    """Return one card for each contender that has blocks."""
    return load_verdict_cards(member, [run])[run.pk]


def build_run_rows(
    member: Member, runs: Iterable[Run]
) -> list[tuple[Run, list[VerdictCard], RunValidity]]:
    """Return runs for lists: with verdicts, and the number of suspect and invalid trials."""
    shown = list(runs)
    validity = load_run_validity([run.pk for run in shown])
    cards = load_verdict_cards(member, shown)
    return [(run, cards[run.pk], validity[run.pk]) for run in shown]


def _list_job_values(job: Job) -> list[object]:
    return [job.state, job.phase, job.message, job.round, job.attempt, str(job.current_trial),
            str(job.not_before), _count_minutes_since_contact(job)]  # fmt: skip


def _count_minutes_since_contact(job: Job) -> int | None:
    """Return the age of the last contact with the host of an active job."""
    if job.state not in JOB_ACTIVE or job.host is None or job.host.last_seen_at is None:
        return None
    return int((utc_now() - job.host.last_seen_at).total_seconds() // 60)


def _list_detail_values(details: JobDetails) -> list[object]:
    builds = [[each.pk, each.state, each.seconds, each.log_offset] for each in details.builds]
    return [details.waiting, [str(place.host_id) for place in details.placements], builds]


def _load_cards(member: Member, run: Run, now: RunProgress) -> list[VerdictCard]:
    """Return the cards. During a run they are computed again only after new trials.

    A large run needs more new trials: the page must not wait for hundreds of comparisons.
    """
    step = max(1, now.trials_total // VERDICT_STEPS)
    mark = None if run.state in RUN_ENDED else str(now.trials_done // step)
    return get_or_make_part(("verdicts", run.pk), mark, lambda: load_run_cards(member, run))


def _build_contenders(run: Run, cards: Iterable[VerdictCard]) -> list[dict[str, Any]]:
    """Return each contender with its verdict, None if there is none yet."""
    by_commit = {card.contender.pk: card for card in cards}
    return [
        {
            "commit": variant.commit,
            "card": (card := by_commit.get(variant.commit_id)),
            "changes": card.changes[:CHANGES_SHOWN] if card else (),
            "more": len(card.changes[CHANGES_SHOWN:]) if card else 0,
        }
        for variant in list(run.variants.all())[1:]
    ]


def _build_host_views(now: RunProgress, details: Details) -> list[HostView]:
    hosts = build_host_progress(now.jobs)
    measured = [_find_measured_job_id(each) for each in hosts]
    traces = load_cpu_traces({job for job in measured if job})
    return [
        HostView(
            at=each,
            failed=_find_last_failed(each),
            cpu=build_cpu_sparkline(traces.get(job, [])) if job else None,
            current=(each.current_part, details[each.current_part.job.pk]),
            others=tuple((part, details[part.job.pk]) for part in each.others),
        )
        for each, job in zip(hosts, measured, strict=True)
    ]


def _find_last_failed(host: HostProgress) -> Trial | None:
    """Return the last failed trial: its message ends with the last output of server or tool."""
    failed = [part.job.pk for part in host.parts if part.trials_failed]
    if not failed:
        return None
    trials = Trial.objects.filter(job__in=failed, state=TrialState.FAILED)
    newest = trials.select_related("case", "variant__commit").order_by("-started_at", "-position")
    return newest.first()


def _find_measured_job_id(host: HostProgress) -> UUID | None:
    """Return the latest started job, or the one before until its first trial has ended."""
    begun = [part for part in host.parts if part.trials_finished > part.trials_not_needed]
    newest = max(begun, key=lambda part: str(part.job.started_at or ""), default=None)
    return newest.job.pk if newest else None


def _compute_duration_s(run: Run) -> float | None:
    if run.started_at is None or run.ended_at is None:
        return None
    return (run.ended_at - run.started_at).total_seconds()
