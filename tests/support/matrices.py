"""Wide comparisons: many cases on many hosts, written as points without trials."""

from collections.abc import Callable, Sequence
from uuid import uuid4

from django.db import transaction

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Case, Commit, Definition, Project
from orchestrator.core.clock import utc_now
from orchestrator.fleet.models import Host
from orchestrator.measurements.recording import MeasuredRow
from tests.support.factories import (
    DEFINITION,
    make_definition,
    make_local_host,
    record,
    store_cases,
)

WIDE = DEFINITION.replace(
    '"server.py", "--port"', '"server.py", "{size}", "{protocol}", "--port"'
).replace(
    "connections: [4]",
    "connections: [1, 2, 4, 8, 16]\n  size: [none, tiny, full, huge, vast]\n  protocol: [h1, h2]",
)
BLOCKS = 6
NAMES = ("ant", "bee", "cat", "dog", "elk", "fox")

#: The contender's rate of a case on a host; the baseline's is 1000.
Rate = Callable[[Case, str], float]


def make_hosts(member: Member, names: Sequence[str] = NAMES) -> list[Host]:
    return [make_local_host(member, name=name) for name in names]


def measure_matrix(
    member: Member, project: Project, commits: Sequence[Commit], hosts: Sequence[Host], rate: Rate
) -> Definition:
    """Record fifty cases of two commits on each host, in blocks of both, with a little noise."""
    definition = make_definition(member, project, source=WIDE)
    cases = store_cases(definition)
    rows = [
        _measured(case, host, commit, block, rate(case, host.name) if place else 1000.0)
        for host in hosts
        for case in cases
        for place, commit in enumerate(commits)
        for block in range(1, BLOCKS + 1)
    ]
    with transaction.atomic():
        record(rows)
    return definition


def _measured(case: Case, host: Host, commit: Commit, block: int, rate: float) -> MeasuredRow:
    noisy = rate * (1 + 0.002 * ((block * 7 + case.pk * 3 + commit.pk) % 5 - 2))
    return MeasuredRow(
        id=uuid4(),
        benchmark=case.benchmark_id,
        case=case.pk,
        host=host.pk,
        commit=commit.pk,
        at=utc_now(),
        validity="valid",
        readings={
            "requests.rate": noisy,
            "latency.p50": 4 / noisy,
            "cpu.seconds_per_1k": 900 / noisy,
        },
        block=block + 100 * case.pk,
        configuration=1,
    )
