"""Files of results: the same rows as through the API, all or nothing, again for nothing."""

import csv
import gzip
import json
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from orchestrator.accounts.models import AuditEntry
from orchestrator.benchmarks.models import Case, Commit, Project
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import InvalidRequestError, PermissionRefusedError
from orchestrator.fleet.models import Host
from orchestrator.measurements import bulk_import
from orchestrator.measurements.bulk_import import BulkImportResult, check_file, import_file
from orchestrator.measurements.incoming import ResultIn
from orchestrator.measurements.ingest import forget_cached, ingest_results
from orchestrator.measurements.repeats import ResultConflictError
from orchestrator.measurements.result_files import Bounds, read_results
from orchestrator.results.models import ChangedSeries, Point, Reading, Series
from orchestrator.retention.settings import RetentionSettings, save_retention
from tests.support.factories import (
    Personas,
    commit_files,
    make_definition,
    make_project,
)
from tests.support.fetches import run_fetches

AT = datetime(2026, 5, 1, tzinfo=UTC)
SHA = "a" * 40


@pytest.fixture(autouse=True)
def _own_folder(data_dir: Path) -> None:
    forget_cached()


@pytest.fixture
def project(personas: Personas, tmp_path: Path) -> Project:
    new_project, _ = make_project(personas.alice, tmp_path / "repository")
    make_definition(personas.alice, new_project)
    return new_project


def result(**changes: Any) -> dict[str, Any]:
    return {
        "id": "1",
        "benchmark": "hello",
        "host": "ci-7",
        "commit": SHA,
        "parameters": {"connections": 4},
        "metrics": {"requests.rate": 1000.0, "latency.p50": 0.004},
        "at": AT.isoformat(),
        **changes,
    }


def lines_in(folder: Path, *results: Any, name: str = "results.jsonl") -> Path:
    path = folder / name
    texts = [each if isinstance(each, str) else json.dumps(each) for each in results]
    path.write_text("\n".join(texts) + "\n")
    return path


def many(count: int) -> list[dict[str, Any]]:
    """Of 8 commits, 3 cases and 2 hosts, in any order; some suspect, invalid, zero or without one
    metric, in blocks or not."""
    draw = random.Random(6)
    results = []
    for number in range(count):
        commit = draw.randrange(8)
        metrics = {"requests.rate": draw.lognormvariate(7, 0.02), "latency.p50": draw.random()}
        if number % 5 == 0:
            metrics["requests.errors"] = float(draw.randrange(2))
        if number % 7 == 0:
            del metrics["latency.p50"]
        validity = draw.choice(["valid", "valid", "valid", "suspect", "invalid"])
        results.append(
            result(
                id=f"n-{number}",
                commit=f"{commit:x}" * 40,
                commit_facts={
                    "subject": f"Change {commit}",
                    "author": "Ada \\ B\tC",
                    "committed_at": (AT + timedelta(days=commit)).isoformat(),
                    "branch": "topic" if commit == 5 else "",
                },
                host=draw.choice(["ci-7", "ci-8"]),
                parameters={"connections": draw.choice([4, 8]), "text": 'a\\"\té'},
                metrics=metrics,
                validity=validity,
                reasons=[] if validity == "valid" else ["noise: \\N and\nmore\ttext é"],
                block=f"block {number // 6}" if number % 3 else None,
                at=(AT + timedelta(seconds=draw.randrange(10_000))).isoformat(),
                note="a\\b\n\tc\\",
            )
        )
    return results


def readings() -> list[Any]:
    rows = Reading.objects.select_related("commit", "case", "host")
    names = {each.metric_id: each.metric.key for each in Series.objects.select_related("metric")}
    return sorted(
        (
            row.provenance["id"], row.commit.sha, row.case.key, row.host.name, row.at,
            row.validity, [names[each] for each in row.metrics], row.values,
            json.dumps(row.provenance, sort_keys=True),
        )
        for row in rows
    )  # fmt: skip


def points() -> dict[Any, dict[str, Any]]:
    rows = Point.objects.select_related("commit", "series__case", "series__host", "series__metric")
    return {
        (
            row.commit.sha, row.series.case.key, row.series.host.name, row.series.metric.key,
            row.epoch, row.configuration,
        ): {
            name: getattr(row, name)
            for name in ("at", "position", "trials", "suspect", "invalid", "values", "blocks",
            "places", "runs", "run_count", "mean", "mean_log", "m2_log")
        }
        for row in rows
    }  # fmt: skip


