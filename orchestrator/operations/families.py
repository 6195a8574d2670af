"""Every metric of `/metrics`: its kind, labels and help text."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A metric with its samples (labels → value)."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    samples: Mapping[tuple[tuple[str, str], ...], float] = field(default_factory=dict)


_LINES = """
gauge     pitwall_up                     part          1 if the part answers, else 0
gauge     pitwall_queue_jobs             -             Jobs that wait for hosts and could start now
gauge     pitwall_queue_oldest_seconds   -             Waiting time of the oldest of these
gauge     pitwall_jobs                   phase         Jobs with hosts
gauge     pitwall_jobs_overdue           -             Jobs that wait 10 s or longer for a worker
gauge     pitwall_leases                 -             Hosts leased by a job
gauge     pitwall_lease_oldest_seconds   -             Age of the oldest lease
gauge     pitwall_hosts                  state         Hosts
gauge     pitwall_fetches                state         Fetches of repositories by state
gauge     pitwall_deliveries_waiting     -             Messages of channels that wait for delivery
gauge     pitwall_broker_messages        queue         Waiting Celery messages
gauge     pitwall_processes              process       Processes with a recent heartbeat
gauge     pitwall_heartbeat_age_seconds  process       Age of the last heartbeat
counter   pitwall_host_failures_total    kind          Times a host could not be used
counter   pitwall_trials_total           outcome       Trials received from hosts
counter   pitwall_results_total          way           Results received, by request or as a file
counter   pitwall_http_responses_total   method,status Responses of web processes
counter   pitwall_logins_total           outcome       Logins by outcome
histogram pitwall_http_request_seconds   route,method  Server time of pages and operations
histogram pitwall_task_seconds           task          Duration of Celery tasks
"""


def _parse_family(line: str) -> Family:
    kind, name, labels, text = line.split(maxsplit=3)
    known = () if labels == "-" else tuple(labels.split(","))
    return Family(name=name, kind=Kind(kind), help=text, labels=known)


#: By name, in the order of `/metrics`.
FAMILIES: Mapping[str, Family] = {
    family.name: family for family in map(_parse_family, _LINES.strip().splitlines())
}
