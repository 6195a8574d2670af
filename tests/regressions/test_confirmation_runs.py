"""Suspected changes are measured again before an alert, and then bisected to a commit."""

from datetime import timedelta
from pathlib import Path

import pytest
from scipy.stats import t

from orchestrator.accounts.models import AuditEntry
from orchestrator.benchmarks.models import Commit
from orchestrator.benchmarks.services import set_change_rules
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import ConflictError, InvalidRequestError, PermissionRefusedError
from orchestrator.regressions import bisections, confirmations
from orchestrator.regressions.bisection_answers import count_step_blocks, load_effect
from orchestrator.regressions.change_points import dismiss
from orchestrator.regressions.confirmation_readings import read_confirmation_run
from orchestrator.regressions.confirmation_verdicts import iterate_outcomes
from orchestrator.results.models import Bisection, ChangePoint, Point
from orchestrator.retention.deletions import delete_benchmark, restore_benchmark
from orchestrator.runs.models import Build, Job, Run, Trial
from orchestrator.stats.bisection import read_answer
from tests.support.commit_lines import Line, make_line
from tests.support.factories import DEFINITION, Personas

pytestmark = pytest.mark.django_db


@pytest.fixture
def line(personas: Personas, tmp_path: Path) -> Line:
    return make_line(personas.alice, tmp_path / "origin")


def suspected(line: Line, **more: object) -> ChangePoint:
    """Every fourth of 41 commits is measured; from the 28th on it is 8 % slower."""
    line.step(until=41, at=25, change=-0.08, every=4, **more)
    return line.detect()[0]


def truth(line: Line, culprit: int, change: float = -0.08) -> dict[str, float]:
    return {
        commit.sha: 1000 * (1 + change if place >= culprit else 1)
        for place, commit in enumerate(line.commits)
    }


def follow(line: Line, known: dict[str, float], *, turns: int = 40) -> None:
    """Ticks and answers until nothing is asked any more, twice in a row."""
    idle = 0
    for _ in range(turns):
        confirmations.advance_confirmations(utc_now())
        bisections.advance_bisections(utc_now())
        idle = 0 if line.answer_confirmation_runs(known) else idle + 1
        if idle == 2:
            return
        line.detect()
    raise AssertionError("it never ends")


def confirmed(line: Line, change: ChangePoint, known: dict[str, float]) -> ChangePoint:
    confirmations.advance_confirmations(utc_now())
    line.answer_confirmation_runs(known)
    confirmations.advance_confirmations(utc_now())
    change.refresh_from_db()
    return change


def test_a_confirmation_run_of_both_sides_starts_automatically(line: Line) -> None:
    change = suspected(line)
    confirmations.advance_confirmations(utc_now())
    confirmations.advance_confirmations(utc_now())
    run = Run.objects.get()
    assert run.trigger == "confirm"
    assert run.requested_by is None
    commits = [variant.commit for variant in run.variants.all()]
    assert commits == [change.before, change.commit] == [line.commits[24], line.commits[28]]
    assert [job.host for job in run.jobs.all()] == [line.host]
    change.refresh_from_db()
    assert (change.state, change.run, change.confirmation_runs) == ("confirming", run, 1)
    assert AuditEntry.objects.get(action="run.created").actor is None


def test_only_affected_cases_are_measured(personas: Personas, tmp_path: Path) -> None:
    line = make_line(personas.alice, tmp_path / "origin", cases=3)
    for case, change in enumerate((-0.08, 0.0, -0.08)):
        line.step(until=41, at=25, change=change, every=4, case=case, seed=case)
    line.detect()
    confirmations.advance_confirmations(utc_now())
    run = Run.objects.get()
    measured = set(Trial.objects.filter(job__run=run).values_list("case", flat=True))
    assert measured == {line.cases[0].pk, line.cases[2].pk}


@pytest.mark.parametrize(
    ("change", "state", "words"),
    [(-0.08, "confirmed", "confirmed: −8.0 %"), (0.0, "refuted", "smaller than −8."),
     (-0.02, "small", "confirmed, but not beyond the margin: −2.0 %"),
     (0.08, "refuted", "the other direction")],
)  # fmt: skip
def test_the_confirmation_run_decides(line: Line, change: float, state: str, words: str) -> None:
    change_point = confirmed(line, suspected(line), truth(line, 25, change))
    assert change_point.state == state
    assert words in change_point.message
    assert change_point.confirmed_change == pytest.approx(change, abs=0.01)
    assert change_point.run is not None
    assert change_point.confirmed_blocks is not None
    assert change_point.confirmed_blocks >= 5
    assert change_point.confirmed_error is not None


