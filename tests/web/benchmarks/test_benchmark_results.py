"""The results on the page of a benchmark: newest values, sparklines, latest runs, badges."""

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.support.factories import make_definition
from tests.support.html_pages import element, elements, get_text, values
from tests.support.world import World

SOURCE = """\
version: 1
title: Wide
subject: {start: ["true", "{port}"]}
load: {path: /, connections: "{connections}", duration_s: 0.6, warmup_s: 0.2}
matrix: {connections: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]}
rounds: 2
"""


def _show(client: Client, slug: str = "hello") -> str:
    return client.get(reverse("benchmark", args=["server", slug])).content.decode()


def test_the_newest_value_of_each_primary_metric_is_shown(
    world: World, alice: Client, bob: Client, mallory: Client
) -> None:
    world.measure_run(1000, 1001, 850, rounds=6)
    for client in (alice, bob):
        table = element(_show(client), ".newest-values")
        head, row = get_text(element(table, "thead")), get_text(element(table, "tbody"))
        assert head == (
            "Case Host Requests per second Latency p50 Server CPU per 1,000 requests Measured"
        )
        assert row.startswith("connections 4 here 850 1/s 4.7")
        assert "1.06 s / 1k" in row
    address = reverse("benchmark", args=["server", "hello"])
    assert mallory.get(address).status_code == 404


def test_sparklines_follow_the_commits(world: World, alice: Client) -> None:
    world.measure_run(1000, 1001, 500, rounds=6)
    lines = values(_show(alice), ".newest-values polyline", "points")
    rate = [float(each.split(",")[1]) for each in lines[0].split()]
    assert len(rate) == 3
    assert abs(rate[0] - rate[1]) < 0.5
    assert rate[2] > rate[1] + 5, "half the rate is further down"


def test_each_value_links_to_its_history(world: World, alice: Client) -> None:
    world.measure_run(1000, 850)
    links = values(_show(alice), ".newest-values a:not(.term)", "href")
    assert len(links) == 3
    assert [alice.get(link).status_code for link in links] == [200] * 3
    assert "metric=latency.p50" in links[1]


def test_latest_runs_and_badges_are_shown(world: World, alice: Client) -> None:
    make_definition(world.alice, world.project, slug="wide", source=SOURCE)
    runs = [world.measure_run(1000, 850, rounds=6) for _ in range(6)]
    other = world.measure_run(1000, 850, benchmark="wide")
    page = _show(alice)
    rows = elements(page, ".runs-table tbody tr")
    assert len(rows) == 5
    assert str(runs[-1].pk) in str(rows[0])
    assert str(other.pk) not in page
    assert "regressed" in get_text(rows[0])
    badges = values(page, "section[aria-labelledby=badges] img", "src")
    shown = [alice.get(badge).content.decode() for badge in badges]
    assert ["regressed" in shown[0], "850 1/s" in shown[1].replace("\u202f", " ")] == [True, True]


def test_an_unmeasured_benchmark_says_so(world: World, alice: Client) -> None:
    make_definition(world.alice, world.project, slug="wide", source=SOURCE)
    text = get_text(_show(alice, "wide"))
    assert "Nothing has been measured on the default branch yet." in text
    assert "No runs yet." in text


def test_many_cases_are_limited_and_need_no_more_queries(world: World, alice: Client) -> None:
    make_definition(world.alice, world.project, slug="wide", source=SOURCE)
    counts = []
    for slug in ("hello", "wide"):
        world.measure_run(1000, 850, benchmark=slug)
        with CaptureQueriesContext(connection) as queries:
            page = _show(alice, slug)
        counts.append(len(queries))
    assert len(elements(page, ".newest-values tbody tr")) == 12
    assert "More cases in the history" in page
    assert counts[1] <= counts[0]
