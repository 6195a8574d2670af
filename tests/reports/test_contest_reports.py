"""Reports of a contest: paired changes, ranks and groups, on the page and in the files."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.core.errors import InvalidRequestError
from orchestrator.reports.exports import report_csv, report_json, report_markdown
from orchestrator.reports.report_builder import Report, build_report
from orchestrator.reports.report_spec import from_data
from orchestrator.runs.models import Run, Trial
from tests.support.factories import (
    DEFINITION,
    Personas,
    finish_run,
    make_definition,
    make_local_host,
    make_project,
    make_run,
)

SOURCE = DEFINITION.replace(
    "  connections: [4]\n",
    "  server: [quick, slow, same]\n  connections: [4, 8]\nbaseline: {server: slow}\n",
)
CONTEST = SOURCE + "contest: server\n"
FACTORS = {
    "server quick, connections 4": 1.05,
    "server quick, connections 8": 1.02,
}
BOARD: dict[str, Any] = {
    "rows": ["server"],
    "cases": "connections == 4",
    "columns": [
        {"metric": "requests.rate", "title": "Rate"},
        {"metric": "requests.rate", "title": "Gain", "relative": True},
        {"metric": "requests.rate", "title": "To quick", "relative": True, "baseline": "quick"},
    ],
    "sort": "Rate",
}
BESIDE: dict[str, Any] = {
    "rows": ["connections"],
    "columns": [
        {"metric": "requests.rate", "across": ["server"]},
        {"title": "Gap", "difference": ["quick", "slow"]},
    ],
}


def measure(personas: Personas, folder: Path, source: str, rounds: int = 7) -> Run:
    project, shas = make_project(personas.alice, folder / "origin")
    make_definition(personas.alice, project, source=source)
    make_local_host(personas.alice)
    run = make_run(personas.alice, shas[:1], rounds=rounds)
    return finish_run(run, [1000], wobble=0.05, factors=FACTORS)


def build(personas: Personas, table: dict[str, Any]) -> Report:
    data = {"version": 1, "title": "T", "benchmark": "hello", "tables": [table]}
    return build_report(personas.alice, from_data(data))


def test_one_run_of_a_contest_has_paired_changes_ranks_and_groups(
    personas: Personas, tmp_path: Path
) -> None:
    measure(personas, tmp_path, CONTEST)
    report = build(personas, BOARD)
    table = report.tables[0]
    first, *others = table.rows
    assert (first.heads, first.ranks, first.groups) == (("quick",), (1, 1), "a")
    assert {(row.ranks, row.groups) for row in others} == {((2, 3), "b")}
    gain, to_quick = first.cells[1:]
    assert gain.paired
    assert gain.value == pytest.approx(5.0)
    # The trials of a round vary by 10 %, but all servers alike.
    assert gain.low == pytest.approx(5.0)
    assert gain.high == pytest.approx(5.0)
    assert to_quick.baseline
    same = next(row for row in others if row.heads == ("same",))
    assert same.cells[1].value == pytest.approx(0.0, abs=1e-9)
    assert same.cells[2].value == pytest.approx(100 / 1.05 - 100)
    notes = " ".join(table.notes)
    assert "rows without a common letter differ" in notes
    assert "Changes and differences are paired" in notes

    rows = list(csv.reader(io.StringIO(report_csv(report))))
    assert rows[0][:4] == ["best_rank", "worst_rank", "group", "Server"]
    assert rows[1][:4] == ["1", "1", "a", "quick"]
    assert "| # | Group | Server |" in report_markdown(report)
    exported = json.loads(report_json(report))["tables"][0]["rows"][0]
    assert (exported["groups"], exported["ranks"]) == ("a", [1, 1])
    assert [cell["paired"] for cell in exported["cells"]] == [False, True, False]


def test_differences_between_columns_of_a_contest_are_paired(
    personas: Personas, tmp_path: Path
) -> None:
    measure(personas, tmp_path, CONTEST)
    table = build(personas, BESIDE).tables[0]
    gaps = [row.cells[-1] for row in table.rows]
    assert [gap.value for gap in gaps] == pytest.approx([50, 20], rel=0.03)
    # The other cells of one run have no interval.
    assert all(gap.paired and gap.low is not None for gap in gaps)
    assert {cell.low for row in table.rows for cell in row.cells[:-1]} == {None}


def test_a_board_without_a_contest_is_not_paired_and_says_so(
    personas: Personas, tmp_path: Path
) -> None:
    measure(personas, tmp_path, SOURCE)
    board = {**BOARD, "columns": BOARD["columns"][:2]}
    table = build(personas, board).tables[0]
    assert {(row.ranks, row.groups) for row in table.rows} == {((1, 3), "")}
    assert not table.has_groups
    notes = " ".join(table.notes)
    assert "Rows are not paired: the definition has no contest axis" in notes
    assert "Changes and differences are not paired" in notes
    with pytest.raises(InvalidRequestError, match="the definition has no contest axis") as caught:
        build(personas, BOARD)
    assert caught.value.field == "tables[0].columns[2].baseline"


@pytest.mark.parametrize("until", ["rounds", "ranked"])
def test_ranks_after_interim_analyses_are_marked(
    personas: Personas, tmp_path: Path, until: str
) -> None:
    project, shas = make_project(personas.alice, tmp_path / "origin")
    make_definition(personas.alice, project, source=CONTEST)
    make_local_host(personas.alice)
    finish_run(make_run(personas.alice, shas[:1], rounds=5, until=until), [1000])
    cells = [row.cells[0] for row in build(personas, BOARD).tables[0].rows]
    assert {cell.entry.interim for cell in cells if cell.entry} == {until == "ranked"}


def test_few_common_blocks_prove_no_order(personas: Personas, tmp_path: Path) -> None:
    run = measure(personas, tmp_path, CONTEST)
    Trial.objects.filter(job__run=run, round__gt=4, case__parameters__server="quick").update(
        validity="invalid", reasons=["saturated: 80 % of the rate"]
    )
    table = build(personas, BOARD).tables[0]
    assert {(row.ranks, row.groups) for row in table.rows} == {((1, 3), "a")}
    gain = next(row for row in table.rows if row.heads == ("quick",)).cells[1]
    assert (gain.paired, gain.low) == (False, None)
    assert any("are paired, by common blocks; the others are not" in each for each in table.notes)


def test_the_baseline_of_a_column_is_a_value_of_the_contest(
    personas: Personas, tmp_path: Path
) -> None:
    measure(personas, tmp_path, CONTEST, rounds=1)
    columns = [{**BOARD["columns"][2], "baseline": "quik"}]
    with pytest.raises(InvalidRequestError, match="has no value 'quik'; it has quick, slow, same"):
        build(personas, {"rows": ["server"], "columns": columns})
    with pytest.raises(InvalidRequestError, match="baseline: only a change has one"):
        build(personas, {**BOARD, "columns": [{"metric": "requests.rate", "baseline": "slow"}]})