def test_a_change_that_is_real_but_small_is_not_searched_for_a_culprit(line: Line) -> None:
    change_point = confirmed(line, suspected(line), truth(line, 25, -0.02))
    bisections.advance_bisections(utc_now())
    assert (change_point.state, change_point.final) == ("small", False)
    assert not Bisection.objects.exists()


def test_a_bisection_uses_the_error_of_its_confirmation_run(line: Line) -> None:
    change_point = confirmed(line, suspected(line), truth(line, 25, -0.08))
    assert change_point.run is not None
    comparison = read_confirmation_run(change_point.run, change_point.series)
    assert comparison is not None
    answer = read_answer(0, comparison)
    assert answer is not None
    assert load_effect(change_point) == pytest.approx((answer.difference, answer.error))
    ChangePoint.objects.update(confirmed_error=0.02, confirmed_blocks=5)
    few = count_step_blocks(ChangePoint.objects.get())
    ChangePoint.objects.update(confirmed_blocks=7)
    assert count_step_blocks(ChangePoint.objects.get()) > few


def test_a_commit_with_half_of_the_change_is_not_the_culprit(line: Line) -> None:
    """Commits 26 and 28 have half of the change each."""
    change = suspected(line)
    halves = truth(line, 28)
    for place in (26, 27):
        halves[line.commits[place].sha] = 960.0
    follow(line, halves)
    change.refresh_from_db()
    search = Bisection.objects.get()
    assert (change.state, change.culprit, search.state) == ("confirmed", None, "part")
    named = next(c for c in line.commits[25:29] if search.message.startswith(c.short_sha))
    assert named in (line.commits[26], line.commits[27])
    assert "of the change: a part comes with it or before it, and the rest after" in search.message
    assert len(search.answers) <= 3


def test_each_earlier_confirmation_run_makes_the_next_answer_harder(line: Line) -> None:
    """A change at which several runs failed is not confirmed by the luck of one more."""
    change_point = confirmed(line, suspected(line), truth(line, 25, 0.0))
    for change in (-0.002, 0.001):
        confirmations.confirm_now(member=line.member, change_id=change_point.pk)
        line.answer_confirmation_runs(truth(line, 25, change))
        confirmations.advance_confirmations(utc_now())
    change_point.refresh_from_db()
    assert (change_point.state, change_point.confirmation_runs) == ("refuted", 3)
    outcomes = list(iterate_outcomes(change_point))
    assert [outcome.spending.runs for outcome in outcomes] == [1, 2, 3]
    assert outcomes[-1].run == change_point.run
    assert outcomes[0].spending.alpha > 50 * outcomes[2].spending.alpha / 3


def test_a_confirmation_run_separates_the_order_effect(line: Line) -> None:
    change_point = confirmed(line, suspected(line), truth(line, 25, -0.08))
    assert change_point.run is not None
    comparison = read_confirmation_run(change_point.run, change_point.series)
    assert comparison is not None
    assert comparison.order_effect is not None
    assert comparison.degrees == comparison.blocks - 2
    answer = read_answer(3, comparison)
    assert answer is not None
    p_value = 2 * t.sf(abs(answer.difference) / answer.error, comparison.degrees)
    assert p_value == pytest.approx(comparison.p_value)


def test_a_refuted_change_is_not_measured_again(line: Line) -> None:
    change_point = confirmed(line, suspected(line), truth(line, 100))
    line.measure({44: 920.0, 48: 920.0}, seed=9)
    line.detect()
    confirmations.advance_confirmations(utc_now())
    change_point.refresh_from_db()
    assert (change_point.state, Run.objects.count()) == ("refuted", 1)


def test_one_confirmation_run_answers_all_metrics_of_a_case(
    line: Line,
) -> None:
    change_point = confirmed(line, suspected(line), truth(line, 26))
    follow(line, truth(line, 26))
    runs = Run.objects.count()
    line.measure(
        {place: 0.004 / (0.92 if place >= 26 else 1) for place in range(0, 41, 4)},
        metric="latency.p50",
        configuration=Point.objects.exclude(configuration=0).values_list(
            "configuration", flat=True
        )[0],
    )
    line.detect()
    confirmations.advance_confirmations(utc_now())
    bisections.advance_bisections(utc_now())
    other = ChangePoint.objects.get(series__metric__key="latency.p50", state="confirmed")
    change_point.refresh_from_db()
    assert (other.run, other.culprit) == (change_point.run, line.commits[26])
    assert Run.objects.count() == runs


def test_a_bisection_names_the_commit(line: Line) -> None:
    change = suspected(line)
    follow(line, truth(line, 26))
    change.refresh_from_db()
    assert (change.state, change.culprit) == ("confirmed", line.commits[26])
    search = Bisection.objects.get()
    assert (search.state, search.path) == ("found", [c.sha for c in line.commits[25:29]])
    assert Run.objects.filter(trigger="bisect").count() <= 4
    # Each step is against the last good one.
    for run in Run.objects.filter(trigger="bisect"):
        assert run.variants.get(position=0).commit == line.commits[24]


