"""Histories through the API: both forms, parts, branches."""

import pytest

from orchestrator.results.models import Series


@pytest.fixture
def history(world):
    run = world.measure_run(1000, 900, 800)
    return {
        "benchmark": "hello",
        "metric": "requests.rate",
        "case": run.jobs.get().trials.first().case.key,
        "host": "here",
    }


def test_columns_equal_points(world, alice, history):
    points = alice.get("history", **history).json()["points"]
    columns = alice.get("history", **history, format="columns").json()

    assert columns["points"]["commit"] == [sha[:8] for sha in world.shas]
    values = [point["value"] for point in points]
    assert columns["points"]["value"] == pytest.approx(values, rel=1e-5)
    assert columns["points"]["trials"] == 5
    assert columns["series"]["title"] == "Requests per second"
    assert columns["series"]["id"] == Series.objects.get(metric__key="requests.rate").pk


def test_columns_are_empty_without_measurements(alice, history):
    columns = alice.get("history", **history | {"metric": "latency.p90"}, format="columns").json()
    assert (columns["points"]["value"], columns["series"]["id"]) == ([], None)


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"metric": "nothing"}, 422),
        ({"case": "nothing"}, 404),
        ({"host": "nothing"}, 404),
        ({"branch": "nothing"}, 404),
        ({"format": "rows"}, 422),
        ({"format": "points", "limit": "0"}, 422),
    ],
)
def test_an_unknown_series_is_refused(alice, history, change, status):
    assert alice.get("history", **({"format": "columns"} | history | change)).status_code == status


def test_columns_are_hidden_from_strangers(mallory, bob, history):
    assert mallory.get("history", **history, format="columns").status_code == 404
    assert bob.get("history", **history, format="columns").status_code == 200


def test_points_are_paged(world, alice, history):
    newest = alice.get("history", **history, limit="2").json()
    assert [point["commit"]["commit"] for point in newest["points"]] == world.shas[1:]
    assert (newest["first"], newest["total"], newest["branch"]) == (1, 3, "main")

    older = alice.get("history", **history, before=newest["points"][0]["commit"]["short"]).json()
    assert [point["commit"]["commit"] for point in older["points"]] == world.shas[:1]
