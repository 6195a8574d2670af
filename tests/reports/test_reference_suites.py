"""The figures of the five reports come with their suites: all of them, on their machines."""

import csv
from collections import Counter
from pathlib import Path

import pytest

from orchestrator.benchmarks.fields import format_axis_value
from orchestrator.benchmarks.matrix import expand
from orchestrator.benchmarks.spec import parse
from orchestrator.core.errors import NotFoundError
from orchestrator.fleet.services import save_profile
from orchestrator.importers.registry import FORMATS
from orchestrator.importers.rows import Row
from orchestrator.reports.reference_import import ReferenceImport
from orchestrator.reports.reference_suites import (
    SUITES,
    import_published,
    list_reference_suites,
    load_reference_suite,
)
from orchestrator.reports.references import load_reference_values
from tests.support.factories import Personas

#: Suite → figures of its report's tables, and how many of them are blank or stand for none.
FIGURES = {
    # 80 different rows of sizes (the 5 without compression stand in each of 5 blocks) with three
    # figures each; two times for each, two more of another machine for level 3 and without.
    "restful-compression": (80 * 3 + 80 * 2 + 20 * 2, 5),
    # 7 percentiles, two sides and their difference; 12 metrics of four systems.
    "api-vs-grpc": (7 * 3 + 12 * 4, 0),
    "http-clients": (7 * 2, 0),
    # Three scenarios of three protocols; what HTTP/1.1 is compared with is itself.
    "protocols": (3 * 3 * 2 + 3 * 2, 0),
    # 24 rows at three rates, and 22, 22 and 20 at one.
    "server-overhead": (24 * 3 + 22 + 22 + 20, 15),
}


def read_published_rows(suite: str) -> list[Row]:
    return list(FORMATS["csv"].read((SUITES / suite / "published.csv").read_bytes()))


def test_each_report_has_its_reference_results() -> None:
    assert list_reference_suites() == sorted(FIGURES)


@pytest.mark.parametrize("suite", FIGURES)
def test_no_reference_result_is_missing_or_repeated(suite: str) -> None:
    rows = read_published_rows(suite)
    unknown = [row for row in rows if row.value is None]
    assert (len(rows), len(unknown)) == FIGURES[suite]
    counts = Counter(
        (row.environment, tuple(row.parameters.items()), row.metric, row.statistic, row.commit)
        for row in rows
    )
    assert counts.most_common(1)[0][1] == 1


@pytest.mark.parametrize("suite", FIGURES)
def test_cases_of_reference_results_exist_in_the_suite(suite: str) -> None:
    """A figure that several cases share, such as the size of a message, names fewer axes."""
    spec = parse((SUITES / suite / "benchmark.yaml").read_text())
    cells = [
        {axis: format_axis_value(value) for axis, value in case.parameters.items()}
        for case in expand(spec)
    ]
    for row in read_published_rows(suite):
        parameters = {axis: format_axis_value(value) for axis, value in row.parameters.items()}
        assert any(parameters.items() <= cell.items() for cell in cells), parameters


@pytest.mark.parametrize("suite", FIGURES)
def test_reference_results_are_imported_with_their_machines(personas: Personas, suite: str) -> None:
    done = import_published(member=personas.alice, suite=suite)
    assert (done.rows, done.unknown) == FIGURES[suite]
    assert done.source.origin == load_reference_suite(suite).source.origin
    profiles = set(load_reference_suite(suite).profiles)
    assert {
        each.profile for each in load_reference_values(personas.alice.team, suite=suite)
    } == profiles
    assert added(import_published(member=personas.alice, suite=suite)) == (0, 0)


def added(done: ReferenceImport) -> tuple[int, int]:
    return done.added, done.changed


def test_an_existing_profile_is_not_changed(personas: Personas) -> None:
    save_profile(member=personas.alice, slug="apple-m4-pro", name="Our own", cores=12)
    import_published(member=personas.alice, suite="protocols")
    assert personas.alice.team.profiles.get().name == "Our own"


@pytest.mark.parametrize("suite", ["hello", "nosuch", "../suites/protocols"])
def test_a_suite_without_reference_results_is_not_found(personas: Personas, suite: str) -> None:
    with pytest.raises(NotFoundError, match="there are of api-vs-grpc"):
        import_published(member=personas.alice, suite=suite)


def test_reference_results_match_the_report() -> None:
    """One of each report, typed here once more."""
    expected = {
        "restful-compression": ("latency.mean", {"size": "huge", "level": 9}, 0.20522),
        "api-vs-grpc": ("latency.max", {"system": "hypercorn"}, 1.1527),
        "http-clients": ("script.delay_s", {"client": "niquests-core"}, 0.17),
        "protocols": ("requests.rate", {"protocol": "h3", "concurrent": 50}, 1817.18),
        "server-overhead": ("latency.p99", {"system": "falcon-meinheld", "rate": 10000}, 0.88115),
    }
    for suite, (metric, case, value) in expected.items():
        values = [
            row.value
            for row in read_published_rows(suite)
            if row.metric == metric and case.items() <= row.parameters.items()
        ]
        assert value in values, suite


def test_reference_files_have_no_empty_lines() -> None:
    for suite in FIGURES:
        path: Path = SUITES / suite / "published.csv"
        with path.open(newline="") as lines:
            assert all(any(cells) for cells in csv.reader(lines))
