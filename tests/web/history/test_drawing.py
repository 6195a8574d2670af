"""The chart that the server draws, on the page of histories and in frames of other pages."""

from typing import Any

from django.test import Client

from orchestrator.benchmarks.models import Project
from orchestrator.results.models import Series
from tests.support.commit_lines import Line, build_line
from tests.support.html_pages import element, elements, get_text, values
from tests.support.world import World

HISTORY = "/history/?benchmark=server/long"


def _line(world: World) -> Line:
    project = Project.objects.get(slug="server")
    return build_line(world.alice, project, world.host, slug="long")


def _draw(client: Client) -> Any:
    return element(client.get(HISTORY), "noscript .drawn")


def _heights(drawing: Any) -> list[float]:
    lines = values(drawing, "polyline", "points")
    return [float(corner.split(",")[1]) for line in lines for corner in line.split()]


def test_the_page_has_the_chart_of_its_table_without_scripts(world: World, alice: Client) -> None:
    line = _line(world)
    line.measure(dict.fromkeys(range(40), 1000.0))
    drawing = _draw(alice)
    assert len(elements(drawing, "path")) == 25
    rows = [get_text(each) for each in elements(alice.get(HISTORY), ".commits-table tbody th code")]
    titles = [get_text(each).split()[0] for each in elements(drawing, "path title")]
    assert titles == rows[::-1]
    older = values(alice.get(HISTORY), "a[rel=next]", "href")[0]
    before = element(alice.get(f"/history/{older}"), "noscript .drawn")
    assert len(elements(before, "path")) == 15


def test_commits_stand_next_to_their_dates(world: World, alice: Client) -> None:
    line = _line(world)
    line.measure({0: 1000.0, 1: 1000.0, 2: 1000.0, 9: 1000.0})
    named = [get_text(each) for each in elements(_draw(alice), ".named span")]
    assert named == [
        f"{line.commits[place].sha[:7]} {line.commits[place].committed_at:%Y-%m-%d}"
        for place in (0, 2, 9)
    ]
    assert len(named) == 3


def test_two_points_are_two_names(world: World, alice: Client) -> None:
    _line(world).measure({0: 1000.0, 1: 1000.0})
    assert len(elements(_draw(alice), ".named span")) == 2


def test_a_cut_axis_is_marked(world: World, alice: Client) -> None:
    line = _line(world)
    line.measure({0: 1000.0, 1: 1020.0, 2: 990.0})
    drawing = _draw(alice)
    assert "axis cut" in get_text(drawing)
    assert element(drawing, "svg").has_attr("data-cut")
    line.measure(dict.fromkeys(range(3, 8), 1.0))
    drawing = _draw(alice)
    assert "axis cut" not in get_text(drawing)
    assert not element(drawing, "svg").has_attr("data-cut")
    assert get_text(elements(drawing, ".bound")[1]) == "0 1/s"


def test_larger_values_are_higher(world: World, alice: Client) -> None:
    _line(world).measure({0: 1000.0, 1: 2000.0, 2: 1500.0})
    first, second, third = _heights(_draw(alice))
    assert second < third < first


def test_values_that_are_not_comparable_are_not_connected(world: World, alice: Client) -> None:
    line = _line(world)
    line.measure({0: 1000.0, 1: 1000.0}, configuration=1)
    line.measure({2: 500.0, 3: 500.0}, configuration=2)
    drawing = _draw(alice)
    assert [len(line.split()) for line in values(drawing, "polyline", "points")] == [2, 2]
    assert len(elements(drawing, "polygon")) == 2


def test_one_point_is_no_line(world: World, alice: Client) -> None:
    _line(world).measure({0: 1000.0})
    assert elements(alice.get(HISTORY), "noscript .drawn") == []


def test_a_frame_has_the_same_chart(world: World, alice: Client) -> None:
    line = _line(world)
    line.measure(dict.fromkeys(range(5), 1000.0))
    series = Series.objects.get(case=line.cases[0])
    frame = alice.get(f"/embed/{series.pk}")
    assert str(element(frame, ".drawn svg")) == str(element(_draw(alice), "svg"))
    assert "axis cut" in get_text(frame)