def commits(project: Project) -> list[Any]:
    fields = ("sha", "position", "mainline", "subject", "author", "committed_at", "parents")
    return list(project.commits.order_by("sha").values_list(*fields))


def start_again(project: Project, known: Sequence[str]) -> None:
    Point.objects.all().delete()
    Series.objects.all().delete()
    Reading.objects.all().delete()
    project.commits.exclude(sha__in=known).delete()
    Case.objects.all().delete()
    Host.objects.all().delete()
    forget_cached()


def same(found: dict[str, Any], wanted: dict[str, Any], *, in_order: bool) -> bool:
    """Sums of floating-point numbers depend on their order; all else is equal.

    `in_order`: so are the values, which come in the order of their ids a batch.
    """
    sums = ("mean", "mean_log", "m2_log")
    exact = all(
        found[name] == wanted[name] for name in found if name not in (*sums, "values", "blocks")
    )
    pairs, wanted_pairs = (
        list(zip(p["values"], p["blocks"], strict=True)) for p in (found, wanted)
    )
    if not in_order:
        pairs, wanted_pairs = sorted(pairs), sorted(wanted_pairs)
    exact = exact and pairs == wanted_pairs
    return exact and all(
        found[name] == wanted[name] is None
        or found[name] == pytest.approx(wanted[name], rel=1e-9, abs=1e-12)
        for name in sums
    )


@pytest.mark.parametrize("batch", [10_000, 50, 37])
def test_a_file_creates_the_same_rows_as_the_api(
    personas: Personas,
    project: Project,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    batch: int,
) -> None:
    known = [each.sha for each in project.commits.all()]
    results = many(300)
    for start in range(0, len(results), 50):
        ingest_results(
            member=personas.alice,
            results=[ResultIn.model_validate(each) for each in results[start : start + 50]],
            token="file results.jsonl",
        )
    wanted = readings(), points(), commits(project)
    assert len(wanted[0]) == 300
    start_again(project, known)
    monkeypatch.setattr(bulk_import, "BATCH", batch)

    done = import_file(member=personas.alice, path=lines_in(tmp_path, *results))

    assert done == BulkImportResult(results=300, accepted=300)
    assert readings() == wanted[0]
    assert commits(project) == wanted[2]
    stored_points = points()
    assert stored_points.keys() == wanted[1].keys()
    different = {key: (stored_points[key], each) for key, each in wanted[1].items()
                 if not same(stored_points[key], each, in_order=batch == 50)}  # fmt: skip
    assert not different
    changed = {each for row in ChangedSeries.objects.all() for each in row.series}
    assert changed >= set(Series.objects.values_list("pk", flat=True))


def test_a_repeated_import_adds_only_new_results(
    personas: Personas, project: Project, tmp_path: Path
) -> None:
    results = many(60)
    path = lines_in(tmp_path, *results)
    import_file(member=personas.alice, path=lines_in(tmp_path, *results[:40], name="first"))
    half = points()

    assert import_file(member=personas.alice, path=path) == BulkImportResult(
        results=60, accepted=20
    )
    whole = readings(), points()
    assert import_file(member=personas.alice, path=path).repeated == 60

    assert (readings(), points()) == whole
    assert points() != half
    assert sum(each["trials"] + each["invalid"] for each in points().values()) == sum(
        len(each["metrics"]) for each in results
    )


def test_two_lines_with_one_id_and_different_content_are_refused(
    personas: Personas, project: Project, tmp_path: Path
) -> None:
    twice = [result(id="x"), result(id="x", metrics={"requests.rate": 5.0})]
    with pytest.raises(ResultConflictError, match="line 2: line 1 has the id 'x'"):
        import_file(member=personas.alice, path=lines_in(tmp_path, *twice))
    assert not Reading.objects.exists()


def test_an_id_of_another_case_or_host_is_another_result(
    personas: Personas, project: Project, tmp_path: Path
) -> None:
    results = [
        result(id="x", host=host, parameters={"connections": count})
        for host in ("ci-7", "ci-8")
        for count in (4, 8, 16)
    ]
    path = lines_in(tmp_path, *results)
    assert import_file(member=personas.alice, path=path) == BulkImportResult(results=6, accepted=6)
    assert import_file(member=personas.alice, path=path) == BulkImportResult(results=6, accepted=0)


