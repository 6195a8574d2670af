"""The deadline of a job on its hosts, and that of the agent's main loop.

Each step, call, load and build has a limit of its own. These two end what all of them let pass,
such as a host that always answers and never gets further. docs/architecture.md lists all limits.
"""

from collections.abc import Mapping
from typing import Any

from django.db.models import Count

from orchestrator.benchmarks.selectors import read_spec
from orchestrator.core.clock import utc_now
from orchestrator.runs.models import HostLease, Job

#: A job may take this multiple of its expected time, and this time in addition.
SLOWNESS = 3.0
ALLOWANCE_S = 7200.0
#: A supervisor whose main loop stands still for this long does not go on by itself. To remove a
#: large build from a slow disk may take a good part of it.
STUCK_S = 1800.0


def describe_overdue(job: Job) -> str:
    """Return why the job has to end if it has held its hosts too long; "" if it may go on.

    The timeouts of its builds are added as these start.
    """
    leases = HostLease.objects.filter(job=job, host=job.host_id)
    lease = leases.annotate(builds=Count("job__builds")).first()
    if lease is None:
        return ""
    subject = read_spec(job.run.definition).subject
    build_s = subject.build_timeout_s + (subject.install.timeout_s if subject.install else 0.0)
    limit_s = SLOWNESS * job.expected_s + ALLOWANCE_S + lease.builds * build_s
    held_s = (utc_now() - lease.taken_at).total_seconds()
    if held_s <= limit_s:
        return ""
    return (
        f"the job has held its hosts for {held_s / 3600:.1f} h, and was expected to take "
        f"{job.expected_s / 3600:.1f} h; it was ended after its limit of {limit_s / 3600:.1f} h. "
        "Look at its last phase and at the log of the agent on the host"
    )


def describe_standstill(status: Mapping[str, Any]) -> str:
    """Return why a living supervisor has to be stopped if its main loop stands still, else ""."""
    age_s = float(status.get("beat_age_s") or 0.0)
    if not status["alive"] or age_s <= STUCK_S:
        return ""
    return (
        f"it has not got further for {age_s / 60:.0f} min; check the disk and the processes of the "
        "host, restart it, and activate it again"
    )
