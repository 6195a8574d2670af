"""Reports of a selection of cases omit what was not measured."""

import pytest

from orchestrator.reports.measured_tables import keep_measured_parts
from orchestrator.reports.report_builder import build_report
from orchestrator.reports.report_spec import parse
from tests.support.factories import DEFINITION, Personas
from tests.support.world import World

pytestmark = pytest.mark.django_db

SPEC = """\
version: 1
title: Rates
benchmark: server/hello
tables:
  - title: Both
    rows: [connections]
    columns: [{metric: requests.rate}]
  - title: Unmeasured only
    cases: connections == 8
    rows: [connections]
    columns: [{metric: requests.rate}]
"""


@pytest.fixture
def world(personas: Personas, data_dir, tmp_path) -> World:
    source = DEFINITION.replace("connections: [4]", "connections: [4, 8]")
    return World.make(personas, tmp_path, source=source)


def test_rows_and_tables_without_a_measurement_are_omitted(world: World) -> None:
    world.measure_run(1000, 1001, cases="connections == 4")
    report = build_report(world.alice, parse(SPEC))
    assert [len(table.rows) for table in report.tables] == [2, 1]
    kept = keep_measured_parts(report)
    (table,) = kept.tables
    assert [row.heads for row in table.rows] == [("4",)]
    assert table.notes[-1] == "1 row that was not measured here is omitted."
    assert [each.title for each in kept.spec.tables] == ["Both"]


def test_a_report_of_all_cases_stays_as_it_is(world: World) -> None:
    world.measure_run(1000, 1001)
    report = build_report(world.alice, parse(SPEC))
    assert keep_measured_parts(report) == report


def test_columns_without_a_value_are_omitted(world: World) -> None:
    world.measure_run(1000, 1001, cases="connections == 4")
    columns = """\
      - {title: Eight, metric: requests.rate, where: connections == 8}
      - {title: Four, metric: requests.rate, where: connections == 4}
    sort: Four
"""
    table = "  - title: Both\n    rows: [host]\n    columns:\n"
    spec = parse(SPEC.partition("  - title")[0] + table + columns)
    report = build_report(world.alice, spec)
    assert [column.title for column in report.tables[0].columns] == ["Eight", "Four"]
    (kept,) = keep_measured_parts(report).tables
    assert [column.title for column in kept.columns] == ["Four"]
    assert [len(row.cells) for row in kept.rows] == [1]
    assert kept.sorted_by == 0
    assert kept.notes[-1] == "1 column that was not measured here is omitted."