def test_an_id_of_an_earlier_batch_with_different_content_is_refused(
    personas: Personas, project: Project, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(bulk_import, "BATCH", 2)
    results = [result(id="a"), result(id="b"), result(id="c"), result(id="a", note="other")]
    with pytest.raises(ResultConflictError, match="line 4: a result that was sent before"):
        import_file(member=personas.alice, path=lines_in(tmp_path, *results))
    assert {row.provenance["id"] for row in Reading.objects.all()} == {"a", "b"}


def test_equal_lines_of_two_batches_are_both_stored(
    personas: Personas, project: Project, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(bulk_import, "BATCH", 2)
    path = lines_in(tmp_path, *(result(id=f"n{number}") for number in range(5)))
    assert import_file(member=personas.alice, path=path).accepted == 5
    assert import_file(member=personas.alice, path=path).accepted == 0


def test_a_line_without_an_id_is_refused(
    personas: Personas, project: Project, tmp_path: Path
) -> None:
    without = {name: value for name, value in result().items() if name != "id"}
    with pytest.raises(InvalidRequestError, match="line 2: id: give each result an id"):
        import_file(member=personas.alice, path=lines_in(tmp_path, result(), without))
    assert not Reading.objects.exists()


def test_every_error_is_reported_with_its_line_and_nothing_is_stored(
    personas: Personas, project: Project, tmp_path: Path
) -> None:
    path = lines_in(
        tmp_path,
        result(),
        "{not json",
        result(commit="short"),
        "",
        result(metrics={"requests.rate": "many"}),
        result(metrics={"no.such": 1.0}),
        result(benchmark="nowhere"),
        result(validity="suspect"),
        result(more=1),
    )
    with pytest.raises(InvalidRequestError) as refused:
        import_file(member=personas.alice, path=path)
    faults = dict(refused.value.faults)
    assert set(faults) == {f"line {number}" for number in (2, 3, 5, 6, 7, 8, 9)}
    assert "Invalid JSON" in faults["line 2"]
    assert faults["line 3"].startswith("commit:")
    assert faults["line 5"].startswith("metrics.requests.rate:")
    assert "there is no metric no.such" in faults["line 6"]
    assert "no benchmark nowhere" in faults["line 7"]
    assert not Reading.objects.exists()
    assert not Host.objects.exists()


def test_commits_of_the_repository_override_those_of_the_file(
    personas: Personas, project: Project, tmp_path: Path
) -> None:
    sha = commit_files(tmp_path / "repository", {"file.txt": "new\n"}, 9)
    path = lines_in(tmp_path, result(commit=sha, commit_facts={"subject": "not so"}), result())
    import_file(member=personas.alice, path=path)
    run_fetches()
    assert Commit.objects.get(sha=sha).subject == "version 9"
    assert project.commits.get(sha=SHA).subject == f"Commit {SHA[:10]}"


def test_a_damaged_file_and_a_decompression_bomb_are_refused(tmp_path: Path) -> None:
    whole = gzip.compress((json.dumps(result()) + "\n").encode() * 300, mtime=0)
    damaged = tmp_path / "damaged.jsonl.gz"
    damaged.write_bytes(whole[:20] + bytes(10) + whole[30:])
    with pytest.raises(InvalidRequestError, match=r"damaged\.jsonl\.gz cannot be read"):
        list(read_results(damaged))
    bomb = tmp_path / "bomb.jsonl.gz"
    with gzip.open(bomb, "wb") as file:
        for _ in range(64):
            file.write(bytes(1024**2))
    with pytest.raises(InvalidRequestError, match="line 1: longer than 1024 KiB"):
        list(read_results(bomb))


def test_csv_and_gzip_give_the_same_rows(
    personas: Personas, project: Project, tmp_path: Path
) -> None:
    table = StringIO()
    rows = csv.writer(table)
    rows.writerow(
        ["benchmark", "host", "commit", "commit.subject", "case.connections", "case.protocol",
         "metric.requests.rate", "metric.latency.p50", "validity", "reasons", "at", "id"]
    )  # fmt: skip
    at = AT.isoformat()
    rows.writerow(["hello", "ci-7", SHA, "First", "4", "h2", "1000", "0.004", "", "", at, "1"])
    rows.writerow(["hello", "ci-7", SHA, "", "4", "", "900", "", "suspect", "a: b; c: d", at, "2"])
    path = tmp_path / "results.csv.gz"
    path.write_bytes(gzip.compress(table.getvalue().encode()))

    import_file(member=personas.alice, path=path, project="server")

    assert Commit.objects.get(sha=SHA).subject == "First"
    parameters = sorted((each.parameters for each in Case.objects.all()), key=len)
    assert parameters == [{"connections": 4}, {"connections": 4, "protocol": "h2"}]
    suspect = Reading.objects.get(validity="suspect")
    assert suspect.values == [900.0]
    assert suspect.provenance == {
        "token": "file results.csv.gz", "id": "2", "reasons": ["a: b", "c: d"]
    }  # fmt: skip


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("benchmark,speed\n", "line 1: there is no column 'speed'"),
        ("benchmark,benchmark\n", "occurs twice"),
        ("benchmark,host\nhello\n", "line 2: expected 2 cells, got 1"),
        ("benchmark,metric.requests.rate\nhello,fast\n", "line 2: metric.requests.rate: expected"),
        ("benchmark\n", "there is no result"),
    ],
)
def test_errors_of_a_csv_are_reported(
    personas: Personas, project: Project, tmp_path: Path, content: str, complaint: str
) -> None:
    path = tmp_path / "wrong.csv"
    path.write_text(content)
    with pytest.raises(InvalidRequestError, match=complaint):
        check_file(personas.alice, path)


