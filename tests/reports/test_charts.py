"""Charts of reports as SVG: well-formed, bounded, safe with any names, and only of cells."""

import math
import re
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from orchestrator.reports.chart_data import MAX_ROWS, choose_chart
from orchestrator.reports.chart_spec import ChartSpec
from orchestrator.reports.charts import NARROW, WIDE, Chart, _build_table_charts
from orchestrator.reports.pivot import build_table
from orchestrator.reports.pivot_model import Observation, PivotTable, Sample
from orchestrator.reports.report_spec import from_data
from orchestrator.reports.svg import choose_log_ticks, choose_ticks, shorten

SVG = "{http://www.w3.org/2000/svg}"
RATE: dict[str, Any] = {"metric": "requests.rate", "title": "Rate"}
HOSTILE = "<script>alert(1)</script>&\"'\x00\x1b\ud800]]>\u202e" + "W" * 300


def observe(value: float | None, published: bool = False, **place: Any) -> Observation:
    """A case with three runs of almost the same value, or a reference result."""
    names = {"host": "a", "commit": "c", "source": "published" if published else "measured"}
    samples = [
        Sample(
            state="measured", validity="valid", reasons=[], message="", run=run,
            values={
                "requests.rate": value * spread,
                **{f"latency.p{q}": q * spread / value for q in (10, 50, 90, 99)},
            },
        )
        for run, spread in enumerate((1, 1.02, 1.04), start=1)
        if value is not None
    ]  # fmt: skip
    return Observation(
        place={**names, **place},
        samples=[] if published else samples,
        published={"requests.rate": value or 0.0} if published else {},
        model="closed",
    )


def lay_out(table: dict[str, Any], *seen: Observation, **more: Any) -> PivotTable:
    spec = from_data({"version": 1, "title": "T", **more, "tables": [table]})
    axes = ("name", "size", "level")
    return build_table(spec, spec.tables[0], seen, orders={}, axes=axes)


def draw(table: PivotTable, **spec: Any) -> Chart:
    (chart,) = _build_table_charts(table, [ChartSpec(**spec)], 0)
    return chart


def read_texts(svg: str) -> list[str]:
    root = ET.fromstring(svg.removeprefix('<?xml version="1.0" encoding="UTF-8"?>'))
    return [each.text or "" for each in root.iter() if each.tag.rpartition("}")[2] == "text"]


def check(chart: Chart) -> None:
    """The three pictures are XML without scripts, links and styles, and inside of their size."""
    for svg in (chart.wide, chart.narrow, chart.render_file()):
        root = ET.fromstring(svg.removeprefix('<?xml version="1.0" encoding="UTF-8"?>'))
        names = {each.tag.rpartition("}")[2] for each in root.iter()}
        assert names <= {"svg", "g", "title", "text", "path", "rect", "circle", "style"}
        attributes = {name for each in root.iter() for name in each.attrib}
        assert not {each for each in attributes if each.startswith("on") or "href" in each}
        _, _, width, height = map(float, root.attrib["viewBox"].split())
        assert width in (WIDE, NARROW, WIDE + 32)
        assert 40 < height < 8000
        for each in root.iter():
            places = [each.attrib[name] for name in ("x", "cx") if name in each.attrib]
            places += re.findall(r"[ML](-?[\d.]+) ", each.attrib.get("d", ""))
            assert all(-1 <= float(place) <= width + 1 for place in places), each.attrib


def names_table(count: int = 3, **more: Any) -> PivotTable:
    seen = [observe(1000.0 * n + 1, name=f"n{n}") for n in range(count)]
    return lay_out({"rows": ["name"], "columns": [RATE], "sort": "Rate"}, *seen, **more)


def test_bars_have_values_intervals_and_reasons() -> None:
    seen = [
        observe(1000, name="fast"),
        observe(500, name="slow"),
        observe(700, published=True, name="slow"),
    ]
    table = lay_out({"rows": ["name"], "columns": [RATE]}, *seen, published="columns")
    chart = draw(table, kind="bars")
    check(chart)
    texts = read_texts(chart.wide)
    assert {"fast", "slow", "Rate", "Rate, published", "Rate (1/s)"} <= set(texts)
    assert "not published" not in texts
    assert "–" in texts
    assert chart.wide.count("whisker") == 2
    assert chart.wide.count("hollow") == 2
    # A reference result has the colour of the measured column.
    assert 's2"' not in chart.wide
    assert "510" in " ".join(texts)


def test_ranks_show_the_possible_ranks_of_each_row() -> None:
    chart = draw(names_table(), kind="ranks")
    check(chart)
    assert "n2: rank 1, 2" in chart.wide
    names = ("n0", "n1", "n2")
    assert [each for each in read_texts(chart.wide) if each in names] == ["n2", "n1", "n0"]


def test_lines_need_numbers_and_have_a_panel_for_each_value() -> None:
    seen = [
        observe(100 * level + (0 if size == "big" else 50), size=size, level=level)
        for size in ("big", "small")
        for level in (1, 2, 4)
    ]
    seen.append(observe(90, size="big", level="none"))
    table = lay_out({"rows": ["size", "level"], "columns": [RATE]}, *seen)
    chart = draw(table, kind="lines", x="level", panels="size")
    check(chart)
    texts = read_texts(chart.wide)
    assert {"big", "small", "1", "2", "4", "Level", "Rate (1/s)"} <= set(texts)
    assert chart.wide.count('class="level') == 2  # In the panel, and in the legend.
    assert list(_build_table_charts(table, [ChartSpec(kind="lines", x="size")], 0)) == []


