"""Histories of real rows: along the default branch and others, over merges, epochs and
configurations."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import transaction

from orchestrator.benchmarks.models import Benchmark, Case, Commit, Project
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import InvalidRequestError, NotFoundError
from orchestrator.fleet.external import provide_external_host
from orchestrator.fleet.models import Host
from orchestrator.histories.histories import Part, load_case_history, load_history_choices
from orchestrator.histories.reports import History
from orchestrator.measurements.recording import MeasuredRow
from tests.support.factories import Personas, record

NOW = utc_now()


class Lane:
    """A benchmark of a project whose commits are made by hand, measured on a host elsewhere."""

    def __init__(self, personas: Personas) -> None:
        self.alice = personas.alice
        self.project = Project.objects.create(team=self.alice.team, slug="p", name="P")
        self.benchmark = Benchmark.objects.create(project=self.project, slug="b", title="B")
        self.case = Case.objects.create(benchmark=self.benchmark, key="c", parameters={}, label="c")
        self.host: Host = provide_external_host(member=self.alice, name="elsewhere")

    def commit(self, name: str, *parents: Commit, position: int | None = None) -> Commit:
        return Commit.objects.create(
            project=self.project,
            sha=f"{int.from_bytes(name.encode()):040x}",
            parents=[parent.sha for parent in parents],
            subject=name,
            author="Ada",
            committed_at=NOW,
            position=position,
            mainline=position is not None,
        )

    def measure(self, commit: Commit, value: float, n: int = 5, **more: Any) -> None:
        given = {"validity": "valid", "at": NOW, **more}
        trials = [
            MeasuredRow(
                id=uuid4(),
                benchmark=self.benchmark.pk,
                case=self.case.pk,
                host=self.host.pk,
                commit=commit.pk,
                readings={"requests.rate": value * (1 + k / 1000), "latency.p99": 0.0},
                **given,
            )
            for k in range(n)
        ]
        with transaction.atomic():
            record(trials)

    def history(self, branch: str = "", **part: Any) -> History:
        return load_case_history(
            self.alice,
            benchmark=self.benchmark,
            metric_key=part.pop("metric", "requests.rate"),
            case=self.case,
            host=self.host,
            branch=branch,
            part=Part(**part),
        )


@pytest.fixture
def lane(personas: Personas) -> Lane:
    return Lane(personas)


@pytest.fixture
def forked(lane: Lane) -> Lane:
    """main: a b c d; b is a merge. work leaves at b: x y."""
    commits: list[Commit] = []
    for place, name in enumerate("abcd"):
        commits.append(lane.commit(name, *commits[-1:], position=place))
    x = lane.commit("x", commits[1])
    y = lane.commit("y", x)
    lane.project.branches = [["main", commits[-1].sha], ["work", y.sha], ["old", commits[2].sha]]
    lane.project.save()
    for place, commit in enumerate([*commits, x, y]):
        lane.measure(commit, 1000 + place)
    return lane


def _names(history: History) -> list[str]:
    return [point.commit.subject for point in history.points]


@pytest.mark.parametrize(
    ("branch", "names"),
    [("", "abcd"), ("main", "abcd"), ("work", "abxy"), ("old", "abc")],
)
def test_a_branch_follows_the_main_line_to_its_fork_point(
    forked: Lane, branch: str, names: str
) -> None:
    history = forked.history(branch)
    assert _names(history) == list(names)
    assert (history.first, history.total) == (0, len(names))
    assert [p.before and p.before.subject for p in history.points] == [None, *names[:-1]]


def test_an_unknown_branch_is_not_found(forked: Lane) -> None:
    with pytest.raises(NotFoundError, match="no branch nowhere"):
        forked.history("nowhere")


def test_a_branch_without_known_ancestors_has_only_its_own_commits(forked: Lane) -> None:
    lone = forked.commit("z")
    forked.project.branches = [["lone", lone.sha]]
    forked.project.save()
    forked.measure(lone, 5)
    assert _names(forked.history("lone")) == ["z"]


def test_pages_are_the_newest_points_and_those_before_a_commit(forked: Lane) -> None:
    newest = forked.history(limit=2)
    assert (_names(newest), newest.first, newest.total) == (["c", "d"], 2, 4)
    assert newest.points[0].before is not None
    older = forked.history(limit=3, before=newest.points[0].commit.sha[:40])
    assert (_names(older), older.first) == (["a", "b"], 0)
    with pytest.raises(NotFoundError, match="no commit"):
        forked.history(before="f" * 8)


def test_points_move_with_their_commits(forked: Lane) -> None:
    Commit.objects.filter(subject="d").update(position=None)
    Commit.objects.filter(subject="c").update(position=9)
    assert _names(forked.history()) == ["a", "b", "c"]


def test_the_newest_epoch_counts_and_others_are_reported(lane: Lane) -> None:
    a, b, c = (lane.commit(name, position=place) for place, name in enumerate("abc"))
    lane.measure(a, 100, epoch=0, configuration=1)
    lane.measure(b, 100, epoch=0, configuration=1)
    lane.measure(b, 110, epoch=1, configuration=1)
    lane.measure(c, 55, epoch=1, configuration=2)
    history = lane.history()

    assert [(p.epoch, p.configuration, p.others) for p in history.points] == [
        (0, 1, 0),
        (1, 1, 1),
        (1, 2, 0),
    ]
    host, definition = history.breaks
    assert (host.before, host.host, host.definition) == (1, True, False)
    assert host.bridge == pytest.approx(1.1)
    assert (definition.before, definition.host, definition.definition) == (2, False, True)
    assert definition.bridge is None


def test_commits_without_valid_trials_are_included_on_request(lane: Lane) -> None:
    a, b, c = (lane.commit(name, position=place) for place, name in enumerate("abc"))
    lane.measure(a, 100)
    lane.measure(b, 500, validity="invalid")
    lane.measure(c, 100, n=2)
    lane.measure(c, 101, n=2, validity="suspect", at=NOW + timedelta(hours=1))

    assert (_names(lane.history()), lane.history().excluded) == (["a", "c"], 5)
    _, without, last = lane.history(every=True).points
    assert (without.value, without.interval, without.excluded) == (None, None, 5)
    assert (last.before, last.trials, last.suspect) == (a, 4, 2)
    assert last.at == NOW.replace(microsecond=0) + timedelta(hours=1)
    # There is no reason, because there are no rows of trials.
    assert last.validity_issues == ()


def test_one_trial_has_no_interval_and_zeros_have_no_geometric_mean(lane: Lane) -> None:
    lane.measure(lane.commit("a", position=0), 100, n=1)
    (point,) = lane.history().points
    assert (point.value, point.interval, point.half_width) == (pytest.approx(100), None, "")
    (zero,) = lane.history(metric="latency.p99").points
    assert (zero.value, zero.interval) == (0.0, None)


def test_unmeasured_series_are_empty_and_unknown_ones_refused(lane: Lane) -> None:
    empty = lane.history(metric="latency.p50")
    assert (empty.points, empty.series, empty.total, empty.excluded) == ((), None, 0, 0)
    with pytest.raises(InvalidRequestError, match="no metric nothing"):
        lane.history(metric="nothing")


def test_choices_are_measured_values(lane: Lane, personas: Personas) -> None:
    lane.measure(lane.commit("a", position=0), 100)
    Case.objects.create(benchmark=lane.benchmark, key="d", parameters={}, label="never")
    choices = load_history_choices(lane.alice, lane.benchmark)
    assert (choices.cases, choices.hosts) == ((lane.case,), (lane.host,))
    assert [metric.key for metric in choices.metrics] == ["requests.rate", "latency.p99"]
    assert load_history_choices(personas.mallory, lane.benchmark).metrics == ()
