"""The reports of the catalogue have the rows and columns of the original reports."""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from orchestrator.benchmarks.models import Benchmark
from orchestrator.reports.charts import build_charts
from orchestrator.reports.exports import report_csv, report_json, report_markdown
from orchestrator.reports.models import SavedReport
from orchestrator.reports.pivot_model import PivotTable
from orchestrator.reports.reference_suites import import_published
from orchestrator.reports.report_builder import build_report
from orchestrator.reports.report_spec import parse_all
from orchestrator.reports.saved_reports import read_report_spec, save_suite_reports
from orchestrator.runs.models import Run
from tests.support import factories
from tests.support.factories import (
    Personas,
    finish_run,
    make_definition,
    make_local_host,
    make_project,
    make_run,
)

SUITES = Path(__file__).parents[2] / "agents" / "suites"
NIQUESTS_CORE = ("niquests core", "async, http/2, +hpack rust (urllib3-future)")
REPORTS = sorted(path.parent.name for path in SUITES.glob("*/report.yaml"))


def _tables(personas: Personas, suite: str, folder: Path) -> Sequence[PivotTable]:
    project, _ = make_project(personas.alice, folder / "origin")
    source = (SUITES / suite / "benchmark.yaml").read_text()
    make_definition(personas.alice, project, slug=suite, source=source)
    make_local_host(personas.alice)
    saved, *_ = save_suite_reports(
        member=personas.alice,
        benchmark=Benchmark.objects.get(),
        source=(SUITES / suite / "report.yaml").read_text(),
    )
    report = build_report(personas.alice, read_report_spec(saved))
    assert report_markdown(report).startswith("# ")
    return report.tables


def _rows(table: PivotTable) -> set[str]:
    return {" ".join(filter(None, row.heads)) for row in table.rows}


def _titles(table: PivotTable) -> list[str]:
    return [column.title for column in table.columns]


@pytest.mark.parametrize("suite", REPORTS)
def test_reports_of_all_suites_are_valid(suite: str) -> None:
    for spec in parse_all((SUITES / suite / "report.yaml").read_text()):
        assert spec.name
        assert spec.name.startswith(suite)


def test_the_compression_report_has_the_rows_of_the_original(
    personas: Personas, tmp_path: Path
) -> None:
    table, *lines = _tables(personas, "restful-compression", tmp_path)
    assert [head.title for head in table.heads] == ["Lvl", "Size", "Compression"]
    assert _titles(table)[:3] == ["Msg Size", "Tfr Size", "Ratio"]
    sizes = ["full", "small", "medium", "large", "huge"]
    wanted = {
        f"{level} {size} {coding}"
        for level in (3, 4, 5, 7, 9)
        for size in sizes
        for coding in ("br", "gzip", "zstd")
    }
    assert wanted | set(sizes) <= _rows(table)
    assert [_titles(each) for each in lines] == [
        ["Time", "Time br", "Time gzip", "Time zstd"],
        ["One thread", "Two threads"],
    ]


def test_the_api_vs_grpc_report_has_the_rows_of_the_original(
    personas: Personas, tmp_path: Path
) -> None:
    first, second = _tables(personas, "api-vs-grpc", tmp_path)
    assert [row.heads[0] for row in first.rows] == [
        "10th", "25th", "50th (Median)", "75th", "90th", "95th", "99th",
    ]  # fmt: skip
    assert _titles(first)[:3] == ["gRPC, paced (ms)", "HTTP (FastAPI) (ms)", "Difference (ms)"]
    assert [row.heads[0] for row in second.rows][:3] == [
        "Requests/sec", "Success Rate", "Average Latency (ms)",
    ]  # fmt: skip
    assert len(second.rows) == 12
    assert _titles(second)[:4] == [
        "Hypercorn (HTTP)", "Hypercorn (HTTP/2 + SSL)", "gRPC, paced", "Uvicorn (HTTP)",
    ]  # fmt: skip


def test_the_http_clients_report_has_the_rows_of_the_original(
    personas: Personas, tmp_path: Path
) -> None:
    high, simple = _tables(personas, "http-clients", tmp_path)
    assert [row.heads[0] for row in high.rows] == ["requests", "httpx", "niquests"]
    assert [row.heads[0] for row in simple.rows] == [
        "requests core", "httpx core", "aiohttp", "niquests core",
    ]  # fmt: skip
    assert [row.heads[1] for row in high.rows] == [
        "sync, http/1 only", "async, http/2", "async, http/2, +hpack rust",
    ]  # fmt: skip
    assert _titles(high) == [
        "Average Delay to Complete", "Against requests", "Estimated Throughput", "Time of one task",
    ]  # fmt: skip


def test_the_protocols_report_has_the_rows_of_the_original(
    personas: Personas, tmp_path: Path
) -> None:
    tables = _tables(personas, "protocols", tmp_path)
    assert len(tables) == 3
    for table in tables:
        assert [row.heads[0] for row in table.rows] == [
            "HTTP/1.1", "HTTP/2 (h2c)", "HTTP/3 (minimal TLS)",
        ]  # fmt: skip
        assert _titles(table) == ["Ops/sec", "Throughput (MB/s)", "Improvement"]


def test_the_server_overhead_report_has_the_rows_of_the_original(
    personas: Personas, tmp_path: Path
) -> None:
    tables = _tables(personas, "server-overhead", tmp_path)
    assert [len(table.columns) for table in tables] == [4, 1, 1, 1, 5, 4]
    for table in tables:
        assert [head.title for head in table.heads] == ["Language", "Framework", "Server", "Status"]
        assert {"python3 falcon meinheld", "pypy2 falcon meinheld"} <= _rows(table)
    gone = next(row for row in tables[0].rows if row.heads[0] == "pypy2")
    assert gone.cells[0].kind == "unsupported"
    assert gone.cells[0].reason


