"""Three hundred cases on six hosts: the heat map, filters, folded rows, and files of it."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from orchestrator.benchmarks.models import Benchmark, Case
from orchestrator.core.spreadsheets import escape_formula
from tests.support.factories import Personas, make_project
from tests.support.html_pages import element, elements, get_text, values
from tests.support.matrices import make_hosts, measure_matrix


def _rate(case: Case, host: str) -> float:
    axes = case.parameters
    if axes["size"] == "huge" and axes["connections"] == 16 and host == "cat":
        return 700.0 if axes["protocol"] == "h2" else 1000.0
    if axes == {"connections": 1, "size": "none", "protocol": "h1"} and host in ("ant", "bee"):
        return 1250.0
    return 1000.0


@pytest.fixture
def query(personas: Personas, tmp_path: Path) -> dict[str, str]:
    project, _ = make_project(personas.alice, tmp_path / "repository")
    commits = list(project.commits.order_by("position"))[:2]
    measure_matrix(personas.alice, project, commits, make_hosts(personas.alice), _rate)
    return {
        "benchmark": "server/hello",
        "baseline": commits[0].sha,
        "contender": commits[1].sha,
    }


def _get(client: Client, query: dict[str, str], **more: str) -> Any:
    return client.get(reverse("compare"), {**query, **more})


def _tiles(page: Any) -> list[tuple[str, str, str]]:
    """(verdict, address, text) of the cells of the heat map."""
    cells = elements(page, "table.heat-map td[data-verdict]")
    return [
        (str(cell["data-verdict"]), str(element(cell, "a")["href"]), get_text(cell))
        for cell in cells
    ]


def test_three_of_three_hundred_changes_are_visible(alice: Client, query: Any) -> None:
    page = _get(alice, query)
    changed = [tile for tile in _tiles(page) if tile[0] in ("regressed", "improved")]

    assert len(_tiles(page)) == 5 * 6
    assert [verdict for verdict, _, _ in changed] == ["improved", "improved", "regressed"]
    assert "1 of 10" in changed[2][2]
    assert page.context["heat"].map.columns.name == "host"
    table = element(page, "table.compared")
    verdicts = values(table, ".badge.verdict", "data-verdict")
    assert len(elements(table, "th[scope=row] a[href^='case?']")) == 24
    assert verdicts[:4] == ["regressed", "improved", "improved", "equivalent"]
    assert "Show the other 276 equivalent" in get_text(page)


def test_a_cell_links_to_its_cases_or_to_its_only_case(alice: Client, query: Any) -> None:
    page = _get(alice, query, rows="connections", columns="host")
    _, crowded, _ = next(tile for tile in _tiles(page) if tile[0] == "regressed")
    inside = alice.get(reverse("compare") + crowded)
    assert inside.context["chosen"].limits == (("connections", "16"), ("host", "cat"))
    assert inside.context["chosen"].chosen == 10

    page = _get(alice, {**query, "host": "cat", "case": _huge_key()}).content.decode()
    assert "Overview map" not in page
    both = {"rows": "size", "columns": "connections", "host": "cat", "metric": "latency.p50"}
    page = _get(alice, query, **both)
    regressed_tile = next(tile for tile in _tiles(page) if tile[0] == "regressed")
    assert re.search(r"\+4[0-6]\.", regressed_tile[2])


def _huge_key() -> str:
    wanted = {"connections": 16, "size": "huge", "protocol": "h2"}
    return Case.objects.get(parameters=wanted).key


def test_metrics_can_be_an_axis_and_a_cell_links_to_its_case(alice: Client, query: Any) -> None:
    key = _huge_key()
    page = _get(alice, query, case=key, rows="host", columns="metric")
    tiles = [tile for tile in _tiles(page) if tile[0] == "regressed"]

    assert len(_tiles(page)) == 6 * 3
    assert len(tiles) == 3
    assert alice.get(reverse("compare") + tiles[0][1]).context["case"].comparison.case.key == key


@pytest.mark.parametrize("verdict", ["regressed", "equivalent"])
def test_rows_are_filtered_by_verdict(alice: Client, query: Any, verdict: str) -> None:
    page = _get(alice, query, verdict=verdict)
    chosen = page.context["chosen"]

    assert {str(case.verdict) for case in chosen.shown} == {verdict}
    assert chosen.chosen == {"regressed": 1, "equivalent": 297}[verdict]
    assert len(chosen.shown) == chosen.chosen
    assert {each.title: each.cases for each in chosen.filters}["all"] == 300


def test_invalid_parameters_are_ignored(alice: Client, query: Any) -> None:
    data = {"rows": "<b>", "columns": "'", "metric": "x", "verdict": "bad", "row": "<script>x"}
    page = _get(alice, query, **data).content.decode()

    assert "<script>x" not in page
    assert len(_tiles(page)) == 30


def test_the_comparison_is_exported_as_markdown_csv_and_json(
    alice: Client, bob: Client, mallory: Client, query: Any
) -> None:
    label = Case.objects.get(key=_huge_key()).label
    text = _get(bob, query, format="md").content.decode()
    assert "▼ regressed" in text
    assert "And: 297 equivalent." in text
    assert f"| ▼ regressed | `{label}` | `cat` |" in text
    shown = element(_get(alice, query), "textarea#markdown").get_text()
    assert shown.strip() == text.strip()

    rows = list(csv.DictReader(io.StringIO(_get(alice, query, format="csv").content.decode())))
    assert len(rows) == 300 * 3
    worst = next(row for row in rows if row["metric"] == "requests.rate")
    assert (worst["host"], worst["axis_size"], worst["verdict"]) == ("cat", "huge", "regressed")
    assert float(worst["low"]) < float(worst["change"]) < float(worst["high"]) < 0
    data = json.loads(_get(alice, query, format="json").content)
    assert data["cases"][0]["metrics"][0]["change"] == float(worst["change"])
    assert alice.get(data["web_url"].partition("8000")[2]).status_code == 200

    assert _get(alice, query, format="exe").status_code == 404
    assert _get(mallory, query, format="csv").status_code == 404


def test_names_are_exported_without_formulas_and_markup(alice: Client, query: Any) -> None:
    case = Case.objects.get(key=_huge_key())
    case.label, case.parameters = "=1+1|<img>`@ada", {**case.parameters, "size": "=cmd"}
    case.save()
    benchmark = Benchmark.objects.get()
    assert str(benchmark.slug) in _get(alice, query).content.decode()

    assert "'=1+1|<img>" in _get(alice, query, format="csv").content.decode()
    assert "`=1+1\\|<img>'@ada`" in _get(alice, query, format="md").content.decode()
    page = _get(alice, query, rows="size", columns="connections")
    assert "<img>" not in page.content.decode()
    assert "=cmd" in [get_text(head) for head in elements(page, "th[scope=row]")]


@pytest.mark.parametrize(
    ("text", "safe"),
    [("=1", "'=1"), ("+a", "'+a"), (" @x", "' @x"), ("-3", "-3"), ("-a", "'-a"), ("a=b", "a=b")],
)
def test_csv_texts_are_not_formulas(text: str, safe: str) -> None:
    assert escape_formula(text) == safe
