"""Histories of other tools become series of the project, with one point for each value."""

import csv
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from orchestrator.alerts.alert_rules import apply_alert_rules
from orchestrator.alerts.models import Alert
from orchestrator.benchmarks import filing
from orchestrator.benchmarks.models import Benchmark, Commit, Project
from orchestrator.benchmarks.projects import create_project
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import (
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    PermissionRefusedError,
)
from orchestrator.importers import history_values, uploaded_files
from orchestrator.importers.registry import HISTORY_FORMATS
from orchestrator.measurements import bulk_import, history_import, import_steps
from orchestrator.measurements.history_import import discard_history, start_history
from orchestrator.measurements.import_steps import import_some, prune_imports
from orchestrator.measurements.ingest import forget_cached
from orchestrator.results.models import (
    ChangedSeries,
    ChangePoint,
    ImportPart,
    Point,
    Reading,
    ResultImport,
    Retention,
    Series,
)
from tests.support.factories import commit_files, git
from tests.support.fetches import fetch_now, run_fetches
from tests.support.histories import (
    DAY,
    START,
    build_data_js,
    build_frameworks,
    build_zip,
    detect_all,
    import_history,
    queue_content,
    run_imports,
)
from tests.support.world import World

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _nothing_remembered() -> Any:
    forget_cached()
    yield
    forget_cached()


@pytest.fixture
def long_history(world: World) -> list[str]:
    """The hashes of 43 commits of the project. The mirror knows all of them."""
    more = [commit_files(world.repository, {"file.txt": f"{n}\n"}, n) for n in range(3, 43)]
    fetch_now(world.project)
    return [*world.shas, *more]


def test_a_history_becomes_series_with_a_point_per_value(
    world: World, long_history: list[str], tmp_path: Path
) -> None:
    content = build_data_js(long_history, names=["one", "two", "three"])
    row = import_history(world.alice, content, tmp_path)
    assert (row.state, row.faults) == ("done", [])
    assert row.accepted == Point.objects.count() == Reading.objects.count() == 3 * 43
    assert not ImportPart.objects.exists()
    benchmark = Benchmark.objects.get(slug="pipeline")
    assert benchmark.project == world.project
    series = Series.objects.get(case__parameters={"benchmark": "two"})
    assert (series.metric.key, series.host.name) == ("script.time_s", "imported")
    points = list(Point.objects.filter(series=series).order_by("position"))
    assert [point.commit.sha for point in points] == long_history
    assert points[1].mean == pytest.approx(60_031e-9)
    assert points[1].at == START + DAY


GOLDEN = Path(__file__).parents[1] / "importers" / "golden"
GOLDEN_FILES = sorted(
    path
    for path in GOLDEN.iterdir()
    if not path.name.endswith(".rows.csv") and path.stem.startswith(tuple(HISTORY_FORMATS))
)


