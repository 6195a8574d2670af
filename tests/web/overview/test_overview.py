"""The first page: alerts, changes, current runs, and the grid of all cases."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from orchestrator.benchmarks.models import Benchmark, Case, Project
from orchestrator.benchmarks.projects import create_project
from orchestrator.benchmarks.sharing import set_public
from orchestrator.comparisons.verdict_cache import store_missing_verdicts
from orchestrator.core.clock import utc_now
from orchestrator.core.page_cache import forget_parts
from orchestrator.fleet.models import Host
from orchestrator.histories.newest_points import CommitValue, load_overview_points
from orchestrator.results.models import ChangePoint, Point, Series
from orchestrator.results.models import Metric as StoredMetric
from orchestrator.runs.models import Run
from orchestrator.web.sparklines import CHANGE_HEIGHT, draw_change_sparkline
from tests.support.commit_lines import Line, build_line
from tests.support.demo_team import raise_alert
from tests.support.factories import (
    DEFINITION,
    MIXED_LOOPS,
    Personas,
    make_definition,
    make_run,
    record_trial,
    store_cases,
)
from tests.support.html_pages import element, elements, get_text, values
from tests.support.world import World

PLACE = "/public/red/server/"
MOST_BYTES = 150_000


def _line(world: World, **fields: int) -> Line:
    project = Project.objects.get(slug="server")
    return build_line(world.alice, project, world.host, slug="long", **fields)


def _section(client: Client, title: str, address: str = "/") -> str:
    page = client.get(address)
    assert page.status_code == 200
    named = {get_text(each): each for each in elements(page, "main h2, main h3")}
    return get_text(named[title].find_parent("section"))


def test_the_grid_shows_the_newest_value_and_the_last_verdict(world: World, alice: Client) -> None:
    store_missing_verdicts()
    page = alice.get("/")
    cell = element(page, ".grids tbody td")
    assert get_text(element(cell, "a")) == "850 1/s"
    assert values(cell, "[data-verdict]", "aria-label") == ["regressed"]
    assert get_text(element(page, ".grids tbody th")) == "connections 4"
    assert get_text(element(page, ".grids thead th:nth-child(2)")) == "here"
    link = values(cell, "a", "href")[0]
    assert get_text(element(alice.get(link), "#series-title")).startswith("Requests per second")
    assert element(cell, "path")["d"].count("L") == 2


def test_verdicts_are_those_of_the_newest_run(world: World, alice: Client) -> None:
    world.measure_run(1000, 1001, 1200, rounds=6)
    Run.objects.filter(pk=world.run.pk).update(created_at=utc_now() - timedelta(days=1))
    store_missing_verdicts()
    verdicts = values(alice.get("/"), ".grids [data-verdict]", "aria-label")
    assert verdicts == ["improved"]


def test_a_case_without_a_comparison_has_no_verdict(world: World, alice: Client) -> None:
    _line(world).measure({0: 1000.0, 1: 1010.0})
    texts = [get_text(each) for each in elements(alice.get("/"), ".grids td")]
    assert texts[-1] in ("1 010 1/s", "1 005 1/s", "1 015 1/s") or texts[-1].endswith("1/s")
    assert len(elements(alice.get("/"), ".grids [data-verdict]")) == 0


def test_imported_results_without_a_run_are_shown(
    personas: Personas, world: World, alice: Client
) -> None:
    line = _line(world)
    line.measure({0: 1000.0})
    Run.objects.all().delete()
    page = alice.get("/")
    assert "Nothing has been measured yet" not in get_text(page)
    assert len(elements(page, ".grids tbody tr")) == 2


def test_a_write_of_measurements_shows_at_once(world: World, alice: Client) -> None:
    line = _line(world)
    line.measure({0: 1000.0})
    assert "2 000" not in _section(alice, "All cases")
    line.measure({1: 2_000_000.0})
    assert any(
        text.startswith(("1.9", "2.0", "2 0", "1 9"))
        for text in (get_text(each) for each in elements(alice.get("/"), ".grids td a"))
    )


def test_the_largest_changes_of_two_spans_are_shown(world: World, alice: Client) -> None:
    line = _line(world)
    line.step(until=41, at=26, change=-0.08)
    line.detect()
    for span in ("Last 7 days", "Last 30 days"):
        text = _section(alice, span)
        assert "−8" in text
        assert "Hello: Requests per second" in text
        assert "commit 26" in text
    ChangePoint.objects.update(found_at=utc_now() - timedelta(days=10))
    forget_parts()
    assert "No change was detected" in _section(alice, "Last 7 days")
    assert "commit 26" in _section(alice, "Last 30 days")
    ChangePoint.objects.update(state="dismissed")
    forget_parts()
    assert "No change was detected" in _section(alice, "Last 30 days")


def test_a_commit_is_one_change_however_many_cases_show_it(world: World, alice: Client) -> None:
    line = _line(world, cases=3)
    for case in range(3):
        line.step(until=41, at=26, change=-0.08, case=case, seed=case)
    line.detect()
    assert ChangePoint.objects.count() == 3
    assert _section(alice, "Last 7 days").count("Hello: Requests per second") == 1


def test_open_alerts_are_shown_to_members_only(world: World, alice: Client, client: Client) -> None:
    alert = raise_alert(_line(world, cases=2))
    set_public(member=world.alice, project=Project.objects.get(), public=True)
    page = alice.get("/")
    assert f"/alerts/{alert.pk}/" in values(page, "main a", "href")
    assert "Hello: Requests per second −8" in _section(alice, "Open alerts")
    public = client.get(PLACE)
    assert "Open alerts" not in get_text(public)
    assert "/alerts/" not in public.content.decode()
    assert "Hello: Requests per second" in _section(client, "Last 7 days", PLACE)
    alert.state = "resolved"
    alert.save()
    assert "No open alert" in _section(alice, "Open alerts")


def test_current_runs_show_their_progress(world: World, alice: Client) -> None:
    assert "Current runs" not in get_text(alice.get("/"))
    run = make_run(world.alice, world.shas, rounds=4)
    trial = run.jobs.get().trials.order_by("position")[0]
    run.jobs.get().trials.filter(pk=trial.pk).update(state="measured", validity="valid")
    text = _section(alice, "Current runs")
    assert "1 of 12 trials" in text
    assert "queued" in text
    page = alice.get("/")
    progress = element(page, "main progress")
    assert (progress["value"], progress["max"]) == ("1", "12")


@pytest.fixture
def other(world: World, tmp_path: Path) -> Project:
    """Another project of the team, with a result."""
    project = create_project(
        member=world.alice,
        slug="other",
        name="Other things",
        repository_url=str(world.repository),
    )
    source = DEFINITION.replace("title: Hello", "title: Another thing")
    line = make_lone_line(world, project, source)
    line.measure({0: 10.0})
    return project


def make_lone_line(world: World, project: Project, source: str) -> Line:
    definition = make_definition(world.alice, project, slug="another", source=source)
    commit = Project.objects.get(slug="server").commits.order_by("position")[0]
    own = commit.__class__.objects.create(
        project=project, sha="f" * 40, parents=[], subject="begin", author="Ada",
        committed_at=utc_now(), position=0, mainline=True,
    )  # fmt: skip
    return Line(
        member=world.alice, project=project, benchmark=definition.benchmark, host=world.host,
        cases=store_cases(definition), commits=[own],
    )  # fmt: skip


def test_a_project_is_shown_alone(
    world: World, other: Project, alice: Client, mallory: Client, bob: Client
) -> None:
    assert "Another thing" in get_text(alice.get("/"))
    assert "Hello" in _section(alice, "All cases")
    alone = get_text(alice.get("/?project=other"))
    assert "Another thing" in alone
    assert "Hello" not in _section(alice, "All cases", "/?project=other")
    assert "No run has ended yet" in alone
    chosen = values(bob.get("/?project=other"), "main [aria-label=Project] [aria-current]", "href")
    assert chosen == ["/?project=other"]
    assert alice.get("/?project=none").status_code == 404
    assert mallory.get("/?project=other").status_code == 404
    assert "Another thing" not in get_text(mallory.get("/"))


def test_visitors_see_only_their_project(world: World, other: Project, client: Client) -> None:
    set_public(member=world.alice, project=Project.objects.get(slug="server"), public=True)
    page = client.get(f"{PLACE}?project=other")
    assert page.status_code == 200
    assert "Another thing" not in get_text(page)
    links = values(page, ".grids td a", "href")
    assert links
    assert all(client.get(link).status_code == 200 for link in links)


def _fill(world: World, benchmarks: int, cases: int) -> None:
    """Add benchmarks with 20 points of each case, without their trials."""
    project = Project.objects.get(slug="server")
    metric = StoredMetric.objects.get(key="requests.rate")
    line = _line(world)
    for number in range(benchmarks):
        benchmark = Benchmark.objects.create(
            project=project, slug=f"filled-{number}", title=f"Filled {number}"
        )
        rows = Case.objects.bulk_create(
            Case(benchmark=benchmark, key=f"{number:04x}{case:012x}", parameters={"n": case},
                 label=f"framework framework-{case}, page hello")
            for case in range(cases)
        )  # fmt: skip
        series = Series.objects.bulk_create(
            Series(benchmark=benchmark, case=case, host=world.host, metric=metric) for case in rows
        )
        Point.objects.bulk_create(
            Point(
                series=each, commit=commit, at=commit.committed_at, position=commit.position,
                mean=1000 + 7 * place, run_count=1, mean_log=None, m2_log=None, configuration=0,
                epoch=0, trials=5, suspect=0, invalid=0, values=[], blocks=[], places=[], runs=[],
                builds=[],
            )
            for each in series
            for place, commit in enumerate(line.commits[:20])
        )  # fmt: skip


def test_three_hundred_cells_are_two_queries_and_a_small_page(world: World, alice: Client) -> None:
    _fill(world, benchmarks=4, cases=90)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        series = load_overview_points(world.alice)
    assert len(queries) == 2, "the second one finds definitions that mix loops"
    assert len(series) == 300
    # Benchmarks take turns, so a large one leaves the others their places.
    shares = {each.benchmark: 0 for each in series}
    for each in series:
        shares[each.benchmark] += 1
    assert shares.pop("hello") == 1
    assert max(shares.values()) - min(shares.values()) <= 1
    assert {each.cells for each in series} == {1, 90}
    assert all(len(each.points) == 16 for each in series if each.benchmark != "hello")
    page = alice.get("/")
    assert len(page.content) < MOST_BYTES
    assert len(elements(page, ".grids td svg")) == 300
    assert "15 more in the history" in get_text(page)


def _count_queries(client: Client, address: str) -> int:
    client.get(address)
    forget_parts()
    with CaptureQueriesContext(connection) as queries:
        assert client.get(address).status_code == 200
    return len(queries)


def test_the_number_of_queries_does_not_grow(world: World, alice: Client, client: Client) -> None:
    set_public(member=world.alice, project=Project.objects.get(), public=True)
    raise_alert(_line(world, cases=2))
    before = [_count_queries(alice, "/"), _count_queries(client, PLACE)]
    for number in range(3):
        line = build_line(
            world.alice, Project.objects.get(), world.host, slug=f"more-{number}", cases=3
        )
        for case in range(3):
            line.step(until=41, at=26, change=-0.08, case=case, seed=case)
        line.detect()
    assert [_count_queries(alice, "/"), _count_queries(client, PLACE)] == before


def test_an_open_loop_is_shown_by_its_latency(world: World) -> None:
    source = DEFINITION.replace("  duration_s: 0.6", "  rate: 100\n  duration_s: 0.6")
    definition = make_definition(world.alice, Project.objects.get(), slug="open", source=source)
    run = make_run(world.alice, world.shas[:1], benchmark="open", rounds=1)
    for trial in run.jobs.get().trials.select_related("case", "job__host", "variant"):
        record_trial(trial, {"requests.rate": 100.0, "latency.p50": 0.001, "latency.p99": 0.02})
    shown = {each.benchmark: each.metric for each in load_overview_points(world.alice)}
    assert shown == {"hello": "requests.rate", definition.benchmark.slug: "latency.p99"}


def test_each_case_of_a_mixed_matrix_is_shown_by_its_own_loop(world: World) -> None:
    make_definition(world.alice, world.project, slug="mixed", source=MIXED_LOOPS)
    run = make_run(world.alice, world.shas[:1], benchmark="mixed", rounds=1)
    for trial in run.jobs.get().trials.select_related("case", "job__host", "variant"):
        record_trial(trial, {"requests.rate": 100.0, "latency.p50": 0.001, "latency.p99": 0.02})
    shown = {each.case_label: each.metric for each in load_overview_points(world.alice)}
    assert shown["loop closed, connections 4"] == "requests.rate"
    assert shown["loop open, connections 4"] == "latency.p99"


def _draw(series: Sequence[float], kinds: Sequence[int] = ()) -> str:
    return draw_change_sparkline(
        [
            CommitValue(value=value, kind=kind)
            for value, kind in zip(series, kinds or [0] * len(series), strict=True)
        ]
    )


def test_a_steady_history_is_a_flat_line() -> None:
    assert _draw([1000, 1000, 1000]) == "M2 10h0L32 10L62 10"
    heights = {int(part.split()[1].removesuffix("h0")) for part in
               _draw([1000, 1002, 998, 1001]).replace("L", "M").split("M")[1:]}  # fmt: skip
    assert max(heights) - min(heights) <= 1


def test_a_change_is_drawn_in_proportion() -> None:
    assert _draw([100, 100, 95]) == "M2 10h0L32 10L62 14"
    assert _draw([100, 100, 50]).endswith(f"L62 {CHANGE_HEIGHT - 2}")


def test_values_that_are_not_comparable_are_not_connected() -> None:
    assert _draw([100, 100, 90, 90], [0, 0, 1, 1]).count("M") == 2
    assert _draw([5.0]) == "M2 10h0"
    assert _draw([]) == ""
    assert _draw([0.0, 0.0]) == "M2 10h0L62 10"


def test_hosts_are_columns(world: World, alice: Client) -> None:
    line = _line(world, cases=2)
    second = Host.objects.create(
        team=world.alice.team, profile=world.host.profile, name="another", transport="local"
    )
    line.measure({0: 1000.0}, case=0)
    line.measure({0: 1000.0}, case=1)
    Line(
        member=line.member, project=line.project, benchmark=line.benchmark, host=second,
        cases=line.cases, commits=line.commits,
    ).measure({0: 500.0}, case=1)  # fmt: skip
    tables = elements(alice.get("/"), ".grids table")
    table = next(each for each in tables if len(elements(each, "tbody tr")) == 2)
    assert [get_text(each) for each in elements(table, "thead th")] == ["Case", "another", "here"]
    first, other = elements(table, "tbody tr")
    assert [bool(get_text(each)) for each in elements(first, "td")] == [False, True]
    assert [bool(get_text(each)) for each in elements(other, "td")] == [True, True]
