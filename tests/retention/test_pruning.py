"""The retention of a project: raw output first, points last, and never what is pinned."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.refs import get_mirror_path
from orchestrator.comparisons.verdict_cache import load_verdict_cards
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import (
    ConflictError,
    GoneError,
    InvalidRequestError,
    NotFoundError,
    PermissionRefusedError,
)
from orchestrator.measurements.case_latency import CaseLatency, load_case_latency
from orchestrator.measurements.distributions import load_distribution
from orchestrator.measurements.incoming import ResultIn
from orchestrator.measurements.ingest import forget_cached, ingest_results
from orchestrator.measurements.selectors import load_artifact
from orchestrator.reports.saved_reports import save_report
from orchestrator.results.models import (
    Artifact,
    Histogram,
    LoadResult,
    Pin,
    Point,
    PointHistogram,
    Reading,
    Removal,
    Retention,
)
from orchestrator.retention import delete_rows
from orchestrator.retention.pins import load_kept, pin_commit, pin_run, unpin
from orchestrator.retention.pruning import list_due, prune, prune_due
from orchestrator.retention.settings import RetentionSettings, load_retention, save_retention
from orchestrator.runs.models import Run, Trial
from orchestrator.runs.selectors import load_run
from tests.support.factories import (
    Personas,
    add_member,
    finish_run,
    git,
    make_definition,
    make_local_host,
    make_project,
    make_run,
)
from tests.support.trials import doubt, first_trial, leave_load

NOW = utc_now()
DAY = timedelta(days=1)
ALL = RetentionSettings(
    files_days=10, distributions_days=20, trials_days=30, points_days=None, keep_every=None
)


@pytest.fixture(autouse=True)
def _own_folder(data_dir: Path) -> None:
    forget_cached()


@pytest.fixture
def project(personas: Personas, tmp_path: Path) -> Project:
    versions = [{"file.txt": f"{number}\n"} for number in range(8)]
    new_project, _ = make_project(personas.alice, tmp_path / "repository", versions)
    make_definition(personas.alice, new_project)
    make_local_host(personas.alice)
    return new_project


def shas(project: Project) -> list[str]:
    return list(project.commits.order_by("position").values_list("sha", flat=True))


def old_run(member: Member, of: list[str], *, days: int) -> Run:
    """Two rounds of these commits that ended so long ago."""
    run = finish_run(make_run(member, of, rounds=2), [1000.0 + 10 * n for n in range(len(of))])
    Run.objects.filter(pk=run.pk).update(ended_at=NOW - days * DAY)
    run.refresh_from_db()
    return run


def counts(run: Run) -> tuple[int, int, int, int]:
    """Files, distributions, readings and trials of a run."""
    trials = Trial.objects.filter(job__run=run)
    return (
        Artifact.objects.filter(trial__in=trials).count(),
        Histogram.objects.filter(trial__in=trials).count(),
        Reading.objects.filter(pk__in=trials.values("pk")).count(),
        trials.count(),
    )


def latency(member: Member, of: Run, sha: str, **changes: Any) -> CaseLatency:
    benchmark = of.definition.benchmark
    return load_case_latency(
        member,
        benchmark=benchmark,
        case=benchmark.cases.get(),
        commit=benchmark.project.commits.get(sha=sha),
        **changes,
    )


def points() -> list[tuple[Any, ...]]:
    fields = ("series_id", "commit_id", "trials", "mean", "mean_log", "m2_log", "values", "blocks")
    return list(Point.objects.order_by("series_id", "commit_id").values_list(*fields))


def test_raw_output_is_removed_first_and_points_stay(personas: Personas, project: Project) -> None:
    alice = personas.alice
    save_retention(member=alice, project=project, wanted=ALL)
    first = shas(project)[:2]
    runs = [old_run(alice, first, days=days) for days in (5, 15, 25, 35)]
    before = points()

    prune(project, NOW)

    assert [counts(run) for run in runs] == [(4, 4, 4, 4), (0, 4, 4, 4), (0, 0, 4, 4), (0, 0, 0, 0)]
    assert points() == before


def test_files_are_kept_for_90_days_by_default(personas: Personas, project: Project) -> None:
    runs = [old_run(personas.alice, shas(project)[:2], days=days) for days in (89, 91, 401)]

    prune_due(NOW)

    assert [counts(run) for run in runs] == [(4, 4, 4, 4), (0, 4, 4, 4), (0, 0, 4, 4)]
    assert load_retention(project).next_at == NOW + timedelta(hours=1)


def test_pruning_continues_after_an_interruption(
    personas: Personas, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = old_run(personas.alice, shas(project)[:2], days=100)
    monkeypatch.setattr(delete_rows, "FILES", 3)

    assert prune(project, NOW, batches=1) == 1
    assert counts(run)[0] == 1
    assert Removal.objects.get(run=run).ended_at is None
    prune(project, NOW)

    assert counts(run)[0] == 0
    removal = Removal.objects.get(run=run)
    assert (removal.rows, removal.ended_at, removal.after_days) == (4, NOW, 90)
    assert removal.bytes > 0
    assert prune(project, NOW) == 0


@pytest.mark.django_db(transaction=True)
def test_two_workers_never_prune_the_same_project(personas: Personas, project: Project) -> None:
    run = old_run(personas.alice, shas(project)[:2], days=100)
    prune_due(NOW - 50 * DAY)

    def other() -> int:
        try:
            return prune(project, NOW)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            Retention.objects.select_for_update().get(project=project)
            assert pool.submit(other).result() == 0
            assert counts(run)[0] == 4
        assert pool.submit(other).result() > 0
    assert counts(run)[0] == 0


def test_an_error_in_one_project_does_not_stop_others(
    personas: Personas, project: Project, tmp_path: Path
) -> None:
    run = old_run(personas.alice, shas(project)[:2], days=450)
    broken = Project.objects.create(
        team=personas.alice.team, slug="broken", name="Broken", repository_url="/nowhere"
    )
    benchmark = make_definition(personas.alice, broken, slug="other").benchmark
    other = old_run(personas.alice, shas(project)[:2], days=450)
    Run.objects.filter(pk=other.pk).update(definition=benchmark.definitions.get())
    trial = first_trial(other)
    Histogram.objects.filter(trial=trial).delete()
    Histogram.objects.create(trial=trial, kind="ok", encoded=b"damaged", count=1)
    Retention.objects.create(project=broken)

    prune_due(NOW)

    assert counts(run) == (0, 0, 4, 4)
    assert counts(other) == (0, 4, 4, 4)


def test_merged_distributions_keep_the_percentiles(personas: Personas, project: Project) -> None:
    alice = personas.alice
    sha = shas(project)[0]
    run = old_run(alice, shas(project)[:2], days=450)
    again = old_run(alice, shas(project)[:2], days=410)
    trial = Trial.objects.filter(job__run=run, variant__position=0).order_by("position")[0]
    doubt(trial, "suspect", "steal: some")
    before = latency(alice, run, sha)

    prune(project, NOW)
    after = latency(alice, run, sha)

    assert not Histogram.objects.exists()
    assert after.distribution == before.distribution
    assert (after.trials, after.merged_before, after.suspect) == ((), 4, 1)
    assert len(before.trials) == 4
    newer = old_run(alice, shas(project)[:2], days=1)
    both = latency(alice, newer, sha)
    assert (len(both.trials), both.merged_before) == (2, 4)
    assert both.distribution is not None
    assert before.distribution is not None
    assert both.distribution.total_count == before.distribution.total_count + 4000
    with pytest.raises(GoneError, match="merged into one a commit"):
        latency(alice, again, sha, run=again)


def test_invalid_trials_are_not_merged(personas: Personas, project: Project) -> None:
    run = old_run(personas.alice, shas(project)[:1], days=450)
    doubt(first_trial(run), "invalid", "died: it did")

    prune(project, NOW)

    merged = PointHistogram.objects.get()
    assert (merged.trials, merged.excluded, merged.count) == (1, 1, 2000)


def test_loads_are_removed_with_their_distributions(personas: Personas, project: Project) -> None:
    run = old_run(personas.alice, shas(project)[:1], days=450)
    trial = first_trial(run)
    leave_load(trial, 0, latencies_us=[100, 200])

    prune(project, NOW)

    assert not LoadResult.objects.exists()
    with pytest.raises(GoneError):
        load_distribution(Trial.objects.get(pk=trial.pk), load=0)


def test_removed_data_are_reported_and_not_an_error(personas: Personas, project: Project) -> None:
    run = old_run(personas.alice, shas(project)[:1], days=100)
    trial = first_trial(run)
    assert load_artifact(personas.alice, trial.pk, "tool.json") == b"{}"
    with pytest.raises(NotFoundError, match="no file other"):
        load_artifact(personas.alice, trial.pk, "other")

    prune(project, NOW)

    with pytest.raises(GoneError, match=f"raw output was removed after 90 days, on {NOW:%Y-%m-%d}"):
        load_artifact(personas.alice, trial.pk, "tool.json")


def test_pinned_commits_and_runs_lose_nothing(personas: Personas, project: Project) -> None:
    alice = personas.alice
    save_retention(member=alice, project=project, wanted=ALL)
    first, second, third = shas(project)[:3]
    runs = [old_run(alice, [sha], days=100) for sha in (first, second, third)]
    pin_commit(member=alice, project=project, ref=first, reason="the release")
    pin = pin_run(member=alice, run_id=runs[1].pk, reason="the report of May")

    prune(project, NOW)

    assert [counts(run)[0] for run in runs] == [2, 2, 0]
    unpin(member=alice, project=project, pin_id=pin.pk)
    prune(project, NOW)
    assert [counts(run)[3] for run in runs] == [2, 0, 0]


def test_commits_of_a_saved_report_are_retained(personas: Personas, project: Project) -> None:
    alice = personas.alice
    first, second = shas(project)[:2]
    runs = [old_run(alice, [sha], days=100) for sha in (first, second)]
    save_report(
        member=alice,
        slug="may",
        source="version: 1\ntitle: May\nbenchmark: hello\ncommit: " + first + "\ntables:\n"
        "- rows: [connections]\n  columns: [{metric: requests.rate}]\n",
    )

    prune(project, NOW)

    assert [counts(run)[0] for run in runs] == [2, 0]
    kept = load_kept(project)
    assert kept.commits == {project.commits.get(sha=first).pk: ("report may",)}


def test_pins_need_a_reason_and_a_member_and_are_unique(
    personas: Personas, project: Project
) -> None:
    ref = shas(project)[0]
    with pytest.raises(PermissionRefusedError):
        pin_commit(member=personas.bob, project=project, ref=ref, reason="mine")
    with pytest.raises(InvalidRequestError, match="enter the reason"):
        pin_commit(member=personas.alice, project=project, ref=ref, reason=" ")
    pin = pin_commit(member=personas.alice, project=project, ref="main", reason="newest")
    assert pin.commit is not None
    assert pin.commit.sha == shas(project)[-1]
    with pytest.raises(ConflictError, match="already"):
        pin_commit(member=personas.alice, project=project, ref="main", reason="again")
    with pytest.raises(NotFoundError):
        unpin(member=personas.alice, project=project, pin_id=pin.pk + 1)
    with pytest.raises(PermissionRefusedError):
        unpin(member=personas.bob, project=project, pin_id=pin.pk)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"files_days": 0}, "files_days"),
        ({"files_days": 21}, "distributions_days"),
        ({"files_days": None}, "distributions_days"),
        ({"trials_days": 19}, "trials_days"),
        ({"points_days": 40}, "keep_every"),
        ({"keep_every": 4}, "points_days"),
        ({"points_days": 29, "keep_every": 4}, "points_days"),
        ({"points_days": 40, "keep_every": 1}, "keep_every"),
    ],
)
def test_a_retention_in_the_wrong_order_is_refused(
    personas: Personas, project: Project, changes: dict[str, int | None], field: str
) -> None:
    values = {name: getattr(ALL, name) for name in ALL.__slots__} | changes
    with pytest.raises(InvalidRequestError) as refused:
        save_retention(member=personas.alice, project=project, wanted=RetentionSettings(**values))
    assert refused.value.field == field
    with pytest.raises(IntegrityError), transaction.atomic():
        Retention.objects.create(project=project, **values)


def test_only_an_admin_changes_the_retention(personas: Personas, project: Project) -> None:
    ann = add_member(personas.alice, "ann", "member")
    for member in (personas.bob, ann):
        with pytest.raises(PermissionRefusedError):
            save_retention(member=member, project=project, wanted=ALL)


def test_old_points_are_thinned_only_on_request(personas: Personas, project: Project) -> None:
    alice = personas.alice
    old_run(alice, shas(project), days=500)
    Point.objects.update(at=NOW - 500 * DAY)
    save_retention(member=alice, project=project, wanted=ALL)
    prune(project, NOW)
    assert positions(project) == list(range(8))

    thin = RetentionSettings(
        **{**{n: getattr(ALL, n) for n in ALL.__slots__}, "points_days": 40, "keep_every": 3}
    )
    save_retention(member=alice, project=project, wanted=thin)
    pin_commit(member=alice, project=project, ref=shas(project)[4], reason="pinned")
    # Without a mirror nobody knows which commits are tagged: none of them may go.
    mirror = get_mirror_path(project)
    mirror.rename(f"{mirror}.away")
    prune(project, NOW)
    assert positions(project) == list(range(8))
    Path(f"{mirror}.away").rename(mirror)
    git(mirror, "tag", "v1", shas(project)[2])
    prune(project, NOW)

    # Every third, the one that is pinned, the one with a tag, and the newest.
    assert positions(project) == [0, 2, 3, 4, 6, 7]
    left = Removal.objects.get(kind="points")
    assert left.rows == 2 * 4
    assert prune(project, NOW) == 0


def positions(project: Project) -> list[int | None]:
    commits = project.commits.filter(points__isnull=False).distinct().order_by("position")
    return list(commits.values_list("position", flat=True))


def test_the_verdicts_of_a_run_outlive_its_trials(personas: Personas, project: Project) -> None:
    first, second = shas(project)[:2]
    run = finish_run(make_run(personas.alice, [first, second]), [1000, 800])
    Run.objects.filter(pk=run.pk).update(ended_at=NOW - 500 * DAY)
    save_retention(member=personas.alice, project=project, wanted=ALL)

    prune(project, NOW)

    assert counts(run) == (0, 0, 0, 0)
    run = load_run(personas.alice, run.pk)
    assert [card.verdict for card in load_verdict_cards(personas.alice, [run])[run.pk]] == [
        "regressed"
    ]


def test_external_results_are_removed_and_their_points_stay(
    personas: Personas, project: Project
) -> None:
    alice = personas.alice
    sent = {"benchmark": "hello", "host": "ci-7", "metrics": {"requests.rate": 5.0}, "id": "1"}
    results = [
        ResultIn.model_validate({**sent, "commit": sha, "at": (NOW - days * DAY).isoformat()})
        for sha, days in zip(shas(project)[:3], (100, 100, 5), strict=True)
    ]
    ingest_results(member=alice, results=results)
    save_retention(member=alice, project=project, wanted=ALL)
    pin_commit(member=alice, project=project, ref=shas(project)[1], reason="release")
    before = points()
    due = {each.kind: each.rows for each in list_due(project, NOW)}

    prune(project, NOW)

    assert due["readings"] == 1  # type: ignore[index]
    left = Reading.objects.order_by("commit__position").values_list("commit__sha", flat=True)
    assert list(left) == shas(project)[1:3]
    assert points() == before
    assert Removal.objects.get(kind="readings").rows == 1


def test_a_dry_run_reports_and_removes_nothing(personas: Personas, project: Project) -> None:
    run = old_run(personas.alice, shas(project)[:2], days=450)
    out = StringIO()

    call_command("prune", "--dry-run", stdout=out)

    assert counts(run) == (4, 4, 4, 4)
    output = out.getvalue()
    assert "red/server: raw output of 1 runs, after 90 days: 4 rows" in output
    assert "distributions of single trials of 1 runs, after 400 days: 4 rows" in output
    due = {each.kind: each for each in list_due(project, NOW)}
    call_command("prune", "--project", "red/server", stdout=out)
    for removal in Removal.objects.filter(rows__gt=0):
        assert due[removal.kind].rows == removal.rows  # type: ignore[index]
        assert due[removal.kind].bytes == removal.bytes  # type: ignore[index]
    assert counts(run) == (0, 0, 4, 4)
    call_command("prune", stdout=out)
    assert "red/server: nothing is due" in out.getvalue()


def test_the_database_refuses_a_pin_without_a_target(project: Project) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Pin.objects.create(project=project, reason="nothing")