def test_a_suite_report_is_replaced(personas: Personas, tmp_path: Path) -> None:
    _tables(personas, "protocols", tmp_path)
    source = (SUITES / "protocols" / "report.yaml").read_text()
    save_suite_reports(member=personas.alice, benchmark=Benchmark.objects.get(), source=source)
    assert SavedReport.objects.count() == 1


@pytest.fixture
def measured(personas: Personas, tmp_path: Path) -> Run:
    _tables(personas, "protocols", tmp_path)
    shas = [commit.sha for commit in Benchmark.objects.get().project.commits.all()[:1]]
    return finish_run(make_run(personas.alice, shas, benchmark="protocols", rounds=3), [1000])


def test_a_measured_suite_fills_its_report(personas: Personas, measured: Run) -> None:
    saved = SavedReport.objects.get()
    table = build_report(personas.alice, read_report_spec(saved)).tables[0]
    assert [row.cells[0].trials for row in table.rows] == [3, 3, 3]
    assert table.rows[0].cells[2].baseline


def test_the_claims_of_a_suite_end_its_report(personas: Personas, measured: Run) -> None:
    """Equal rates prove no difference between protocols, and exclude none."""
    report = build_report(personas.alice, read_report_spec(SavedReport.objects.get()))
    assert {str(each.conclusion) for each in report.claims.claims} == {"cannot tell"}
    assert "fewer than 3 runs" in report.claims.claims[0].reason
    for _ in range(2):
        shas = [commit.sha for commit in report.commits]
        again = make_run(personas.alice, shas, benchmark="protocols", rounds=3)
        finish_run(again, [1000])
    report = build_report(personas.alice, read_report_spec(SavedReport.objects.get()))
    first, close = report.claims.claims[0], report.claims.claims[3]
    assert (first.value, first.unit) == (pytest.approx(1, rel=0.1), "times")
    # HTTP/2 and HTTP/3 against HTTP/1.1: two comparisons; each other claim has one or two.
    assert (close.comparisons, report.claims.comparisons) == (2, 10)
    assert report.claims.confidence == pytest.approx(0.995)

    text = report_markdown(report)
    section = text.partition("## Do the claims hold?")[2].partition("## Provenance")[0]
    assert "| Claim | Source | Published | Measured | Conclusion |" in section
    assert "| 1.07 times | " in section
    assert "99.50 %" in section
    assert "Apple Silicon M4 Pro" in section
    assert "oha" in section
    assert "Changes and differences are paired: they are those within common blocks." in text
    data = json.loads(report_json(report))["claims"]
    assert data["claims"][0]["value"] == first.value
    assert [each["topic"] for each in data["differences"]] == ["Hardware", "Versions", "Size"]
    rows = list(csv.reader(io.StringIO(report_csv(report))))
    (at,) = (n for n, row in enumerate(rows) if row == ["Do the claims hold?"])
    assert rows[at + 1][:3] == ["claim", "source", "host"]
    assert float(rows[at + 2][4]) == pytest.approx(first.value)
    assert len(rows) == at + 2 + len(report.claims.claims)


@pytest.mark.parametrize("suite", REPORTS)
def test_each_table_of_a_measured_suite_has_its_charts(
    personas: Personas, tmp_path: Path, suite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = factories._build_readings
    monkeypatch.setattr(
        factories,
        "_build_readings",
        lambda rate: {
            **usual(rate),
            "latency.mean": 5 / rate,
            "script.delay_s": 1 / rate,
            "script.throughput_per_s": rate,
        },
    )
    if (SUITES / suite / "published.yaml").exists():
        import_published(member=personas.alice, suite=suite)
    _tables(personas, suite, tmp_path)
    shas = [commit.sha for commit in Benchmark.objects.get().project.commits.all()[:1]]
    finish_run(make_run(personas.alice, shas, benchmark=suite, rounds=1), [1000])
    report = build_report(personas.alice, read_report_spec(SavedReport.objects.get(slug=suite)))
    drawn = [len(charts) for charts in build_charts(report)]
    wanted = [table.charts for table in report.spec.tables]
    assert wanted[0]
    assert [(n, len(each)) for n, each in zip(drawn, wanted, strict=True) if each] == [
        (len(each), len(each)) for each in wanted if each
    ]


@pytest.mark.parametrize(
    ("suite", "table", "heads", "column", "value"),
    [
        ("server-overhead", 0, ("rust", "hyper", "", ""), "1000 r/s, published", 2.18),
        ("server-overhead", 1, ("pypy2", "falcon", "meinheld", ""), "100 r/s, published", 33.34),
        ("protocols", 0, ("HTTP/2 (h2c)",), "Improvement, published", -6.47),
        ("protocols", 2, ("HTTP/1.1",), "Throughput (MB/s), published", 89.80),
        ("http-clients", 1, NIQUESTS_CORE, "Average Delay to Complete, published", 170.0),
        ("api-vs-grpc", 0, ("95th",), "gRPC, paced (ms), published", 7.77),
        ("restful-compression", 0, ("9", "huge", "zstd"), "H2, published", 65.14),
    ],
)
def test_reference_results_are_shown_next_to_measured_ones(
    personas: Personas,
    tmp_path: Path,
    suite: str,
    table: int,
    heads: tuple[str, ...],
    column: str,
    value: float,
) -> None:
    import_published(member=personas.alice, suite=suite)
    pivot = _tables(personas, suite, tmp_path)[table]
    (row,) = (row for row in pivot.rows if row.heads == heads)
    places = [n for n, each in enumerate(pivot.columns) if each.title.endswith(column)]
    assert [row.cells[place].value for place in places if row.cells[place].published] == [
        pytest.approx(value, rel=0.002)
    ]
