"""Observations become a table: one case a cell, and a reason where there is no number."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.errors import InvalidRequestError
from orchestrator.reports.pivot import build_table
from orchestrator.reports.pivot_model import Observation, Sample
from orchestrator.reports.report_spec import ReportSpec, from_data

ORDERS = {
    "protocol": ["h1", "h2"],
    "rate": ["100", "1000"],
    "host": ["a", "b"],
    "source": ["measured", "published"],
}
AXES = ("protocol", "rate")


def sample(value: float | None, validity: str = "valid", **more) -> Sample:
    values = {} if value is None else {"requests.rate": value, "latency.p99": 1 / (value or 1)}
    fields = {"state": "measured", "reasons": [], "message": "", **more}
    return Sample(validity=validity, values=values, **fields)


def observe(protocol: str, rate: int, *values: float, host: str = "a", **more) -> Observation:
    """A case with a run of one trial for each value."""
    place = {"protocol": protocol, "rate": rate, "host": host, "source": "measured", "commit": "c"}
    fields = {
        "samples": [sample(value, run=run) for run, value in enumerate(values, start=1)],
        "baseline": protocol == "h1",
        "rest": (host, rate),
        "model": "closed",
        **more,
    }
    return Observation(place={**place, **fields.pop("place", {})}, **fields)


def report(table: dict, **more) -> ReportSpec:
    return from_data({"version": 1, "title": "T", **more, "tables": [table]})


def laid_out(table: dict, observations: list[Observation], **more):
    spec = report(table, **more)
    return build_table(spec, spec.tables[0], observations, orders=ORDERS, axes=AXES)


def grid(**more) -> list[Observation]:
    return [
        observe(protocol, rate, *(rate * factor * each for each in (1.0, 1.01, 1.02)), **more)
        for rate in (1000, 100)
        for protocol, factor in (("h2", 2.0), ("h1", 1.0))
    ]


RATE = {"metric": "requests.rate"}


def test_a_dimension_becomes_columns_in_the_order_of_the_axes():
    table = laid_out({"rows": ["rate"], "columns": [{**RATE, "across": ["protocol"]}]}, grid())
    assert [column.title for column in table.columns] == ["h1", "h2"]
    assert [row.heads for row in table.rows] == [("100",), ("1000",)]
    assert [[round(cell.value) for cell in row.cells] for row in table.rows] == [
        [101, 202],
        [1010, 2020],
    ]


def test_titles_may_name_the_dimension_and_values_may_be_renamed():
    columns = [{**RATE, "across": ["protocol"], "title": "{protocol} in req/s"}]
    names = {"protocol": {"h1": "HTTP/1.1"}}
    table = laid_out({"rows": ["rate"], "columns": columns}, grid(), names=names)
    assert [column.title for column in table.columns] == ["HTTP/1.1 in req/s", "h2 in req/s"]


def test_two_cases_never_share_a_cell():
    everything = [*grid(), *grid(host="b")]
    table = laid_out({"rows": ["protocol"], "columns": [RATE]}, everything)
    assert [head.dimension for head in table.heads] == ["host", "protocol", "rate"]
    assert len(table.rows) == 8
    assert {cell.kind for row in table.rows for cell in row.cells} == {"value"}


@given(
    st.lists(st.sampled_from([*product("ab", ("h1", "h2"), (100, 1000))]), unique=True, min_size=1),
    st.lists(st.sampled_from(["host", "protocol", "rate"]), unique=True, min_size=1),
    st.sampled_from([[], ["protocol"], ["rate", "host"]]),
)
def test_every_number_is_in_the_table_once(places, rows, across):
    observations = [
        observe(protocol, rate, 10.0 + number, host=host)
        for number, (host, protocol, rate) in enumerate(places)
    ]
    table = laid_out({"rows": rows, "columns": [{**RATE, "across": across}]}, observations)
    values = [cell.value for row in table.rows for cell in row.cells if cell.value is not None]
    assert sorted(values) == [10.0 + number for number in range(len(places))]


def test_a_column_limits_its_cases():
    columns = [{**RATE, "where": 'rate == 100 and protocol == "h2"', "title": "X"}]
    table = laid_out({"rows": ["host"], "columns": columns}, grid())
    assert [row.cells[0].value for row in table.rows] == [pytest.approx(202, rel=1e-3)]
    with pytest.raises(InvalidRequestError, match=r"columns\[0\]\.where: there is no"):
        laid_out({"rows": ["host"], "columns": [{**RATE, "where": "x == 1"}]}, grid())


def test_only_valid_and_suspect_trials_count_and_suspects_are_marked():
    believed = [sample(10.0, run=1), sample(11.0, "suspect", run=2), sample(10.4, run=3)]
    trials = [*believed, sample(99.0, "invalid", reasons=["swap: x"])]
    cell = laid_out(
        {"rows": ["rate"], "columns": [RATE]}, [observe("h1", 100, samples=trials)]
    ).rows[0].cells[0]  # fmt: skip
    assert cell.value == pytest.approx((10.0 * 11.0 * 10.4) ** (1 / 3))
    assert (cell.trials, cell.runs, cell.suspect, cell.excluded) == (3, 3, 1, 1)
    assert cell.low < cell.value < cell.high


def test_one_run_has_no_interval_and_no_certain_rank():
    """Its trials are alike, but another run may differ."""
    alike = [
        observe(protocol, 100, samples=[sample(base + each, run=1) for each in (0.0, 0.1, 0.2)])
        for protocol, base in (("h1", 10.0), ("h2", 90.0))
    ]
    table = {"rows": ["protocol"], "columns": [RATE], "sort": "Requests per second"}
    ranked = laid_out(table, alike)
    for row in ranked.rows:
        assert (row.cells[0].low, row.cells[0].high, row.cells[0].runs) == (None, None, 1)
        assert (row.cells[0].trials, row.rank_text) == (3, "1–2")
    assert any(
        note.startswith("No interval: 2 numbers of fewer than 3 runs") for note in ranked.notes
    )


@pytest.mark.parametrize(
    ("observation", "kind", "why"),
    [
        (observe("h1", 100), "unmeasured", "not measured"),
        (observe("h1", 100, unsupported="too old (see axum)"), "unsupported", "too old (see axum)"),
        (observe("h1", 100, samples=[sample(None, "", state="failed", message="it died\nlog")]),
         "failed", "it died"),
        (observe(
            "h1", 100, samples=[sample(None, "", state="unsupported", message="go is missing")]
         ),
         "unsupported", "go is missing"),
        (observe("h1", 100, samples=[sample(None, "", state="planned")]),
         "pending", "not measured yet"),
        (observe("h1", 100, samples=[sample(1.0, "invalid", reasons=["saturated: 80 %"])]),
         "invalid", ""),
        (observe("h1", 100, samples=[sample(None)]), "untold", "does not report it"),
        (observe("h1", 100, 1.0, unsupported="it was supported before"), "value", ""),
    ],
)  # fmt: skip
def test_a_cell_without_a_value_has_a_reason(observation, kind, why):
    cell = laid_out({"rows": ["rate"], "columns": [RATE]}, [observation]).rows[0].cells[0]
    assert cell.kind == kind
    assert why in cell.reason
    assert (cell.value is None) == bool(cell.reason)


def test_hosts_are_compared_with_one_of_them():
    slower = [
        observe(protocol, 100, *(100 * factor * each for each in (0.5, 0.505, 0.51)), host="b")
        for protocol, factor in (("h2", 2.0), ("h1", 1.0))
    ]
    column = {**RATE, "title": "Gain", "relative": True, "against": "a", "across": ["host"]}
    both = [*grid(), *slower]
    table = laid_out({"rows": ["protocol", "rate"], "columns": [column]}, both)
    rows = {row.heads: row.cells for row in table.rows}
    assert [column.title for column in table.columns] == ["a Gain", "b Gain"]
    here, there = rows["h2", "100"]
    assert here.baseline
    assert not there.baseline
    assert there.value == pytest.approx(-50)
    assert there.low < -50 < there.high
    assert not rows["h1", "100"][1].baseline
    assert any("different machines" in note for note in table.notes)
    alone = laid_out({"rows": ["protocol", "rate"], "columns": [column]}, slower)
    assert alone.rows[0].cells[0].reason == (
        "no baseline: this case is not on host a in this report"
    )
    with pytest.raises(InvalidRequestError, match="only a change is against a host"):
        report({"rows": ["rate"], "columns": [{**RATE, "against": "a"}]})


def test_a_relative_column_uses_the_baseline_case():
    columns = [{**RATE, "title": "Ops"}, {**RATE, "title": "Gain", "relative": True}]
    table = laid_out({"rows": ["rate", "protocol"], "columns": columns}, grid())
    gains = [row.cells[1] for row in table.rows]
    assert [round(cell.value) for cell in gains] == [0, 100, 0, 100]
    assert [row.baseline for row in table.rows] == [True, False, True, False]
    assert gains[1].low < 100 < gains[1].high
    assert table.columns[1].unit == "%"
    alone = [each for each in grid() if not each.baseline]
    cell = laid_out({"rows": ["rate"], "columns": columns}, alone).rows[0].cells[1]
    assert cell.reason == "no baseline: there is no baseline case"


def test_metrics_in_rows_show_differences():
    table = laid_out(
        {
            "rows": [{"dimension": "metric", "title": "What"}, "rate"],
            "metrics": [
                {"metric": "latency.p99", "title": "p99 (ms)", "unit": "ms"},
                {"metric": "requests.rate"},
            ],
            "columns": [
                {"title": "Old", "where": 'protocol == "h1"'},
                {"title": "New", "where": 'protocol == "h2"'},
                {"title": "Less", "difference": ["New", "Old"]},
            ],
        },
        grid(),
    )
    assert [row.heads for row in table.rows] == [
        ("p99 (ms)", "100"),
        ("p99 (ms)", "1000"),
        ("Requests per second", "100"),
        ("Requests per second", "1000"),
    ]
    assert [cell.value for cell in table.rows[2].cells] == pytest.approx([101, 202, 101], rel=1e-3)
    assert table.rows[2].cells[2].low < 101 < table.rows[2].cells[2].high
    assert table.rows[0].cells[0].unit == "ms"
    assert table.rows[0].cells[0].value == pytest.approx(9.9, rel=0.01)
    assert "Latency: closed loop" in table.notes[0]


def test_a_leaderboard_ranks_by_the_better_direction_with_intervals():
    observations = [
        observe("h1", 100, 10.0, 10.5, 11.0),
        observe("h2", 100, 10.2, 10.6, 11.2),
        observe("h1", 1000, 90.0, 91.0, 92.0),
        observe("h2", 1000),
    ]
    table = {"rows": ["protocol", "rate"], "columns": [RATE], "sort": "Requests per second"}
    ranked = laid_out(table, observations)
    assert [row.ranks for row in ranked.rows] == [(1, 1), (2, 3), (2, 3), None]
    assert [row.rank_text for row in ranked.rows] == ["1", "2–3", "2–3", ""]
    assert any("ranks that a row may have" in note for note in ranked.notes)
    assert [row.heads[1] for row in ranked.rows] == ["1000", "100", "100", "1000"]
    assert ranked.sorted_by == 0
    lowest = {**table, "sort": {"column": "Requests per second", "order": "ascending"}}
    rows = laid_out(lowest, observations).rows
    assert rows[0].heads == ("h1", "100")
    assert [row.ranks for row in rows] == [(1, 2), (1, 2), (3, 3), None]


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (RATE, [[100.0], [100.1], [50.0]]),
        (RATE, [[100.0, 101.0], [50.0, 51.0], [10.0, 11.0]]),
        ({**RATE, "statistic": "max"}, [[100.0] * 3, [50.0] * 3, [10.0] * 3]),
        (RATE, [[0.0, 100.0, 100.0], [0.0, 50.0, 50.0], [0.0, 10.0, 10.0]]),
    ],
)
def test_rows_without_an_interval_may_have_any_rank(column, values):
    observations = [
        observe(protocol, rate, *trials)
        for (protocol, rate), trials in zip(
            [("h1", 100), ("h2", 100), ("h1", 1000)], values, strict=True
        )
    ]
    table = {"rows": ["protocol", "rate"], "columns": [{**column, "title": "rate"}], "sort": "rate"}
    ranked = laid_out(table, observations)
    assert [row.rank_text for row in ranked.rows] == ["1–3"] * 3
    assert any("may have any rank" in note for note in ranked.notes)


def test_changes_are_ranked_against_their_baseline():
    columns = [{**RATE, "relative": True, "title": "Gain"}]
    table = {"rows": ["protocol"], "cases": "rate == 100", "columns": columns, "sort": "Gain"}
    ranked = laid_out(table, grid())
    assert [(row.heads[0], row.rank_text) for row in ranked.rows] == [("h2", "1"), ("h1", "2")]


def test_machines_are_ranked_separately():
    table = {"rows": ["protocol", "rate"], "columns": [RATE], "sort": "Requests per second"}
    ranked = laid_out(table, [*grid(), *grid(host="b")])
    assert [row.rank_text for row in ranked.rows] == ["1", "2", "3", "4"] * 2
    assert [row.first_of_group for row in ranked.rows] == [False] * 4 + [True] + [False] * 3


def test_an_added_axis_splits_the_ranking():
    """Without `protocol` in the rows several cases would lie in one cell of the second column."""
    columns = [{**RATE, "across": ["protocol"]}, {"title": "rate", **RATE}]
    table = laid_out({"rows": ["rate"], "columns": columns, "sort": "rate"}, grid())
    assert [row.heads for row in table.rows] == [
        ("1000", "h1"), ("100", "h1"), ("1000", "h2"), ("100", "h2"),
    ]  # fmt: skip
    assert [row.rank_text for row in table.rows] == ["1", "2", "1", "2"]
    assert [row.first_of_group for row in table.rows] == [False, False, True, False]


def test_latencies_of_open_and_closed_loops_are_not_ranked():
    table = {"rows": ["protocol"], "columns": [{"metric": "latency.p99", "title": "p99"}]}
    mixed = [observe("h1", 100, 10.0), observe("h2", 100, 11.0, model="open")]
    ranked = laid_out({**table, "sort": "p99"}, mixed)
    assert ranked.sorted_by is None
    assert any("Not ranked" in note for note in ranked.notes)


def published(protocol: str, rate: int, value: float) -> Observation:
    place = {"host": "t490s", "source": "published", "commit": ""}
    return observe(
        protocol, rate, place=place, published={"requests.rate": value}, rest=("p", rate)
    )  # fmt: skip


def test_reference_results_are_shown_and_in_no_statistic():
    everything = [*grid(), published("h1", 100, 77.0), published("h2", 100, 99.0)]
    table = {"rows": ["rate", "protocol"], "columns": [RATE]}
    beside = laid_out(table, everything, published="columns")
    assert [(column.title, column.published) for column in beside.columns] == [
        ("Requests per second", False),
        ("Requests per second, published", True),
    ]
    assert [row.cells[1].value for row in beside.rows] == [77.0, 99.0, None, None]
    assert beside.rows[0].cells[0].value == pytest.approx(101, rel=1e-3)
    below = laid_out(table, everything, published="rows")
    assert [row.heads[2:] for row in below.rows][:2] == [("measured", "a"), ("published", "t490s")]
    assert len(laid_out(table, everything).rows) == 4


def test_reference_results_have_no_rank():
    everything = [*grid(), published("h1", 100, 1e6)]
    table = {"rows": ["rate", "protocol"], "columns": [RATE], "sort": "Requests per second"}
    ranked = laid_out(table, everything, published="rows")
    assert [row.rank_text for row in ranked.rows] == ["", "1", "2", "3", "4"]


def test_a_selection_without_cases_is_refused():
    with pytest.raises(InvalidRequestError, match="no case"):
        laid_out({"rows": ["rate"], "columns": [RATE], "cases": "rate == 5"}, grid())


def test_a_merged_percentile_is_of_all_requests_and_has_no_interval():
    columns = [{"metric": "latency.p99", "statistic": "merged", "unit": "ms"}]
    observation = observe("h1", 100, 100.0, 105.0, 110.0, merged={"latency.p99": 0.02})
    cell = laid_out({"rows": ["rate"], "columns": columns}, [observation]).rows[0].cells[0]
    assert cell.value == 20.0
    assert (cell.low, cell.high, cell.runs) == (None, None, 3)


def test_common_parameters_need_no_dimension():
    columns = [{**RATE, "shared": True, "title": "Size"}, {**RATE, "across": ["protocol", "host"]}]
    same = [observe(protocol, 100, 5.0, host=host) for protocol in ("h1", "h2") for host in "ab"]
    (row,) = laid_out(
        {"rows": ["rate"], "columns": columns}, [*same[:3], observe("h2", 100, host="b")]
    ).rows
    assert (row.cells[0].value, len(row.cells)) == (5.0, 5)
    other = [*same, observe("h3", 100, 6.0)]
    (row,) = laid_out({"rows": ["rate"], "columns": columns}, other).rows
    assert row.cells[0].reason == "2 cases differ: add a dimension"


def test_columns_name_their_load_model():
    columns = [
        {"metric": "latency.p99", "title": "Old", "where": 'protocol == "h1"'},
        {"metric": "latency.p99", "title": "New", "where": 'protocol == "h2"'},
    ]
    mixed = [observe("h1", 100, 10.0), observe("h2", 100, 11.0, model="open")]
    notes = laid_out({"rows": ["rate"], "columns": columns}, mixed).notes
    assert any(note.startswith("Latency of Old: closed loop") for note in notes)
    assert any(note.startswith("Latency of New: open loop") for note in notes)
