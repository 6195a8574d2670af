"""Imported figures: whole or not at all, again without doubling, in their own team only."""

import io
import os
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from orchestrator.core import progress
from orchestrator.core.errors import InvalidRequestError, NotFoundError, PermissionRefusedError
from orchestrator.fleet.services import save_profile
from orchestrator.reports.models import ReferenceResult, ReferenceSource
from orchestrator.reports.reference_import import NewImport, ReferenceImport, import_results
from orchestrator.reports.references import (
    load_reference_results,
    load_reference_values,
    load_source,
    load_sources,
)
from tests.support.factories import Personas
from tests.support.terminal import a_terminal

CSV = (
    "suite,profile,case.system,metric,unit,value\n"
    "overhead,small-box,flask,latency.p99,ms,4.5\n"
    "overhead,Big Box,axum,latency.p99,ms,0.5\n"
    "overhead,elsewhere,axum,latency.p99,ms,-1\n"
    "overhead,elsewhere,axum,stars,,-1\n"
)


def new(content: str = CSV, **changes: object) -> NewImport:
    fields = {"name": "A report", "format": "csv", "content": content.encode(), **changes}
    return NewImport(**fields)  # type: ignore[arg-type]


def counts(done: ReferenceImport) -> tuple[int, int, int, int]:
    return done.rows, done.added, done.changed, done.unchanged


def test_every_value_of_the_file_is_accounted_for(personas: Personas) -> None:
    done = import_results(member=personas.alice, new=new())
    assert counts(done) == (4, 4, 0, 0)
    assert done.unknown == 1
    unknown = ReferenceResult.objects.get(value=None)
    assert (unknown.metric, unknown.sentinel, unknown.unit) == ("latency.p99", "-1", "s")
    assert ReferenceResult.objects.get(metric="stars").value == -1


def test_a_value_can_be_declared_unknown(personas: Personas) -> None:
    done = import_results(member=personas.alice, new=new(unknown=frozenset({-1.0})))
    assert done.unknown == 2
    assert ReferenceResult.objects.get(metric="stars").sentinel == "-1"


def test_a_repeated_import_duplicates_nothing(personas: Personas) -> None:
    import_results(member=personas.alice, new=new())
    assert counts(import_results(member=personas.alice, new=new())) == (4, 0, 0, 4)
    corrected = new(CSV.replace("4.5", "4.75") + "overhead,elsewhere,axum,stars,,12\n")
    assert counts(import_results(member=personas.alice, new=corrected)) == (5, 1, 1, 3)
    values = ReferenceResult.objects.filter(profile=None, parameters={"system": "flask"})
    assert [each.value for each in values] == [0.00475]
    assert ReferenceSource.objects.count() == 1


def test_indistinguishable_values_are_all_kept(personas: Personas) -> None:
    twice = new("metric,value\nx,1\nx,2\nx,2\n")
    assert counts(import_results(member=personas.alice, new=twice)) == (3, 3, 0, 0)
    assert counts(import_results(member=personas.alice, new=twice)) == (3, 0, 0, 3)


def test_an_invalid_line_stores_nothing(personas: Personas) -> None:
    with pytest.raises(InvalidRequestError, match="line 6, value"):
        import_results(member=personas.alice, new=new(CSV + "a,b,c,d,,soon\n"))
    assert not ReferenceSource.objects.exists()


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("metric,value\n", "this file has no reference results"),
        ("metric,value\n" + "x" * 301 + ",1\n", "at most 300 characters"),
        ("metric,value,commit\nx,1,a\0b\n", "cannot be stored"),
    ],
)
def test_values_that_cannot_be_stored_are_refused(
    personas: Personas, content: str, complaint: str
) -> None:
    with pytest.raises(InvalidRequestError, match=complaint):
        import_results(member=personas.alice, new=new(content))


def test_the_profile_is_found_by_slug_or_name(personas: Personas) -> None:
    save_profile(member=personas.alice, slug="small-box", name="Small box")
    save_profile(member=personas.alice, slug="big", name="Big Box")
    import_results(member=personas.alice, new=new())
    values = load_reference_values(personas.alice.team, suite="overhead", metric="latency.p99")
    assert [(each.profile, each.parameters["system"], each.value) for each in values] == [
        ("small-box", "flask", 0.0045),
        ("big", "axum", 0.0005),
        ("elsewhere", "axum", None),
    ]
    assert {each.source for each in values} == {"A report"}


