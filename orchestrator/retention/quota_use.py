"""How much of its quotas a team uses."""

from dataclasses import dataclass

from orchestrator.accounts.models import Team
from orchestrator.accounts.quotas import Quotas, load_quotas
from orchestrator.benchmarks.selectors import mirrors_bytes_of
from orchestrator.core.clock import utc_now
from orchestrator.fleet.host_quota import hosts_counted
from orchestrator.retention.storage import storage_of
from orchestrator.runs.selectors import sum_queued_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamUse:
    quotas: Quotas
    hosts: int
    queued_s: float
    storage_bytes: int
    mirrors_bytes: int


def use_of(team: Team) -> TeamUse:
    return TeamUse(
        quotas=load_quotas(team),
        hosts=hosts_counted(team),
        queued_s=sum_queued_seconds(team),
        storage_bytes=storage_of(team, utc_now()),
        mirrors_bytes=mirrors_bytes_of(team),
    )
