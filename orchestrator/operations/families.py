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
gauge     pitwall_up                    part           1 where it answers, else 0
gauge     pitwall_queue_jobs            -              Jobs that wait for hosts and might start now
gauge     pitwall_queue_oldest_seconds  -              How long the oldest of these has waited
gauge     pitwall_jobs                  phase          Jobs that have hosts
gauge     pitwall_jobs_overdue          -              Those that wait 10 s or longer for a worker
gauge     pitwall_leases                -              Hosts that are held by a job
gauge     pitwall_lease_oldest_seconds  -              How long the oldest lease is held
gauge     pitwall_hosts                 state          Hosts
gauge     pitwall_fetches               state          Fetches of repositories, by their state
gauge     pitwall_deliveries_waiting    -              Messages of channels, not delivered yet
gauge     pitwall_broker_messages       -              Messages of Celery that nobody has taken up
gauge     pitwall_processes             process        Workers and beats that were heard lately
gauge     pitwall_heartbeat_age_seconds         process        How long ago the last one was heard
counter   pitwall_host_failures_total   kind           Times a host could not be used
counter   pitwall_trials_total          outcome        Trials that were taken in from hosts
counter   pitwall_results_total         way            Results that were sent, by post or as a file
counter   pitwall_http_responses_total  method,status  Answers of web processes
counter   pitwall_logins_total          outcome        Log-ins by what came of them
histogram pitwall_http_request_seconds  route,method   Times of pages and operations in the server
histogram pitwall_task_seconds          task           Times of Celery tasks
"""


def _family(line: str) -> Family:
    kind, name, labels, text = line.split(maxsplit=3)
    known = () if labels == "-" else tuple(labels.split(","))
    return Family(name=name, kind=Kind(kind), help=text, labels=known)


#: By name, in the order of `/metrics`.
FAMILIES: Mapping[str, Family] = {
    family.name: family for family in map(_family, _LINES.strip().splitlines())
}