@pytest.mark.parametrize("path", GOLDEN_FILES, ids=lambda path: path.stem)
def test_every_format_is_recognised_and_becomes_as_many_points_as_values(
    world: World, tmp_path: Path, path: Path
) -> None:
    """The golden rows say how many values a file has."""
    with (GOLDEN / f"{path.stem}.rows.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["value"]]
    own = path.stem in ("csv", "json")
    expected = sum(own or not row["statistic"] for row in rows)
    for accepted in (expected, 0):
        row = import_history(
            world.alice, path.read_bytes(), tmp_path, name=path.name, commit=world.shas[0]
        )
        assert path.stem.startswith(row.preview["format"])
        assert (row.state, row.faults) == ("done", [])
        assert (row.accepted, row.done) == (accepted, expected)
    assert Reading.objects.count() == expected
    points = Point.objects.values_list("trials", flat=True)
    assert sum(points) == expected


def test_a_repeated_import_adds_nothing_and_a_longer_file_adds_the_rest(
    world: World, long_history: list[str], tmp_path: Path
) -> None:
    import_history(world.alice, build_data_js(long_history[:40]), tmp_path)
    again = import_history(world.alice, build_data_js(long_history[:40]), tmp_path)
    assert (again.accepted, again.repeated) == (0, 40)
    commits = Commit.objects.count()
    longer = import_history(world.alice, build_data_js(long_history), tmp_path)
    assert (longer.accepted, longer.repeated) == (3, 40)
    assert Point.objects.count() == Reading.objects.count() == 43
    assert Commit.objects.count() == commits


def test_equal_values_of_one_file_are_all_kept(world: World, tmp_path: Path) -> None:
    line = f"script.x_s,1.5,2025-01-01,{world.shas[0]}\n"
    content = ("metric,value,measured_at,commit\n" + 3 * line).encode()
    for expected in (3, 0):
        row = import_history(world.alice, content, tmp_path, name="old.csv")
        assert row.accepted == expected
    [point] = Point.objects.all()
    assert point.trials == 3


def test_the_preview_describes_the_file_and_stores_nothing(world: World, tmp_path: Path) -> None:
    unknown = "f" * 40
    content = build_data_js([*world.shas, unknown], names=["one", "two"], suite="end_to_end")
    row = queue_content(world.alice, content, tmp_path)
    run_imports()
    row.refresh_from_db()
    assert row.state == "ready"
    assert row.preview == {
        "format": "github-action-benchmark",
        "values": 8,
        "series": 2,
        "unknown": 0,
        "spread": 8,
        "undirected": 0,
        "benchmarks": [{"slug": "end-to-end", "exists": False, "series": 2, "values": 8}],
        "hosts": ["imported"],
        "commits": 4,
        "matched": 3,
        "by_date": 0,
        "unknown_values": 2,
        "unknown_commits": [
            {"name": unknown, "subject": "Change 3", "at": (START + 3 * DAY).isoformat()}
        ],
        "first_at": START.isoformat(),
        "last_at": (START + 3 * DAY).isoformat(),
        "has_repository": True,
        "fetch_problem": "",
    }
    assert not Reading.objects.exists()
    assert not Benchmark.objects.filter(slug="end-to-end").exists()
    assert not import_some(), "it waits for a member"


def test_abbreviated_hashes_and_tags_name_commits(world: World, tmp_path: Path) -> None:
    git(world.repository, "tag", "v1.0")
    fetch_now(world.project)
    names = [world.shas[0][:7], world.shas[1][:12].upper(), "1.0"]
    row = import_history(world.alice, build_data_js(names), tmp_path)
    assert row.preview["matched"] == 3
    assert {point.commit.sha for point in Point.objects.all()} == set(world.shas)


def test_commits_that_were_not_fetched_yet_are_fetched_for_the_preview(
    world: World, tmp_path: Path
) -> None:
    new = commit_files(world.repository, {"file.txt": "new\n"}, 9)
    row = queue_content(world.alice, build_data_js([new]), tmp_path)
    assert import_some()
    row.refresh_from_db()
    assert row.preview == {"fetching": True}
    assert not import_some(), "it waits for the fetch"
    assert run_fetches() == 1
    ResultImport.objects.update(claimed_until=None)
    run_imports()
    row.refresh_from_db()
    assert (row.preview["matched"], row.preview["fetch_problem"]) == (1, "")


def test_a_failed_fetch_is_reported_in_the_preview(world: World, tmp_path: Path) -> None:
    world.repository.rename(tmp_path / "elsewhere")
    row = queue_content(world.alice, build_data_js([world.shas[0], "e" * 40]), tmp_path)
    run_imports()
    row.refresh_from_db()
    assert row.state == "ready"
    assert row.preview["matched"] == 1
    assert row.preview["fetch_problem"]


@pytest.mark.parametrize("unknown", ["keep", "skip"])
def test_results_of_unknown_commits_are_kept_or_left_out(
    world: World, tmp_path: Path, unknown: str
) -> None:
    content = build_data_js([world.shas[0], "e" * 40, "abcdef1"])
    row = import_history(world.alice, content, tmp_path, unknown=unknown)
    assert row.state == "done"
    if unknown == "skip":
        assert [point.commit.sha for point in Point.objects.all()] == [world.shas[0]]
        assert Commit.objects.count() == 3
        return
    assert Point.objects.count() == 3
    commit = Commit.objects.get(sha="e" * 40)
    assert (commit.subject, commit.author) == ("Change 1", "Ada")
    assert commit.committed_at == START + DAY
    assert Commit.objects.filter(sha="abcdef1".ljust(40, "0")).exists()


def test_unknown_commits_are_placed_by_their_dates(world: World, tmp_path: Path) -> None:
    first = world.commits[0].committed_at
    assert world.commits[1].committed_at - first == timedelta(minutes=1)
    # The commits are a minute apart: these are after the first and after the second.
    unknown = [f"{n:040x}" for n in range(1, 16)]
    content = build_data_js(unknown, start=first, step=timedelta(seconds=5))
    import_history(world.alice, build_data_js([world.shas[2]]), tmp_path)
    import_history(world.alice, content, tmp_path)
    ordered = list(
        world.project.commits.order_by("position").values_list("sha", "position", "committed_at")
    )
    expected = [
        world.shas[0], *unknown[:12], world.shas[1], *unknown[12:], world.shas[2],
    ]  # fmt: skip
    assert [sha for sha, _, _ in ordered] == expected
    assert len({position for _, position, _ in ordered}) == 18
    # Points follow their commits, and a repeat moves nothing.
    line = Point.objects.order_by("position").values_list("commit__sha", flat=True)
    assert list(line) == [*unknown, world.shas[2]]
    import_history(world.alice, content, tmp_path)
    assert ordered == list(
        world.project.commits.order_by("position").values_list("sha", "position", "committed_at")
    )


def test_many_unknown_commits_keep_their_places_when_the_branch_grows(
    world: World, tmp_path: Path
) -> None:
    unknown = [f"{n:040x}" for n in range(1, 61)]
    import_history(world.alice, build_data_js(unknown), tmp_path)
    new = commit_files(world.repository, {"file.txt": "new\n"}, 9)
    fetch_now(world.project)
    import_history(world.alice, build_data_js([new]), tmp_path)
    line = world.project.commits.filter(mainline=True, position__isnull=False)
    ordered = list(line.order_by("position").values_list("sha", flat=True))
    assert ordered == [*world.shas, *unknown, new]
    assert Point.objects.filter(position__isnull=False).count() == 61


def test_a_file_with_dates_only_belongs_to_the_newest_commit_of_its_date(
    world: World, tmp_path: Path
) -> None:
    """The versions in a file of the-benchmarker are those of the frameworks."""
    content, known = build_frameworks(5)
    row = import_history(world.alice, content, tmp_path, name="data.json")
    assert (row.preview["format"], row.preview["by_date"]) == ("the-benchmarker", 1)
    assert row.preview["unknown"] == 10
    assert Point.objects.count() == Series.objects.count() == known == 20
    assert {point.commit.sha for point in Point.objects.all()} == {world.shas[2]}
    rate = Series.objects.get(
        metric__key="requests.rate",
        case__parameters={"language": "go", "framework": "f3", "connections": 64},
    )
    assert Point.objects.get(series=rate).mean == 1003.0
    assert rate.host.name == "a-cpu-16-cpus"


def test_old_shifts_become_change_points_and_raise_no_alert(
    world: World, long_history: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_import, "BATCH", 10)
    monkeypatch.setattr(import_steps, "STEP_S", 0.0)
    row = queue_content(world.alice, build_data_js(long_history, shift_at=25), tmp_path)
    run_imports()
    start_history(member=world.alice, import_id=row.pk, unknown_commits="keep")
    for _ in ("converted", "checked", "first batch", "second batch"):
        assert import_some()
    assert Point.objects.count() == 20
    detect_all()
    assert ChangedSeries.objects.count() == 2, "a part of a history is not analysed"
    run_imports()
    assert ChangedSeries.objects.count() == 1
    detect_all()
    [change] = ChangePoint.objects.all()
    assert change.commit.sha == long_history[25]
    assert (change.kind, change.regressed, change.recent) == ("alert", True, False)
    assert change.message == "not confirmed: it was imported with a history"
    apply_alert_rules(utc_now())
    assert not Alert.objects.exists()


def test_a_shift_after_an_imported_history_raises_an_alert(
    world: World, long_history: list[str], tmp_path: Path
) -> None:
    import_history(world.alice, build_data_js(long_history[:30]), tmp_path)
    content = build_data_js(long_history, shift_at=30)
    row = import_history(world.alice, content, tmp_path)
    assert row.accepted == 13
    apply_alert_rules(utc_now())
    assert not Alert.objects.exists(), "this is history too"
    # The same values as results of today.
    ChangePoint.objects.all().delete()
    ChangedSeries.objects.create(series=[Series.objects.get().pk])
    detect_all()
    apply_alert_rules(utc_now())
    assert Alert.objects.count() == 1


def test_commits_older_than_those_that_were_filed_keep_their_order(
    world: World, long_history: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filing, "HISTORY_LIMIT", 10)
    project = create_project(
        member=world.alice, slug="deep", name="Deep", repository_url=str(world.repository)
    )
    run_fetches()
    content = build_data_js(long_history)
    row = import_history(world.alice, content, tmp_path, project="deep")
    assert row.preview["matched"] == 43
    points = Point.objects.filter(commit__project=project, commit__mainline=True)
    line = list(points.order_by("position").values_list("commit__sha", "position"))
    assert [sha for sha, _ in line] == long_history
    assert [position for _, position in line] == list(range(43))


def test_a_commit_of_another_branch_is_matched_without_a_position(
    world: World, tmp_path: Path
) -> None:
    git(world.repository, "checkout", "--quiet", "-b", "topic")
    sha = commit_files(world.repository, {"file.txt": "topic\n"}, 7)
    git(world.repository, "checkout", "--quiet", "main")
    row = import_history(world.alice, build_data_js([sha, *world.shas]), tmp_path)
    assert row.preview["matched"] == 4
    assert Commit.objects.get(sha=sha).position is None
    assert Point.objects.filter(commit__sha=sha).count() == 1


def test_the_results_folder_of_asv_is_one_history(world: World, tmp_path: Path) -> None:
    golden = Path("tests/importers/golden/asv.json").read_text()
    files = {
        f"results/bench1/{sha[:8]}-py.json": golden.replace("4f1c0ffee" * 4 + "4f1c", sha).encode()
        for sha in world.shas
    }
    files["results/benchmarks.json"] = (
        b'{"version": 2, "requests.TimeParse.time_head": {"param_names": ["text"]},'
        b' "requests.track_heads": {"param_names": [], "unit": "heads"}}'
    )
    files["results/bench1/machine.json"] = b'{"machine": "bench1", "version": 1}'
    row = import_history(world.alice, build_zip(files), tmp_path, name="results.zip")
    assert (row.preview["format"], row.preview["matched"]) == ("asv", 3)
    assert Point.objects.count() == 6
    labels = set(Series.objects.values_list("case__label", "metric__key"))
    assert ("benchmark requests.TimeParse.time_head, env virtualenv-py3.11, text 'short'",
            "script.time_s") in labels  # fmt: skip


def test_options_replace_what_the_file_names(world: World, tmp_path: Path) -> None:
    content = b'{"GET /": {"score": {"value": 7}, "latency": {"value": 88000.0}}}'
    row = import_history(
        world.alice, content, tmp_path, name="bmf.json", commit="main~1"[:4],
        benchmark="Micro", host="Box 1", better="higher", unknown="keep",
    )  # fmt: skip
    assert row.preview["format"] == "bencher"
    assert set(Series.objects.values_list("benchmark__slug", "host__name", "metric__key")) == {
        ("micro", "box-1", "script.score_higher"),
        ("micro", "box-1", "script.latency_s"),
    }


def test_a_file_without_commits_and_dates_needs_a_commit(world: World, tmp_path: Path) -> None:
    content = b'{"GET /": {"latency": {"value": 88000.0}}}'
    row = queue_content(world.alice, content, tmp_path, name="bmf.json")
    run_imports()
    row.refresh_from_db()
    assert row.state == "failed"
    assert "neither a commit nor a date" in row.faults[0][1]


def _nest(depth: int) -> bytes:
    return b'{"entries":' + b"[" * depth + b"]" * depth + b"}"


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("data.js", b"window.BENCHMARK_DATA = {", "not JSON"),
        ("data.js", b"\x00\x01\x02", "not JSON"),
        ("data.js", _nest(200_000), "too deep"),
        ("data.js", b'{"entries": []}', "expected an object, got []"),
        ("data.js", b'{"entries": {"a": [{"date": "x"}]}}', "entries.a[0].date"),
        ("data.json", b'{"hello": [1, 2]}', "the format of data.json is unknown"),
        ("data.json", b"[]", "the format of data.json is unknown"),
        ("data.js", build_data_js([]), "data.js has no values"),
        ("data.js", build_data_js(["a" * 40], names=["nul \0"]), "value 1: a text has a NUL"),
        ("data.js", build_data_js(["a" * 40], names=["\ud800"]), "half of a character"),
        ("r.csv", b"metric,value,commit\nx,1e300,abcdef1\n", "metrics.script.x_count"),
        ("r.zip", b"PK\x03\x04 damaged", "is not a .zip that can be read"),
        ("r.zip", build_zip({"a.json": b"{}", "b.json": b"{}"}), "a.json: version"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_with_the_position(
    world: World, tmp_path: Path, name: str, content: bytes, words: str
) -> None:
    row = queue_content(world.alice, content, tmp_path, name=name)
    run_imports()
    row.refresh_from_db()
    assert row.state == "failed"
    assert words in row.faults[0][1]
    assert not Reading.objects.exists()


def test_a_history_that_is_older_than_the_retention_is_refused_in_the_preview(
    world: World, tmp_path: Path
) -> None:
    Retention.objects.update_or_create(
        project=world.project,
        defaults={"files_days": 5, "distributions_days": 6, "trials_days": 7},
    )
    row = queue_content(world.alice, build_data_js(world.shas), tmp_path)
    run_imports()
    row.refresh_from_db()
    assert row.state == "failed"
    assert "the oldest result cannot be imported: it is older than the 7 days" in row.faults[0][1]
    assert not Benchmark.objects.filter(slug="pipeline").exists()


def test_too_many_values_and_bytes_are_refused(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_values, "MOST_VALUES", 2)
    row = queue_content(world.alice, build_data_js(world.shas), tmp_path)
    run_imports()
    row.refresh_from_db()
    assert "at most 2 values" in row.faults[0][1]

    monkeypatch.setattr(uploaded_files, "MAX_BYTES", 1024**2)
    bomb = build_zip({"a.json": b" " * 2 * 1024**2})
    row = queue_content(world.alice, bomb, tmp_path, name="bomb.zip")
    run_imports()
    row.refresh_from_db()
    assert "at most 1 MiB" in row.faults[0][1]

    monkeypatch.setattr(history_import, "MAX_BYTES", 10)
    with pytest.raises(InvalidRequestError, match="send it in parts"):
        queue_content(world.alice, build_data_js(world.shas), tmp_path)


def test_only_members_of_the_team_import_start_and_discard(world: World, tmp_path: Path) -> None:
    content = build_data_js(world.shas)
    with pytest.raises(PermissionRefusedError):
        queue_content(world.personas.bob, content, tmp_path)
    with pytest.raises(NotFoundError):
        queue_content(world.personas.mallory, content, tmp_path)
    row = queue_content(world.alice, content, tmp_path)
    with pytest.raises(ConflictError, match="is queued"):
        start_history(member=world.alice, import_id=row.pk, unknown_commits="keep")
    run_imports()
    for member, error in (
        (world.personas.bob, PermissionRefusedError),
        (world.personas.mallory, NotFoundError),
    ):
        with pytest.raises(error):
            start_history(member=member, import_id=row.pk, unknown_commits="keep")
        with pytest.raises(error):
            discard_history(member=member, import_id=row.pk)
    with pytest.raises(InvalidRequestError, match="expected one of keep, skip"):
        start_history(member=world.alice, import_id=row.pk, unknown_commits="both")
    discard_history(member=world.alice, import_id=row.pk)
    assert not ResultImport.objects.exists()


def test_an_import_of_unknown_commits_only_is_not_started_without_them(
    world: World, tmp_path: Path
) -> None:
    row = queue_content(world.alice, build_data_js(["d" * 40]), tmp_path)
    run_imports()
    with pytest.raises(InvalidRequestError, match="no commit of the file"):
        start_history(member=world.alice, import_id=row.pk, unknown_commits="skip")


def test_a_preview_that_nobody_starts_is_removed(world: World, tmp_path: Path) -> None:
    row = queue_content(world.alice, build_data_js(world.shas), tmp_path)
    run_imports()
    prune_imports()
    assert ResultImport.objects.filter(pk=row.pk).exists()
    long_ago: datetime = utc_now() - import_steps.READY_KEPT - timedelta(hours=1)
    ResultImport.objects.update(last_step_at=long_ago)
    prune_imports()
    assert not ResultImport.objects.exists()
    assert not ImportPart.objects.exists()


def test_a_project_without_a_repository_gets_a_history_in_the_order_of_dates(
    world: World, tmp_path: Path
) -> None:
    Project.objects.create(team=world.alice.team, slug="bare", name="Bare", repository_url="")
    shas = [f"{n:040x}" for n in range(1, 8)]
    newer, older = build_data_js(shas), build_data_js(shas[:4])
    import_history(world.alice, older, tmp_path, project="bare")
    row = import_history(world.alice, newer, tmp_path, project="bare")
    assert (row.preview["matched"], row.accepted) == (4, 3)
    line = Point.objects.order_by("position").values_list("commit__sha", flat=True)
    assert list(line) == shas