def test_viewers_and_other_teams_cannot_import(
    personas: Personas, project: Project, tmp_path: Path
) -> None:
    path = lines_in(tmp_path, result())
    with pytest.raises(PermissionRefusedError):
        import_file(member=personas.bob, path=path)
    with pytest.raises(InvalidRequestError, match="no benchmark hello"):
        import_file(member=personas.mallory, path=path)


def test_results_older_than_the_retention_are_refused(
    personas: Personas, project: Project, tmp_path: Path
) -> None:
    days = (utc_now() - AT).days
    wanted = RetentionSettings(
        files_days=1, distributions_days=1, trials_days=days, points_days=None, keep_every=None
    )
    save_retention(member=personas.alice, project=project, wanted=wanted)
    old = result(at=(AT - timedelta(days=2)).isoformat())
    path = lines_in(tmp_path, result(at=utc_now().isoformat()), old)
    with pytest.raises(InvalidRequestError, match="line 2: it is older than the"):
        import_file(member=personas.alice, path=path)
    with pytest.raises(InvalidRequestError, match=r"results\[0\].at: it is older"):
        ingest_results(member=personas.alice, results=[ResultIn.model_validate(old)])
    assert not Reading.objects.exists()


def test_the_command_imports_and_reports(
    personas: Personas, project: Project, tmp_path: Path
) -> None:
    path = lines_in(tmp_path, result(id="1"), result(id="2"))
    out = StringIO()
    call_command("import_readings", str(path), "--project", "server", "--team", "red", stdout=out)
    assert "2 results, 2 new, 0 already stored" in out.getvalue()
    assert AuditEntry.objects.get(action="results.imported").subject == "results.jsonl: 2 new"
    call_command("import_readings", str(path), "--team", "red", "--check", stdout=out)
    assert "2 results, all valid" in out.getvalue()
    wrong = lines_in(tmp_path, "{", "[", name="wrong")
    with pytest.raises(CommandError, match=r"line 1: .*\nline 2: "):
        call_command("import_readings", str(wrong), "--team", "red")
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("import_readings", str(tmp_path / "none"), "--team", "red")


BOUNDS = Bounds(results=10, lines=100, unpacked=10_000_000)


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("a.jsonl.gz", b"\n" * 3_000_000, "at most 100 lines, empty ones included"),
        ("a.jsonl.gz", (b" " * 900_000 + b"\n") * 50, "at most 9 MiB when it is unpacked"),
        ("a.jsonl.gz", b"{}\n" * 11, "at most 10 results"),
        ("a.csv.gz", b"benchmark,host\n" + b"\n" * 3_000_000, "at most 100 lines"),
        ("a.csv.gz", b"benchmark,host\n" + b",\n" * 3_000_000, "at most 100 lines"),
    ],
)
def test_decompressed_bytes_are_counted_before_they_are_skipped(
    tmp_path: Path, name: str, content: bytes, fault: str
) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(content))
    assert path.stat().st_size < 100_000
    with pytest.raises(InvalidRequestError, match=fault):
        list(read_results(path, BOUNDS))


def test_a_csv_row_over_many_lines_is_limited(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text("benchmark,host\n" + ('"' + "a" * 60_000 + '\n",') * 100)
    with pytest.raises(InvalidRequestError, match="longer than 1024 KiB"):
        list(read_results(path))
