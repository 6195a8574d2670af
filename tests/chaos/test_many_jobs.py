"""Many jobs of two hosts each, over five hosts: each gets both of its hosts, alone."""

from itertools import combinations, permutations

import pytest

from orchestrator.benchmarks.models import Project
from orchestrator.runs.models import Job
from tests.support.engine import Engine
from tests.support.factories import Personas, make_definition, make_run
from tests.support.faults import FULL, assert_all_finish
from tests.support.fleet import ANYWHERE
from tests.support.netns import NamespaceHost

pytestmark = [pytest.mark.chaos, pytest.mark.slow]

RUNS = 10 if FULL else 1
TINY = ANYWHERE.replace("duration_s: 0.6", "duration_s: 0.3").replace(
    "warmup_s: 0.2", "warmup_s: 0.1"
)


@pytest.mark.parametrize("hosts", [{"count": 5}], indirect=True, ids=["five hosts"])
def test_many_jobs_on_two_hosts_finish(
    engine: Engine, hosts: list[NamespaceHost], team: Personas, shas: list[str]
) -> None:
    """Every ordered pair of the hosts in each run: 20 jobs; in the short form each pair once."""
    make_definition(team.alice, Project.objects.get(), source=TINY)
    names = [host.name for host in hosts]
    pairs = list(permutations(names, 2) if FULL else combinations(names, 2))
    placements = tuple({"target": f"host:{a}", "generator": f"host:{b}"} for a, b in pairs)
    runs = [
        make_run(team.alice, shas, hosts=(), placements=placements, rounds=1) for _ in range(RUNS)
    ]
    assert Job.objects.count() == RUNS * len(pairs)
    engine.wait_for(lambda: not Job.objects.filter(ended_at=None).exists(), timeout_s=RUNS * 120)
    assert_all_finish(engine, hosts, runs)