def merge_branch(line: Line, place: int, *, left: int) -> list[Commit]:
    """Two commits, quick and slow, of a branch that left at `left` and was merged at `place`."""
    branch = []
    for name, parent in (("quick", line.commits[left].sha), ("slow", "1" * 40)):
        branch.append(
            Commit.objects.create(
                project=line.project,
                sha=("1" if name == "quick" else "2") * 40,
                parents=[parent],
                subject=name,
                author="Ada",
                committed_at=line.commits[left].committed_at,
                position=place - 1,
            )
        )
    merge = line.commits[place]
    merge.parents = [line.commits[place - 1].sha, branch[-1].sha]
    merge.save()
    return branch


def test_a_merge_is_bisected(line: Line) -> None:
    quick, slow = merge_branch(line, 26, left=20)
    change = suspected(line)
    follow(line, {**truth(line, 26), quick.sha: 1000.0, slow.sha: 920.0})
    change.refresh_from_db()
    assert change.culprit == slow
    inner = Bisection.objects.latest("pk")
    assert (inner.good, inner.state) == (line.commits[20], "found")
    assert inner.path == [quick.sha, slow.sha, line.commits[26].sha]


def test_a_merge_of_fast_commits_is_itself_the_culprit(line: Line) -> None:
    quick, slow = merge_branch(line, 26, left=20)
    change = suspected(line)
    follow(line, {**truth(line, 26), quick.sha: 1000.0, slow.sha: 1000.0})
    change.refresh_from_db()
    assert change.culprit == line.commits[26]


def test_neighbouring_commits_need_no_bisection(line: Line) -> None:
    line.step(until=40, at=25, change=-0.08)
    (change,) = line.detect()
    follow(line, truth(line, 25))
    change.refresh_from_db()
    assert change.culprit == line.commits[25]
    assert not Bisection.objects.exists()
    assert Run.objects.count() == 1


def test_a_commit_that_cannot_be_built_is_skipped(line: Line) -> None:
    change = suspected(line)
    known = truth(line, 26)
    for _ in range(20):
        confirmations.advance_confirmations(utc_now())
        bisections.advance_bisections(utc_now())
        for run in Run.objects.filter(state="queued", trigger="bisect"):
            if run.variants.get(position=1).commit == line.commits[26]:
                cannot_be_built(run)
        if (
            not line.answer_confirmation_runs(known)
            and not Run.objects.filter(state="queued").exists()
        ):
            bisections.advance_bisections(utc_now())
            if not Run.objects.filter(state="queued").exists():
                break
    search = Bisection.objects.get()
    assert (search.state, search.unbuildable) == ("between", [1])
    assert "cannot be built" in search.message
    change.refresh_from_db()
    assert change.culprit is None


def cannot_be_built(run: Run) -> None:
    """As the engine leaves a run whose contender's build failed."""
    commit = run.variants.get(position=1).commit
    job = run.jobs.get()
    Build.objects.create(
        job=job, host=job.host, commit=commit, state="failed", started_at=utc_now()
    )
    Trial.objects.filter(job=job).update(state="failed", reasons=["build"])
    Job.objects.filter(pk=job.pk).update(state="failed")
    Run.objects.filter(pk=run.pk).update(state="failed", message="it does not build")


def test_one_bisection_names_the_culprit_of_all_confirmed_changes(
    personas: Personas, tmp_path: Path
) -> None:
    line = make_line(personas.alice, tmp_path / "origin", cases=2)
    for case in (0, 1):
        line.step(until=41, at=25, change=-0.08, every=4, case=case, seed=case)
    line.detect()
    follow(line, truth(line, 26))
    changes = ChangePoint.objects.filter(state="confirmed", series__metric__key="requests.rate")
    assert [each.culprit for each in changes] == [line.commits[26]] * 2
    assert Bisection.objects.count() == 1


def test_settings_of_the_project_are_respected(line: Line) -> None:
    rules = {"member": line.member, "project": line.project, "minutes_a_day": 60}
    set_change_rules(confirm=False, bisect=True, **rules)
    change = suspected(line)
    confirmations.advance_confirmations(utc_now())
    change.refresh_from_db()
    assert (change.state, change.final) == ("open", True)
    assert "settings" in change.message
    assert not Run.objects.exists()

    # Somebody may ask for it all the same.
    confirmations.confirm_now(member=line.member, change_id=change.pk)
    set_change_rules(confirm=True, bisect=False, **rules)
    follow(line, truth(line, 26))
    change.refresh_from_db()
    assert (change.state, change.culprit) == ("confirmed", None)
    assert not Bisection.objects.exists()


