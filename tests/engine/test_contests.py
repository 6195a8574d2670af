"""A contest of two servers of known speed: common blocks, a paired change, and groups."""

from itertools import groupby
from pathlib import Path
from textwrap import dedent

import pytest

from orchestrator.benchmarks.models import Benchmark, Case
from orchestrator.comparisons.compare import compare_sides
from orchestrator.comparisons.sides import Side
from orchestrator.reports.report_builder import build_report
from orchestrator.reports.report_spec import from_data
from orchestrator.runs.models import Trial
from tests.support.engine import Engine, assert_measured, server
from tests.support.factories import (
    Personas,
    make_definition,
    make_project,
    make_run,
    make_shared_host,
)

pytestmark = [pytest.mark.engine, pytest.mark.slow]

DEFINITION = dedent(
    """\
    version: 1
    title: Two servers
    subject:
      start: ["{python}", "{server}.py", --port, "{port}"]
      ready: {path: /hello, timeout_s: 10}
    load: {path: /hello, connections: 2, duration_s: 0.6, warmup_s: 0.2}
    matrix: {server: [quick, slow]}
    baseline: {server: slow}
    contest: server
    rounds: 8
    cooldown_s: 0
    """
)
REPORT = {
    "version": 1,
    "title": "Servers",
    "benchmark": "hello",
    "tables": [
        {
            "rows": ["server"],
            "columns": [
                {"metric": "requests.rate", "title": "Rate"},
                {"metric": "requests.rate", "title": "Gain", "relative": True},
            ],
            "sort": "Rate",
        }
    ],
}


def test_two_servers_of_known_speed_get_a_paired_change(
    engine: Engine, team: Personas, tmp_path: Path
) -> None:
    files = {
        f"{name}.py": server(wait_s=wait_s)["server.py"]
        for name, wait_s in (("quick", 0.01), ("slow", 0.04))
    }
    project, shas = make_project(team.alice, tmp_path / "origin", [files])
    make_definition(team.alice, project, source=DEFINITION, slug="hello")
    make_shared_host(team.alice)
    run = engine.finish(make_run(team.alice, shas))
    assert_measured(run)

    trials = Trial.objects.filter(job__run=run).select_related("case").order_by("position")
    rounds = [list(each) for _, each in groupby(trials, key=lambda trial: trial.round)]
    orders = [[trial.case.parameters["server"] for trial in each] for each in rounds]
    assert all(sorted(each) == ["quick", "slow"] for each in orders)
    assert [each[::-1] for each in orders[::2]] == orders[1::2]

    (table,) = build_report(team.alice, from_data(REPORT)).tables
    quick, slow = table.rows
    gain = quick.cells[1]
    assert (gain.paired, gain.runs) == (True, 1)
    # A quarter of the wait, and the same work: less than four times the rate.
    assert 0 < gain.low <= gain.value <= gain.high
    assert 100 < gain.value < 320
    assert [(row.heads, row.rank_text, row.groups) for row in (quick, slow)] == [
        (("quick",), "1", "a"), (("slow",), "2", "b"),
    ]  # fmt: skip

    commit = run.variants.get().commit
    sides = [Side(commit=commit, case=Case.objects.get(label=f"server {name}"))
             for name in ("slow", "quick")]  # fmt: skip
    benchmark = Benchmark.objects.select_related("project").get()
    report = compare_sides(team.alice, benchmark=benchmark, sides=(sides[0], sides[1]))
    assert report.paired
    rate = next(each for each in report.cases[0].metrics if each.info.key == "requests.rate")
    assert 100 * rate.result.change == pytest.approx(gain.value)
