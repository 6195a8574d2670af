"""The compact data of a history says the same as its points."""

import json
from datetime import date
from itertools import accumulate
from typing import Any

import pytest

from orchestrator.histories.commit_names import forget_commit_names, load_commit_names
from orchestrator.histories.data import build_history_data
from orchestrator.histories.series_header import find_series_header_by_names, load_series_header
from orchestrator.results.models import Series
from tests.histories.test_histories import Lane
from tests.support.factories import Personas


@pytest.fixture
def lane(personas: Personas) -> Lane:
    return Lane(personas)


def _data(lane: Lane, branch: str = "") -> Any:
    series = Series.objects.get(metric__key="requests.rate")
    return json.loads(build_history_data(load_series_header(lane.alice, series.pk), branch))


def test_history_data_equal_the_points(lane: Lane) -> None:
    commits = [lane.commit(name, position=3 * place) for place, name in enumerate("abcdef")]
    for place, commit in enumerate(commits):
        lane.measure(
            commit, 1234.5678 * (1 + place / 7), n=1 + place, epoch=place // 3, configuration=-5
        )
    lane.measure(commits[2], 900, validity="invalid", epoch=0, configuration=-5)
    lane.measure(commits[1], 2000, epoch=1, configuration=7)
    columns, points = _data(lane)["points"], lane.history(every=True).points

    assert columns["commit"] == [point.commit.sha[:8] for point in points]
    assert columns["value"] == pytest.approx([point.value for point in points], rel=1e-5)
    assert list(accumulate(columns["position"])) == [0, 3, 6, 9, 12, 15]
    assert list(accumulate(columns["day"])) == [
        (point.commit.committed_at.date() - date(1970, 1, 1)).days for point in points
    ]
    assert list(accumulate(columns["at"])) == [int(point.at.timestamp()) for point in points]
    for name, own in (("trials", "trials"), ("invalid", "excluded"), ("epoch", "epoch")):
        assert columns[name] == [getattr(point, own) for point in points]
    assert columns["suspect"] == 0
    for half_width, point in zip(columns["half_width"], points, strict=True):
        assert (half_width is None) == (point.interval is None)
        if point.interval is not None:
            assert point.value * 2.718281828 ** (half_width / 1e4) == pytest.approx(
                point.interval[1], rel=1e-4
            )


def test_history_data_have_other_points_of_a_commit_and_breaks(lane: Lane) -> None:
    a, b = lane.commit("a", position=0), lane.commit("b", position=1)
    lane.measure(a, 100, epoch=0, configuration=7)
    lane.measure(a, 120, epoch=1, configuration=7)
    lane.measure(b, 120, epoch=1, configuration=-9)
    data = _data(lane)

    assert (data["others"]["point"], data["others"]["epoch"]) == (0, 0)
    assert data["others"]["value"] == [pytest.approx(100.2, rel=1e-3)]
    assert data["points"]["configuration"] == [1, 0]
    assert data["breaks"] == [{"before": 1, "host": None, "definition": True, "bridge": None}]


def test_history_data_mark_merges_and_merged_commits(lane: Lane) -> None:
    a = lane.commit("a", position=0)
    side = lane.commit("s", a, position=1)
    side.mainline = False
    side.save()
    merge = lane.commit("m", a, side, position=2)
    for commit in (a, side, merge):
        lane.measure(commit, 100)
    forget_commit_names()
    data = _data(lane)

    assert (data["merges"], data["side"]) == ([2], [1])


def test_a_branch_has_positions_after_its_fork_point(lane: Lane) -> None:
    a, b, c = (lane.commit(name, position=place) for place, name in enumerate("abc"))
    x = lane.commit("x", b)
    lane.project.branches = [["work", x.sha]]
    lane.project.save()
    for commit in (a, b, c, x):
        lane.measure(commit, 100)

    data = _data(lane, "work")
    assert (data["points"]["position"], data["series"]["branch"]) == ([0, 1, 1], "work")


def test_an_empty_series_has_empty_data(lane: Lane) -> None:
    empty = lane.history()
    assert empty.points == ()
    lane.measure(lane.commit("a"), 100)
    data = _data(lane)
    assert data["points"]["commit"] == data["points"]["value"] == data["points"]["trials"] == []


def test_names_find_only_series_of_the_team(lane: Lane, personas: Personas) -> None:
    lane.measure(lane.commit("a", position=0), 100)
    names = {"benchmark": "b", "case": "c", "host": "elsewhere", "metric": "requests.rate"}
    header = find_series_header_by_names(lane.alice, project=None, **names)

    assert header is not None
    assert header == load_series_header(lane.alice, header.id)
    assert find_series_header_by_names(lane.alice, project="p", **names) == header
    assert find_series_header_by_names(lane.alice, project="other", **names) is None
    assert find_series_header_by_names(personas.mallory, project=None, **names) is None


def test_cached_commit_names_are_dropped_after_a_fetch(lane: Lane) -> None:
    a = lane.commit("a", position=0)
    forget_commit_names()
    (first,) = load_commit_names(lane.project.pk, None, [a.pk])
    a.mainline = False
    a.save()

    assert load_commit_names(lane.project.pk, None, [a.pk]) == [first]
    (anew,) = load_commit_names(lane.project.pk, a.committed_at, [a.pk])
    assert (first.side, anew.side, anew.short) == (False, True, a.sha[:8])