def test_missing_fields_of_the_file_are_filled_in(personas: Personas) -> None:
    new_import = new("metric,value\nx,1\n", suite="s", environment="e", commit="c")
    import_results(member=personas.alice, new=new_import)
    result = ReferenceResult.objects.get()
    assert (result.suite, result.environment, result.commit) == ("s", "e", "c")


def test_a_viewer_can_read_but_not_import(personas: Personas) -> None:
    with pytest.raises(PermissionRefusedError):
        import_results(member=personas.bob, new=new())
    done = import_results(member=personas.alice, new=new())
    assert load_source(personas.bob, done.source.pk).figures == 4


def test_another_team_sees_nothing(personas: Personas) -> None:
    done = import_results(member=personas.alice, new=new())
    assert not load_sources(personas.mallory).exists()
    assert load_reference_values(personas.mallory.team) == []
    with pytest.raises(NotFoundError):
        load_source(personas.mallory, done.source.pk)


@pytest.mark.parametrize(
    ("words", "found"), [("flask", 1), ("AXUM p99", 2), ("system elsewhere", 2), ("none", 0)]
)
def test_all_search_words_must_match(personas: Personas, words: str, found: int) -> None:
    done = import_results(member=personas.alice, new=new())
    assert load_reference_results(done.source, words).count() == found


def test_progress_is_reported(personas: Personas) -> None:
    seen: list[tuple[int, int]] = []
    lines = "".join(f"x{place},1\n" for place in range(1200))
    import_results(
        member=personas.alice,
        new=new("metric,value\n" + lines),
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen == [(500, 1200), (1000, 1200), (1200, 1200)]


def test_the_command_draws_a_bar_on_a_terminal(
    personas: Personas, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 50 columns, which no line of it is longer than; what it says itself is not among it."""
    monkeypatch.setattr(progress, "PATIENCE_S", 0.0)
    (tmp_path / "figures.csv").write_text(CSV)
    out = io.StringIO()
    with a_terminal(columns=50) as terminal:
        options: Any = {"source": "Ours", "team": "red", "stdout": out, "stderr": terminal.stream}
        call_command("import_results", tmp_path / "figures.csv", **options)
        drawn = terminal.read()
    lines = drawn.split("\r\x1b[K")
    assert f"Importing Ours [{'#' * 24}]  4 of 4"[:49] == lines[-1].rstrip("\r\n")
    assert drawn.endswith("\n")
    assert max(map(len, lines)) <= 49 + len("\r\n")
    assert out.getvalue().startswith("Ours: 4 values, 1 of them unknown; 4 added")


def test_the_command_draws_no_bar_elsewhere(personas: Personas, tmp_path: Path) -> None:
    (tmp_path / "figures.csv").write_text(CSV)
    out = io.StringIO()
    call_command("import_results", tmp_path / "figures.csv", team="red", stdout=out, stderr=out)
    assert "\r" not in out.getvalue()
    assert ReferenceSource.objects.get().name == "figures.csv"


def test_the_command_reports_what_is_wrong(personas: Personas, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="several teams: choose one of blue, red"):
        call_command("import_results", tmp_path / "none.csv")
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("import_results", tmp_path / "none.csv", team="red")
    with pytest.raises(CommandError, match="name a file"):
        call_command("import_results", team="red")


@pytest.mark.skipif(
    "PITWALL_SHARED_DATA" not in os.environ, reason="PITWALL_SHARED_DATA names no folder"
)
@pytest.mark.parametrize(
    ("name", "format_name", "rows", "unknown"),
    [
        ("github-action-benchmark-hyper-data.js", "github-action-benchmark", 2 * 7603, 0),
        ("the-benchmarker-data.json", "the-benchmarker", 16983, 9990 + 8),
    ],
)
def test_the_real_files_are_imported_whole(
    personas: Personas, name: str, format_name: str, rows: int, unknown: int
) -> None:
    content = (Path(os.environ["PITWALL_SHARED_DATA"]) / "import" / name).read_bytes()
    new_import = NewImport(name=name, format=format_name, content=content)
    first = import_results(member=personas.alice, new=new_import)
    assert counts(first) == (rows, rows, 0, 0)
    assert first.unknown == unknown
    assert counts(import_results(member=personas.alice, new=new_import)) == (rows, 0, 0, rows)
    assert ReferenceResult.objects.count() == rows
