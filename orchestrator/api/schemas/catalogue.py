"""What a run can be made of: benchmarks and hosts."""

from datetime import datetime
from uuid import UUID

from ninja import Schema

from orchestrator.api.schemas.common import CaseOut, case_out
from orchestrator.benchmarks.models import Benchmark
from orchestrator.fleet.models import HardwareProfile, Host


class BenchmarkOut(Schema):
    """`cases` are those that a run was ever asked for; `definition_version` is the newest."""

    benchmark: str
    project: str
    title: str
    definition_version: int | None
    cases: list[CaseOut]


class ProfileOut(Schema):
    """A kind of machine; what is not known is null."""

    slug: str
    name: str
    cpu_model: str | None
    cores: int | None
    threads: int | None
    memory_bytes: int | None
    os: str | None


class HostOut(Schema):
    """`run` is the one that holds the host now."""

    id: UUID
    name: str
    state: str
    message: str
    transport: str
    profile: ProfileOut
    last_seen_at: datetime | None
    run: UUID | None


def benchmark_out(benchmark: Benchmark, version: int | None) -> BenchmarkOut:
    return BenchmarkOut(
        benchmark=benchmark.slug,
        project=benchmark.project.slug,
        title=benchmark.title,
        definition_version=version,
        cases=[case_out(case) for case in benchmark.cases.all()],
    )


def host_out(host: Host) -> HostOut:
    lease = getattr(host, "lease", None)
    return HostOut(
        id=host.pk,
        name=host.name,
        state=host.state,
        message=host.message,
        transport=host.transport,
        profile=_profile_out(host.profile),
        last_seen_at=host.last_seen_at,
        run=lease.job.run_id if lease else None,
    )


def _profile_out(profile: HardwareProfile) -> ProfileOut:
    return ProfileOut(
        slug=profile.slug,
        name=profile.name,
        cpu_model=profile.cpu_model or None,
        cores=profile.cores,
        threads=profile.threads,
        memory_bytes=profile.memory_bytes,
        os=profile.os or None,
    )
