"""The list of hosts: state, work and noise of each; those that need attention come first."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.accounts.members import Member
from orchestrator.calibration.floors import Floor, load_noise_floors
from orchestrator.calibration.golden import GoldenStatus, load_golden_statuses
from orchestrator.core.clock import utc_now
from orchestrator.core.ids import hash_value
from orchestrator.fleet.host_settings import may_become
from orchestrator.fleet.models import Host, HostState
from orchestrator.fleet.open_hours import HoursNow
from orchestrator.fleet.reservations import describe_reservation
from orchestrator.fleet.selectors import load_hosts
from orchestrator.fleet.temperatures import HostTemperature, load_temperatures
from orchestrator.runs.selectors import count_queued_by_host
from orchestrator.web.sparklines import Sparkline, build_sparkline

_ORDER = (
    HostState.QUARANTINED, HostState.UNREACHABLE, HostState.UNCONFIRMED, HostState.MAINTENANCE,
    HostState.READY, HostState.EXTERNAL, HostState.RETIRED,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRow:
    """`queued`: jobs that may run on it. `hours` is None if it is always open.

    `reserved`: who reserved it until when; empty if nobody has.
    """

    host: Host
    hours: HoursNow | None
    queued: int
    warmth: HostTemperature | None
    floor: Floor | None
    line: Sparkline | None
    golden: GoldenStatus | None
    may_be_released: bool
    reserved: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """How many hosts are in a state; `busy` counts those that measure."""

    state: str
    title: str
    hosts: int


def load_fleet_rows(member: Member) -> list[FleetRow]:
    hosts = sorted(load_hosts(member), key=_rank_urgency)
    golden, floors = load_golden_statuses(member), load_noise_floors(member)
    warmth, queued = load_temperatures(member), count_queued_by_host(member, hosts)
    return [
        FleetRow(
            host=host,
            hours=host.hours.compute_state(utc_now(), host.timezone) if host.open_hours else None,
            queued=queued[host.pk],
            warmth=warmth.get(host.pk),
            floor=floors.get(host.pk),
            line=build_sparkline(floors[host.pk].history) if host.pk in floors else None,
            golden=golden.get(host.pk),
            may_be_released=host.state in {HostState.QUARANTINED, HostState.MAINTENANCE}
            and may_become(host, HostState.READY),
            reserved=describe_reservation(host),
        )
        for host in hosts
    ]


def count_fleet(rows: Sequence[FleetRow]) -> list[Count]:
    """Return one count per existing state, in the order of the rows.

    Ready hosts that measure are counted separately.
    """
    states = Counter("busy" if _is_measuring(row.host) else row.host.state for row in rows)
    titles = {str(state): str(state.label).lower() for state in _ORDER} | {"busy": "measuring"}
    return [
        Count(state=state, title=title, hosts=states[state])
        for state, title in titles.items()
        if states[state]
    ]


def hash_fleet(rows: Sequence[FleetRow]) -> str:
    """Return a tag that changes with everything that the list shows, except the time."""
    return f'"{hash_value([_list_tag_values(row) for row in rows])[:32]}"'


def _list_tag_values(row: FleetRow) -> list[object]:
    host, golden = row.host, row.golden
    job = host.lease.job if hasattr(host, "lease") else None
    return [
        *(str(host.pk), host.name, host.state, host.message, host.tags, host.profile.name),
        *(str(job.pk) if job else "", job.phase if job else "", row.queued),
        row.hours.is_open if row.hours else None,
        row.reserved,
        row.warmth.at.isoformat() if row.warmth else "",
        row.floor.at.isoformat() if row.floor else "",
        row.floor.present if row.floor else None,
        golden.word if golden else "",
        str(golden.check.last_run_id) if golden else "",
    ]


def _is_measuring(host: Host) -> bool:
    return host.state == HostState.READY and hasattr(host, "lease")


def _rank_urgency(host: Host) -> tuple[int, str]:
    return _ORDER.index(HostState(host.state)), host.name
