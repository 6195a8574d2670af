"""A benchmark of an imported history has no definition; every page and operation copes with it."""

from pathlib import Path

import pytest
from django.test import Client

from orchestrator.benchmarks.models import Benchmark
from orchestrator.measurements.ingest import forget_cached
from orchestrator.results.models import Series
from tests.api.conftest import make_client
from tests.support.histories import build_data_js, import_history
from tests.support.html_pages import get_text
from tests.support.world import World


@pytest.fixture(autouse=True)
def _history(world: World, tmp_path: Path) -> None:
    forget_cached()
    import_history(world.alice, build_data_js(world.shas), tmp_path)


def test_pages_show_the_benchmark_or_say_that_it_has_no_definition(
    world: World, alice: Client
) -> None:
    series = Series.objects.get(benchmark__slug="pipeline").pk
    sides = f"benchmark=server/pipeline&baseline={world.shas[0]}&contender={world.shas[1]}"
    wrong = []
    for path, words in {
        "/": "Overview",
        "/benchmarks/": "pipeline",
        "/benchmarks/server/pipeline/": "This benchmark has no definition",
        "/history/?benchmark=server/pipeline": "Script: time",
        f"/history/{series}/points/{world.shas[1]}": "60",
        f"/compare/?{sides}": "Script: time",
        f"/compare/choose?{sides}": "pipeline",
        "/schedules/": "Schedules",
        "/projects/server/": "pipeline",
        "/projects/server/badges?benchmark=pipeline": "pipeline",
    }.items():
        answer = alice.get(path)
        if answer.status_code != 200 or words not in get_text(answer):
            wrong.append((path, answer.status_code, get_text(answer)[:1000]))
    assert wrong == []


def test_what_needs_a_definition_does_not_offer_it(world: World, alice: Client) -> None:
    Benchmark.objects.filter(slug="pipeline").update(slug="a-first-one")
    for path in ("/runs/new", "/runs/new?benchmark=server/a-first-one", "/reports/new"):
        answer = alice.get(path)
        assert answer.status_code == 200
        assert "a-first-one" not in get_text(answer)
        assert "(server/hello)" in get_text(answer)
    answer = alice.get("/reports/new?benchmark=server/a-first-one")
    assert answer.status_code == 404
    assert "The benchmark a-first-one has no definition yet" in get_text(answer)


def test_the_api_answers_for_the_benchmark(world: World) -> None:
    client = make_client(world.alice)
    wrong = []
    sides = {"baseline": world.shas[0], "contender": world.shas[1]}
    for path, query, status in (
        ("benchmarks", {}, 200),
        ("benchmarks/server/pipeline", {}, 200),
        ("benchmarks/server/pipeline/definitions", {}, 200),
        ("benchmarks/server/pipeline/badges", {}, 200),
        ("comparisons", {"benchmark": "pipeline", **sides}, 200),
        ("results", {"benchmark": "pipeline"}, 200),
    ):
        answer = client.get(path, **query)
        if answer.status_code != status:
            wrong.append((path, answer.status_code, getattr(answer, "content", b"")[:300]))
    plan = client.post("runs", {"benchmark": "pipeline", "contenders": [world.shas[1]]})
    assert (plan.status_code, "no definition" in plan.json()["detail"]) == (404, True)
    assert wrong == []