def test_the_machine_time_budget_is_kept(line: Line) -> None:
    set_change_rules(
        member=line.member, project=line.project, confirm=True, bisect=True, minutes_a_day=0
    )
    change = suspected(line)
    confirmations.advance_confirmations(utc_now())
    change.refresh_from_db()
    assert "machine time" in change.message
    assert not change.final
    assert not Run.objects.exists()


def test_a_missing_free_host_is_reported(line: Line) -> None:
    change = suspected(line)
    confirmations.advance_confirmations(utc_now())
    Run.objects.update(created_at=utc_now() - timedelta(hours=7))
    confirmations.advance_confirmations(utc_now())
    change.refresh_from_db()
    assert (change.state, change.final) == ("open", True)
    assert "was not free within 6 hours" in change.message
    assert Run.objects.get().state == "cancelled"


def test_external_results_have_no_confirmation_run(personas: Personas, tmp_path: Path) -> None:
    line = make_line(personas.alice, tmp_path / "origin", external=True)
    change = suspected(line)
    confirmations.advance_confirmations(utc_now())
    change.refresh_from_db()
    assert (change.final, change.message) == (True, "not confirmed: measured on an external host")
    with pytest.raises(InvalidRequestError, match="external host"):
        confirmations.confirm_now(member=line.member, change_id=change.pk)


def test_a_cancelled_confirmation_run_is_not_started_again(line: Line) -> None:
    change = suspected(line)
    confirmations.advance_confirmations(utc_now())
    Run.objects.update(state="cancelled")
    confirmations.advance_confirmations(utc_now())
    confirmations.advance_confirmations(utc_now())
    change.refresh_from_db()
    assert (change.state, change.final) == ("open", True)
    assert Run.objects.count() == 1


def test_a_change_of_a_restored_benchmark_is_confirmed(line: Line) -> None:
    change = suspected(line)
    confirmations.advance_confirmations(utc_now())
    first = Run.objects.get()
    gone = delete_benchmark(member=line.member, project=line.project.slug, slug="hello")
    first.refresh_from_db()
    assert first.state == "cancelled"
    confirmations.advance_confirmations(utc_now())
    assert Run.objects.count() == 1, "nothing is measured while it is deleted"

    restore_benchmark(member=line.member, benchmark_id=gone.pk)

    change = confirmed(line, change, truth(line, 25))
    assert change.state == "confirmed"
    assert change.run != first


def test_an_empty_confirmation_run_is_retried_once(line: Line) -> None:
    change = suspected(line)
    for _ in range(3):
        confirmations.advance_confirmations(utc_now())
        Run.objects.filter(state="queued").update(state="failed", message="the disk is full")
        confirmations.advance_confirmations(utc_now())
    change.refresh_from_db()
    assert (change.final, Run.objects.count()) == (True, 2)
    assert "the disk is full" in change.message


def test_a_dismissed_change_stops_its_bisection(line: Line) -> None:
    change = confirmed(line, suspected(line), truth(line, 26))
    bisections.advance_bisections(utc_now())
    dismiss(member=line.member, change_id=change.pk, reason="meant so")
    line.answer_confirmation_runs(truth(line, 26))
    bisections.advance_bisections(utc_now())
    assert Bisection.objects.get().state == "stopped"
    assert not Run.objects.filter(state="queued").exists()


def test_a_second_request_and_viewers_are_refused(line: Line, personas: Personas) -> None:
    change = suspected(line)
    with pytest.raises(PermissionRefusedError):
        confirmations.confirm_now(member=personas.bob, change_id=change.pk)
    confirmations.confirm_now(member=line.member, change_id=change.pk)
    with pytest.raises(ConflictError):
        confirmations.confirm_now(member=line.member, change_id=change.pk)


def test_confirmation_runs_and_bisections_build_both_commits_anew(
    personas: Personas, tmp_path: Path
) -> None:
    """The build in which the change was detected may be its only cause."""
    source = DEFINITION.replace("subject:\n", "subject:\n  build: [[make]]\n")
    line = make_line(personas.alice, tmp_path / "origin", source=source)
    change_point = confirmed(line, suspected(line), truth(line, 26))
    assert change_point.run is not None
    assert change_point.run.builds == 5
    comparison = read_confirmation_run(change_point.run, change_point.series)
    assert comparison is not None
    assert min(comparison.builds) == 5
    follow(line, truth(line, 26))
    steps = Run.objects.filter(trigger="bisect")
    assert {(run.builds, run.rounds >= 10) for run in steps} == {(5, True)}
    search = Bisection.objects.get()
    assert search.state == "found"
    assert all("degrees" in answer for answer in search.answers)


def test_without_build_steps_nothing_is_built_anew(line: Line) -> None:
    change_point = confirmed(line, suspected(line), truth(line, 26))
    assert change_point.run is not None
    assert change_point.run.builds == 1
