"""The present state of the installation from the database: counts over all teams, without names."""

from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.db.models import Count, Min, Q, QuerySet

from orchestrator.alerts.models import Delivery, DeliveryState
from orchestrator.benchmarks.models import Fetch
from orchestrator.core.clock import utc_now
from orchestrator.fleet.models import Host, HostState
from orchestrator.runs.claims import load_due_job_ids
from orchestrator.runs.models import HostLease, Job
from orchestrator.runs.states import JOB_ACTIVE, JobState

Samples = Mapping[tuple[tuple[str, str], ...], float]

#: A job that has waited so long for a worker is overdue.
OVERDUE_S = 10.0
FETCH_STATES = ("running", "queued", "failed", "done", "never")
#: First words of phases. A host sends free text: every other word becomes `other`.
PHASES = (
    "connecting", "sending", "building", "starting", "searching", "warming", "checking",
    "measuring", "stopping", "reading", "waiting", "paused",
)  # fmt: skip


def load_database_gauges() -> dict[str, Samples]:
    """Return samples by name of the metric. Each query uses an index or reads a small table."""
    return {
        **_queue(),
        **_load_job_gauges(),
        **_load_lease_gauges(),
        **_load_host_gauges(),
        **_load_delivery_gauges(),
        **_load_fetch_gauges(),
    }


def _queue() -> dict[str, Samples]:
    now = utc_now()
    waiting = Job.objects.filter(state=JobState.QUEUED).filter(
        Q(not_before=None) | Q(not_before__lte=now)
    )
    return _count_and_age(waiting, "created_at", "pitwall_queue_jobs", "pitwall_queue_oldest")


def _load_lease_gauges() -> dict[str, Samples]:
    held = HostLease.objects.all()
    return _count_and_age(held, "taken_at", "pitwall_leases", "pitwall_lease_oldest")


def _count_and_age(rows: QuerySet[Any], since: str, number: str, age: str) -> dict[str, Samples]:
    aggregates = rows.aggregate(number=Count("pk"), oldest=Min(since))
    oldest = aggregates["oldest"]
    waited = timedelta(0) if oldest is None else utc_now() - oldest
    return {
        number: {(): aggregates["number"]},
        f"{age}_seconds": {(): max(0.0, waited.total_seconds())},
    }


def _load_job_gauges() -> dict[str, Samples]:
    phases: Counter[str] = Counter(dict.fromkeys((*PHASES, "other"), 0))
    for phase in Job.objects.filter(state__in=JOB_ACTIVE).values_list("phase", flat=True):
        word = phase.partition(" ")[0]
        phases[word if word in PHASES else "other"] += 1
    return {
        "pitwall_jobs": _label_samples("phase", phases),
        "pitwall_jobs_overdue": {(): len(load_due_job_ids(late_by_s=OVERDUE_S))},
    }


def _load_host_gauges() -> dict[str, Samples]:
    states = Counter(dict.fromkeys(HostState.values, 0))
    rows = Host.objects.order_by().values_list("state").annotate(Count("pk"))
    states.update(dict(rows))
    return {"pitwall_hosts": _label_samples("state", states)}


def _load_delivery_gauges() -> dict[str, Samples]:
    waiting = Delivery.objects.filter(state=DeliveryState.WAITING).count()
    return {"pitwall_deliveries_waiting": {(): waiting}}


def _load_fetch_gauges() -> dict[str, Samples]:
    """Count the fetches by state. Each project has one row, so all can be read here."""
    states = Counter(dict.fromkeys(FETCH_STATES, 0))
    states.update(fetch.state for fetch in Fetch.objects.all())
    return {"pitwall_fetches": _label_samples("state", states)}


def _label_samples(label: str, numbers: Mapping[str, int]) -> Samples:
    return {((label, value),): number for value, number in numbers.items()}
