"""Reports of what was measured: read from the database, written as Markdown, CSV and JSON."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from orchestrator.benchmarks.models import Benchmark
from orchestrator.core.errors import InvalidRequestError, NotFoundError
from orchestrator.reports.exports import report_csv, report_json, report_markdown
from orchestrator.reports.provenance import load_provenance
from orchestrator.reports.report_builder import Report, build_report
from orchestrator.reports.report_spec import from_data
from orchestrator.results.models import Histogram
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
    """\
  connections: [4, 8]
  kind: [new, old, gone]
options:
  kind:
    new: {labels: {words: "a | b"}}
    gone: {unsupported: it cannot be had, replacement: new}
baseline: {connections: 4}
""",
)
TABLE: dict[str, Any] = {
    "rows": ["kind", "connections"],
    "columns": [
        {"metric": "requests.rate", "title": "Rate"},
        {"metric": "latency.p10", "title": "p10", "unit": "ms"},
        {"metric": "latency.p99", "statistic": "merged", "title": "p99"},
        {"metric": "requests.rate", "title": "Change", "relative": True},
    ],
}


@pytest.fixture
def run(personas: Personas, tmp_path: Path) -> Run:
    project, shas = make_project(personas.alice, tmp_path / "origin")
    make_definition(personas.alice, project, source=SOURCE)
    make_local_host(personas.alice)
    make_local_host(personas.alice, name="there")
    return finish_run(
        make_run(personas.alice, shas[:2], rounds=4, hosts=("here", "there")), [1000, 800]
    )


def made(personas: Personas, *tables: dict[str, Any], **more: Any) -> Report:
    data = {"version": 1, "title": "T", "benchmark": "hello", "tables": [*tables] or [TABLE]}
    return build_report(personas.alice, from_data({**data, **more}))


def test_a_report_shows_the_newest_measured_commit(personas: Personas, run: Run) -> None:
    report = made(personas)
    table = report.tables[0]
    assert [commit.subject for commit in report.commits] == ["version 2"]
    assert [head.dimension for head in table.heads] == ["host", "kind", "connections"]
    assert len(table.rows) == 2 * 3 * 2
    cells = dict(zip(["rate", "p10", "p99", "change"], table.rows[0].cells, strict=True))
    assert cells["rate"].value == pytest.approx(800, rel=0.01)
    assert cells["rate"].trials == 4
    assert cells["p10"].value == pytest.approx(5 * 0.78, rel=0.03)
    assert cells["p99"].value == pytest.approx(5 * 2.56, rel=0.03)
    assert {(cell.low, cell.high, cell.runs) for cell in cells.values()} == {(None, None, 1)}
    assert cells["change"].baseline
    assert len(report.trials) == 4 * 4 * 2 + 4 * 2 * 2


def test_a_row_without_a_value_has_a_reason(personas: Personas, run: Run) -> None:
    Trial.objects.filter(case__parameters__kind="gone").update(
        state="skipped", validity="", message="no"
    )
    Trial.objects.filter(case__parameters__kind="old").update(
        validity="invalid", reasons=["saturated: 80 % of the rate"]
    )
    cells = {row.heads[1]: row.cells[0] for row in made(personas).tables[0].rows}
    assert cells["gone"].reason == "it cannot be had (see new)"
    assert cells["old"].kind == "invalid"
    assert cells["new"].value is not None


def test_a_report_uses_the_requested_commit_hosts_and_cases(personas: Personas, run: Run) -> None:
    first = run.variants.all()[0].commit
    report = made(personas, commit=first.short_sha, hosts=["there"], cases='kind == "new"')
    assert report.commits == (first,)
    assert [head.dimension for head in report.tables[0].heads] == ["kind", "connections"]
    assert report.tables[0].rows[0].cells[0].value == pytest.approx(1000, rel=0.01)
    assert len(report.tables[0].rows) == 2
    both = made(personas, commit="all", hosts=["here"], cases='kind == "new"')
    assert both.tables[0].heads[0].dimension == "commit"
    assert (
        made(personas, commit="main~1").commits
        == build_report(personas.alice, made(personas).spec).commits
    )
    with pytest.raises(NotFoundError, match="no host nowhere"):
        made(personas, hosts=["nowhere"])
    with pytest.raises(NotFoundError, match="nothing of hello was measured at main"):
        made(personas, commit="main")
    with pytest.raises(InvalidRequestError, match="commit"):
        made(personas, commit="no-such")


def test_an_unknown_dimension_is_named(personas: Personas, run: Run) -> None:
    with pytest.raises(InvalidRequestError, match=r"tables\[0\]\.rows\[0\]: there is no axis"):
        made(personas, {"rows": ["colour"], "columns": [{"metric": "requests.rate"}]})


def test_versions_of_the_definition_are_not_mixed(personas: Personas, run: Run) -> None:
    benchmark = Benchmark.objects.get()
    make_definition(personas.alice, benchmark.project, source=SOURCE.replace("_s: 0.6", "_s: 0.7"))
    shas = [variant.commit.sha for variant in run.variants.all()]
    finish_run(make_run(personas.alice, shas, rounds=2, hosts=("here",)), [5000, 4000])
    report = made(personas)
    here = report.tables[0].rows[0].cells[0]
    assert (report.tables[0].rows[0].heads[0], here.trials) == ("here", 2)
    assert here.value == pytest.approx(4000, rel=0.01)
    assert report.versions == (1, 2)
    assert "versions 1 and 2" in report.notes[0]


def test_a_report_is_hidden_from_strangers(personas: Personas, run: Run) -> None:
    with pytest.raises(NotFoundError):
        build_report(personas.mallory, made(personas).spec)


def test_a_report_can_show_a_single_run(personas: Personas, run: Run) -> None:
    shas = [variant.commit.sha for variant in run.variants.all()]
    finish_run(make_run(personas.alice, shas, rounds=1, hosts=("here",)), [100, 90])
    report = build_report(personas.alice, made(personas).spec, run=run)
    assert {row.cells[0].trials for row in report.tables[0].rows} == {4}


def test_queries_do_not_grow_with_cases(personas: Personas, run: Run) -> None:
    counts = []
    for cases in ('kind == "new" and connections == 4', ""):
        with CaptureQueriesContext(connection) as queries:
            made(personas, cases=cases)
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 20


def _parsed_csv(text: str) -> tuple[list[str], list[list[str]]]:
    head, *rows = csv.reader(io.StringIO(text))
    return head, rows


def test_exports_have_the_same_values(personas: Personas, run: Run) -> None:
    Trial.objects.filter(case__parameters__kind="old", round=1).update(
        validity="suspect", reasons=["foreign_process: others used 9 % of a core"]
    )
    report = made(personas)
    table = report.tables[0]
    head, rows = _parsed_csv(report_csv(report))
    whole = json.loads(report_json(report))
    (host, _) = whole["provenance"]["hosts"]
    assert {"title": "CPU", "text": "Test CPU"} in host["facts"]
    suspect = {"title": "Suspect for", "text": "CPU of other processes (4 trials)"}
    assert suspect in whole["provenance"]["facts"]
    assert whole["provenance"]["facts"][-1] == {"title": "Runs", "text": f"`{run.pk}`"}
    data = whole["tables"][0]
    assert head[:10] == [
        "Host", "Kind", "Connections", "Rate (1/s)", "Rate (1/s) low", "Rate (1/s) high",
        "Rate (1/s) trials", "Rate (1/s) runs", "Rate (1/s) suspect", "Rate (1/s) reason",
    ]  # fmt: skip
    assert len(rows) == len(data["rows"]) == len(table.rows)
    for json_row, row, line in zip(data["rows"], table.rows, rows, strict=True):
        assert tuple(json_row["heads"]) == row.heads == tuple(line[:3])
        for place, (one, cell) in enumerate(zip(json_row["cells"], row.cells, strict=True)):
            part = line[3 + 7 * place : 10 + 7 * place]
            assert [one["value"], one["low"], one["high"]] == [cell.value, cell.low, cell.high]
            assert [float(text) if text else None for text in part[:3]] == [
                cell.value, cell.low, cell.high,
            ]  # fmt: skip
            assert [int(text) for text in part[3:6]] == [cell.trials, cell.runs, cell.suspect]
            assert bool(part[6]) == (cell.value is None)


def test_markdown_is_a_table_with_reasons_and_provenance(personas: Personas, run: Run) -> None:
    labelled = {**TABLE, "rows": ["words", "kind", "connections"]}
    Trial.objects.filter(case__parameters__kind="gone").update(state="skipped", validity="")
    text = report_markdown(made(personas, labelled))
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [re.split(r"(?<!\\)\|", line) for line in lines]
    assert {len(line) for line in cells} == {2 + 4 + 4}
    assert any("a \\| b" in line for line in lines)
    assert "unsupported [1]" in text
    assert "1. it cannot be had (see new)" in text
    assert "## Provenance" in text
    assert run.variants.all()[1].commit.sha in text
    assert "- CPU: Test CPU" in text
    assert str(run.pk) in text
    assert "## Provenance" not in report_markdown(made(personas), provenance=False)


def test_provenance_counts_the_trials_of_the_values(personas: Personas, run: Run) -> None:
    Trial.objects.filter(round=1).update(validity="suspect")
    Trial.objects.filter(round=2, variant__position=0).update(validity="invalid")
    facts = dict(load_provenance(made(personas, cases="connections == 4")).facts)
    assert facts["Trials"].startswith("18 valid, 6 suspect; values use only")
    load = "0.6 s, warm-up 0.2 s, 5 rounds, 0 s between trials; 1 run"
    assert facts["Load of the definition"] == load
    assert facts["Load tool"] == "oha 1.0 (24 trials)"
    assert "Builds" not in facts


def _count_cell(report: Report) -> tuple[int, int, int]:
    (row,) = report.tables[0].rows
    cell = row.cells[0]
    return cell.trials, cell.suspect, cell.excluded_suspects


def test_suspect_trials_are_excluded_on_request_if_five_valid_ones_remain(
    personas: Personas, run: Run
) -> None:
    add = make_run(personas.alice, [run.variants.all()[1].commit.sha], rounds=3)
    finish_run(add, [1600])
    trials = Trial.objects.filter(job__host__name="here", variant__commit__subject="version 2")
    trials.filter(job__run=run, round=1).update(validity="suspect")
    trials.filter(job__run=add, round=1).update(validity="suspect")
    wanted: dict[str, Any] = {"cases": "kind == 'new' and connections == 4", "hosts": ["here"]}
    assert _count_cell(made(personas, **wanted)) == (7, 2, 0)
    report = made(personas, **wanted, suspect_trials="exclude")
    assert _count_cell(report) == (5, 0, 2)
    note = "Suspect trials were excluded from 4 cells with at least 5 valid ones."
    assert note in report.tables[0].notes
    facts = dict(load_provenance(report).facts)
    assert facts["Trials"].startswith("5 valid, 2 suspect; values use suspect ones only in cells")
    assert "Suspect for" not in facts
    rows = json.loads(report_json(report))["tables"][0]["rows"]
    assert rows[0]["cells"][0]["excluded_suspects"] == 2
    # Without valid trials, suspect ones count.
    trials.filter(job__run=add).update(validity="suspect")
    trials.filter(job__run=run).update(validity="suspect")
    assert _count_cell(made(personas, **wanted, suspect_trials="exclude")) == (7, 7, 0)


def test_provenance_names_the_builds_of_the_commits(personas: Personas, run: Run) -> None:
    for trial in Trial.objects.filter(job__run=run):
        digest = f"{trial.variant.position}" * 64
        trial.provenance["build"] = {"digest": digest, "source_digest": "", "checked": True}
        trial.save(update_fields=["provenance"])
    facts = dict(load_provenance(made(personas)).facts)
    sha = run.variants.all()[1].commit.sha
    assert f"`{sha[:10]}` SHA-256 {'1' * 64}" in facts["Builds"].split("; ")


def test_histograms_are_merged_only_on_request(personas: Personas, run: Run) -> None:
    Histogram.objects.all().delete()
    plain = {"rows": ["kind"], "columns": [{"metric": "latency.p99", "title": "p99"}]}
    assert made(personas, plain).tables[0].rows[0].cells[0].value is not None
    cell = made(personas).tables[0].rows[0].cells[1]
    assert (cell.kind, cell.reason) == ("untold", "too few requests")
