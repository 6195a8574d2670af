"""Hosts: their hardware, opening hours, state and changes."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from ninja import Schema
from pydantic import Field, StringConstraints

from orchestrator.api.schemas.common import (
    MOST_WHOLE,
    CommitOut,
    Flag,
    Number,
    Text,
    Whole,
    build_commit_out,
    build_web_url,
)
from orchestrator.calibration.golden import GoldenStatus
from orchestrator.core.clock import utc_now
from orchestrator.core.storable_text import StorableText
from orchestrator.fleet.facts import Contradiction
from orchestrator.fleet.models import HardwareProfile, Host, HostChange, HostSnapshot
from orchestrator.fleet.reservations import LONGEST, is_reserved
from orchestrator.runs.golden import NewGolden

#: Text from a client that may be empty.
AnyText = Annotated[StorableText, StringConstraints(max_length=500)]


class ProfileOut(Schema):
    """A hardware profile; unknown values are null."""

    slug: str
    name: str
    cpu_model: str | None
    cores: int | None
    threads: int | None
    base_clock_mhz: int | None
    boost_clock_mhz: int | None
    memory_bytes: int | None
    os: str | None


class GoldenOut(Schema):
    """A host's golden run. `status` is planned, running, learning, steady, slow drift, unusual
    (measured again at once), drifted, failed or not judged."""

    benchmark: str
    project: str
    commit: CommitOut
    every_hours: int | None
    every_jobs: int | None
    tolerance: float
    status: str
    message: str
    last_at: datetime | None
    last_run: UUID | None


class ReservationOut(Schema):
    """No new job starts on the host before `until`. One that was made `on_host` ends there."""

    until: datetime
    by: str
    reason: str
    on_host: bool


class HostOut(Schema):
    """`run` is the one that uses the host now. `open_now` is valid until `hours_change_at`; null:
    without end."""

    id: UUID
    name: str
    state: str
    message: str
    transport: str
    profile: ProfileOut
    tags: list[str]
    open_hours: str
    timezone: str
    open_now: bool
    hours_change_at: datetime | None
    reservation: ReservationOut | None
    golden: GoldenOut | None
    last_seen_at: datetime | None
    unreachable_since: datetime | None
    run: UUID | None
    web_url: str


class HostPage(Schema):
    hosts: list[HostOut]
    next: str | None


class ChangedFactOut(Schema):
    fact: str
    before: Any
    after: Any


class HostChangeOut(Schema):
    """The host changed at `at`: values before and after it are not comparable."""

    at: datetime
    changed: list[ChangedFactOut]


class ContradictionOut(Schema):
    """A field in which the host differs from its profile."""

    field: str
    profile: Any
    host: Any


class HostDetailOut(HostOut):
    """`facts` are those that the host reported at `facts_at`; `changes` are oldest first."""

    address: str | None
    port: int | None
    login: str | None
    data_address: str | None
    jump_hosts: list[str]
    disk_limit_bytes: int
    tuning: dict[str, str]
    env: dict[str, str]
    run_as: str | None
    is_shared: bool
    mac_address: str | None
    start_command: list[str]
    start_host: str | None
    facts: dict[str, Any] | None
    facts_at: datetime | None
    changes: list[HostChangeOut]
    contradictions: list[ContradictionOut]


class HostSettingsIn(Schema, extra="forbid"):
    """Omitted fields stay unchanged. `tuning`: governor, turbo, smt, aslr, swappiness; it is
    replaced as a whole."""

    tags: Annotated[list[Text], Field(max_length=100)] | None = None
    open_hours: AnyText | None = Field(
        None, description="For example `mon-fri 20:00-07:00; sat-sun`; empty: always."
    )
    timezone: Text | None = Field(None, description="For example UTC or Europe/Vienna.")
    data_address: AnyText | None = Field(
        None, description="The address that other hosts of a job use; empty: the same address."
    )
    disk_limit_bytes: Annotated[Whole, Field(ge=1, lt=2**63)] | None = None
    tuning: dict[str, str | Whole] | None = None
    env: dict[str, str] | None = Field(
        None,
        description="Environment variables of all measured processes on the host; replaced as a "
        "whole. They are shown to the team: no secrets.",
    )
    run_as: AnyText | None = Field(
        None, description="The user for measured code; empty: the login user."
    )
    is_shared: Flag | None = Field(
        None,
        description="Other work runs on the host. Trials that it disturbs count as suspect, and "
        "trials do not wait for a quiet host.",
    )
    mac_address: AnyText | None = Field(
        None,
        description="Wakes the machine (Wake-on-LAN) when jobs wait for it, for example "
        "00:11:22:33:44:55; empty: never.",
    )
    start_command: Annotated[list[AnyText], Field(max_length=100)] | None = Field(
        None,
        description="The arguments of a command that starts the machine when jobs wait for it; "
        "empty: none.",
    )
    start_host: AnyText | None = Field(
        None, description="The name of the host of the team that runs `start_command`."
    )


class MaintenanceIn(Schema, extra="forbid"):
    reason: AnyText = ""


class ReservationIn(Schema, extra="forbid"):
    duration_s: Annotated[Whole, Field(ge=1, le=int(LONGEST.total_seconds()))] = Field(
        description="From now on; at most 7 days."
    )
    reason: AnyText = ""


class GoldenIn(Schema, extra="forbid"):
    """At least one of `every_hours` and `every_jobs` is required."""

    benchmark: Text
    project: Text | None = Field(
        None, description="Required only if two projects have a benchmark of this name."
    )
    commit: Text = Field(description="Branch, tag or hash; a branch means its current commit.")
    every_hours: Annotated[Whole, Field(ge=1, le=MOST_WHOLE)] | None = None
    every_jobs: Annotated[Whole, Field(ge=1, le=MOST_WHOLE)] | None = None
    tolerance: Number = Field(0.05, description="Minimum tolerated drift, as a fraction.")

    def build_golden(self) -> NewGolden:
        return NewGolden(**self.model_dump())


def build_host_out(host: Host, golden: GoldenStatus | None) -> HostOut:
    lease = getattr(host, "lease", None)
    hours = host.hours.compute_state(utc_now(), host.timezone)
    return HostOut(
        id=host.pk,
        name=host.name,
        state=host.state,
        message=host.message,
        transport=host.transport,
        profile=build_profile_out(host.profile),
        tags=host.tags,
        open_hours=host.open_hours,
        timezone=host.timezone,
        open_now=hours.is_open,
        hours_change_at=hours.until,
        reservation=_build_reservation_out(host),
        golden=build_golden_out(golden) if golden else None,
        last_seen_at=host.last_seen_at,
        unreachable_since=host.unreachable_since,
        run=lease.job.run_id if lease else None,
        web_url=build_web_url("host", host.pk),
    )


def _build_reservation_out(host: Host) -> ReservationOut | None:
    if host.reserved_until is None or not is_reserved(host):
        return None
    return ReservationOut(
        until=host.reserved_until,
        by=host.reserved_by,
        reason=host.reserved_for,
        on_host=host.reservation_seen_at is not None,
    )


def build_host_detail_out(
    host: Host,
    golden: GoldenStatus | None,
    *,
    snapshot: HostSnapshot | None,
    changes: Sequence[HostChange],
    contradictions: Sequence[Contradiction],
) -> HostDetailOut:
    return HostDetailOut(
        **build_host_out(host, golden).model_dump(),
        address=host.address or None,
        port=host.port if host.address else None,
        login=host.login or None,
        data_address=host.data_address or None,
        jump_hosts=host.jump_hosts,
        disk_limit_bytes=host.disk_limit_bytes,
        tuning=host.tuning,
        env=host.env,
        run_as=host.run_as or None,
        is_shared=host.is_shared,
        mac_address=host.mac_address or None,
        start_command=host.start_command,
        start_host=host.start_host.name if host.start_host else None,
        facts=snapshot.facts if snapshot else None,
        facts_at=snapshot.taken_at if snapshot else None,
        changes=[
            HostChangeOut(at=each.at, changed=build_changed_out(each.changed)) for each in changes
        ],
        contradictions=[
            ContradictionOut(field=each.field, profile=each.profile, host=each.host)
            for each in contradictions
        ],
    )


def build_golden_out(status: GoldenStatus) -> GoldenOut:
    check = status.check
    return GoldenOut(
        benchmark=check.benchmark.slug,
        project=check.benchmark.project.slug,
        commit=build_commit_out(check.commit),
        every_hours=check.every_hours,
        every_jobs=check.every_jobs,
        tolerance=check.tolerance,
        status=status.word,
        message=check.message,
        last_at=check.last_at,
        last_run=check.last_run_id,
    )


def build_changed_out(changed: Mapping[str, Any]) -> list[ChangedFactOut]:
    return [
        ChangedFactOut(fact=fact, before=before, after=after)
        for fact, (before, after) in changed.items()
    ]


def build_profile_out(profile: HardwareProfile) -> ProfileOut:
    return ProfileOut(
        slug=profile.slug,
        name=profile.name,
        cpu_model=profile.cpu_model or None,
        cores=profile.cores,
        threads=profile.threads,
        base_clock_mhz=profile.base_clock_mhz,
        boost_clock_mhz=profile.boost_clock_mhz,
        memory_bytes=profile.memory_bytes,
        os=profile.os or None,
    )