def test_curves_show_the_percentiles_of_at_most_eight_columns() -> None:
    seen = [observe(100 + n, name=f"n{n}") for n in range(9)]
    metrics = [{"metric": f"latency.p{q}", "unit": "ms"} for q in (10, 50, 90, 99)]
    columns = [{"title": f"c{n}", "where": f'name == "n{n}"'} for n in range(9)]
    data = {"rows": ["metric"], "metrics": [*metrics, {"metric": "requests.rate"}]}
    table = lay_out({**data, "columns": columns}, *seen)
    assert choose_chart(table) == ChartSpec(kind="curves")
    chart = draw(table, kind="curves")
    check(chart)
    assert chart.note == "The first 8 of 9 curves."
    assert {"p10", "p50", "p90", "p99", "Latency (ms)", "c7"} <= set(read_texts(chart.wide))


def test_a_heat_map_shows_values_and_words_for_missing_ones() -> None:
    seen = [
        observe(None if (name, size) == ("n1", 2) else 10.0 ** (n + size), name=name, size=size)
        for n, name in enumerate(("n0", "n1"))
        for size in (1, 2)
    ]
    column = {**RATE, "across": ["size"], "title": "s{size}"}
    chart = draw(lay_out({"rows": ["name"], "columns": [column]}, *seen), kind="heatmap")
    check(chart)
    texts = read_texts(chart.wide)
    assert {"not measured", "s1", "s2", "n0", "n1", "higher is better"} <= set(texts)
    shades = [float(each) for each in re.findall(r'fill-opacity="([\d.]+)"', chart.wide)]
    assert (min(shades), max(shades)) == (0.05, 0.5)


def test_a_chart_of_many_rows_is_bounded_and_says_so() -> None:
    table = names_table(MAX_ROWS + 40)
    assert choose_chart(table) is None
    for kind in ("bars", "heatmap", "ranks"):
        chart = draw(table, kind=kind)
        check(chart)
        assert chart.note == f"The first {MAX_ROWS} of {MAX_ROWS + 40} rows."
        assert len(chart.render_file()) < 120_000


@pytest.mark.parametrize("kind", ["bars", "heatmap", "ranks"])
def test_hostile_names_are_text(kind: str) -> None:
    seen = [observe(1000, name=HOSTILE), observe(10, name="b")]
    table = lay_out(
        {"title": HOSTILE.replace("\ud800", "")[:200], "rows": ["name"], "columns": [RATE],
         "sort": "Rate"}, *seen,
    )  # fmt: skip
    chart = draw(table, kind=kind)
    check(chart)
    assert "<script" not in chart.render_file()
    assert "\x00" not in chart.render_file()


def test_the_colours_of_a_file_are_those_of_the_pages() -> None:
    svg = draw(names_table(), kind="bars").render_file()
    assert "var(--" not in svg
    assert "#4a6fa5" in svg
    assert "prefers-color-scheme: dark" in svg


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"kind": "lines"}, "x: name a dimension"),
        ({"kind": "bars", "scale": "log"}, "scale: bars have a linear scale"),
        ({"kind": "bars", "columns": ["a*b*c*"]}, "at most two"),
        ({"kind": "lines", "x": "size"}, "tables[0].charts[0].x: size is no dimension"),
        ({"kind": "curves"}, "tables[0].charts[0].kind: curves need metric"),
        ({"kind": "ranks"}, "tables[0].charts[0].kind: ranks need sort"),
        ({"kind": "bars", "columns": ["Nope*"]}, "charts[0].columns[0]: there is no column"),
    ],
)
def test_a_chart_that_does_not_fit_its_table_is_refused(spec: dict[str, Any], words: str) -> None:
    with pytest.raises(Exception, match=re.escape(words)):
        lay_out({"rows": ["name"], "columns": [RATE], "charts": [spec]}, observe(1, name="a"))


VALUES = st.one_of(st.none(), st.sampled_from([0.0, 1e-9, 1e15]), st.floats(1e-3, 1e6))


@settings(max_examples=25)
@given(st.lists(VALUES, min_size=1, max_size=12), st.sampled_from(["linear", "log"]))
@example([1e15, 1e15], "linear")
def test_any_values_are_drawn_or_left_out(found: list[float | None], scale: str) -> None:
    seen = [
        observe(value if value != 0 else 1e-12, size=place % 3, level=place // 3)
        for place, value in enumerate(found)
    ]
    table = lay_out({"rows": ["size", "level"], "columns": [RATE], "sort": "Rate"}, *seen)
    specs = [
        ChartSpec(kind="bars"),
        ChartSpec(kind="ranks"),
        ChartSpec(kind="heatmap", scale=scale),
        ChartSpec(kind="lines", x="level", panels="size", scale=scale),
    ]
    for chart in _build_table_charts(table, specs, 0):
        check(chart)


@given(st.floats(-1e12, 1e12), st.floats(1e-6, 1e12), st.floats(1e-9, 1e9), st.floats(1, 1e9))
@example(124999999975.0, 1e-06, 2.0, 1.0)
@example(900719925.8984375, 1e-06, 1.0, 1.0)
def test_ticks_surround_the_values_and_are_few(
    low: float, span: float, start: float, factor: float
) -> None:
    ticks = choose_ticks(low, low + span)
    assert len(ticks) <= 8
    # Less than this share of the axis cannot be seen.
    slack = 1e-6 * (ticks[-1] - ticks[0])
    assert ticks[0] <= low + slack
    assert ticks[-1] >= low + span - slack
    powers = choose_log_ticks(start, start * factor)
    assert 2 <= len(powers) <= 14
    assert powers[0] <= start * 1.0001
    assert powers[-1] >= start * factor * 0.9999
    assert all(math.isfinite(each) for each in powers)


@given(st.text(max_size=80), st.floats(20, 400))
def test_shortened_names_keep_their_ends(name: str, width: float) -> None:
    shown = shorten(name, width)
    assert len(shown) <= max(len(name), 5)
