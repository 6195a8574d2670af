"""A run that builds each commit several times measures each of these builds."""

from collections import defaultdict
from pathlib import Path
from textwrap import dedent

import pytest

from orchestrator.benchmarks.models import Benchmark
from orchestrator.comparisons.compare import compare_commits
from orchestrator.results.models import Point
from orchestrator.runs.models import Build, Trial
from tests.support.engine import Engine, assert_measured, server
from tests.support.factories import (
    Personas,
    make_definition,
    make_project,
    make_run,
    make_shared_host,
)

pytestmark = [pytest.mark.engine, pytest.mark.slow]

#: No two builds are equal, as with the layout of a compiled program.
DEFINITION = dedent(
    """\
    version: 1
    title: Stamped
    subject:
      build: [[sh, -c, "date +%s.%N > stamp"]]
      start: ["{python}", server.py, --port, "{port}"]
      ready: {path: /hello, timeout_s: 10}
    load: {path: /hello, connections: 2, duration_s: 0.6, warmup_s: 0.2}
    rounds: 5
    builds: 3
    cooldown_s: 0
    """
)


def test_each_pair_of_rounds_measures_a_build_of_its_own(
    engine: Engine, team: Personas, tmp_path: Path
) -> None:
    versions = [server(body="Hello"), server(body="Hallo")]
    project, shas = make_project(team.alice, tmp_path / "origin", versions)
    make_definition(team.alice, project, source=DEFINITION, slug="hello")
    make_shared_host(team.alice)
    run = engine.finish(make_run(team.alice, shas))
    assert_measured(run)
    assert run.builds == 3

    builds = Build.objects.filter(job__run=run, state="done")
    assert [build.cached for build in builds].count(False) == builds.count() == 6
    assert {build.label for build in builds} == {f"build {number} of 3" for number in (1, 2, 3)}
    assert len({build.digest for build in builds}) == 6

    measured: dict[tuple[int, str], set[int]] = defaultdict(set)
    numbers = {}
    for trial in Trial.objects.filter(job__run=run).select_related("variant"):
        build = trial.provenance["build"]
        measured[trial.variant.position, build["digest"]].add(trial.round)
        numbers[trial.round] = build["number"]
    assert numbers == {1: 1, 2: 1, 3: 2, 4: 2, 5: 3}
    of_both = [rounds for _, rounds in sorted(measured.items(), key=lambda each: min(each[1]))]
    assert of_both == [{1, 2}, {1, 2}, {3, 4}, {3, 4}, {5}, {5}]
    # Not each trial has enough requests for each percentile.
    for point in Point.objects.filter(series__metric__key="requests.rate"):
        assert len(set(point.builds)) == 3
        assert 0 not in point.builds

    before, after = (variant.commit for variant in run.variants.order_by("position"))
    benchmark = Benchmark.objects.select_related("project").get()
    report = compare_commits(team.alice, benchmark=benchmark, baseline=before, contender=after)
    deciding = [metric for metric in report.cases[0].metrics if metric.primary]
    assert {metric.result.builds for metric in deciding} == {(3, 3)}
    assert any("3 builds of each commit were measured" in note for note in report.notes)

    # Other runs use the build that the host keeps, and none of these.
    kept = engine.finish(make_run(team.alice, shas, rounds=1))
    assert kept.builds == 1
    digests = set(Build.objects.filter(job__run=kept).values_list("digest", flat=True))
    assert digests.isdisjoint(build.digest for build in builds)
