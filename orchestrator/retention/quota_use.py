"""How much of its quotas a team uses."""

from dataclasses import dataclass

from orchestrator.accounts.models import Team
from orchestrator.accounts.quotas import Quotas, load_quotas
from orchestrator.benchmarks.selectors import sum_mirror_bytes
from orchestrator.core.clock import utc_now
from orchestrator.fleet.host_quota import count_hosts
from orchestrator.retention.storage import get_storage_bytes
from orchestrator.runs.selectors import sum_queued_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamUse:
    quotas: Quotas
    hosts: int
    queued_s: float
    storage_bytes: int
    mirrors_bytes: int


def load_team_use(team: Team) -> TeamUse:
    return TeamUse(
        quotas=load_quotas(team),
        hosts=count_hosts(team),
        queued_s=sum_queued_seconds(team),
        storage_bytes=get_storage_bytes(team, utc_now()),
        mirrors_bytes=sum_mirror_bytes(team),
    )
