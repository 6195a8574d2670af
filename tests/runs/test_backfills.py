"""Backfills of a real repository of 32 commits with tags and a merge."""

from dataclasses import dataclass
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as some

from orchestrator.accounts.models import AuditEntry
from orchestrator.core.errors import (
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    PermissionRefusedError,
)
from orchestrator.runs.backfills import (
    BackfillRequest,
    cancel_backfill,
    load_backfill,
    load_backfill_runs,
    load_skipped,
    plan_backfill,
    start_backfill,
)
from orchestrator.runs.earlier_commits import CommitSelection, select_commits, spread_order
from orchestrator.runs.models import Backfill, Run
from orchestrator.runs.queue import AGEING_S, WaitingJob
from tests.support.factories import commit_files, finish_run, git, make_definition
from tests.support.fetches import fetch_now
from tests.support.world import World


@dataclass(kw_only=True)
class LongWorld(World):
    """The main line has 32 commits; the newest merges a branch of two commits, of which
    `side` is the first. v1.0, v1.1 and v2.0 are tags, v1.1 is an annotated one; `readme` is a tag
    of a file."""

    line: list[str]
    side: str

    def request(self, source="last", **fields) -> BackfillRequest:
        parts = ("branch", "count", "every", "tags", "since", "until")
        selection = {name: fields.pop(name) for name in parts if name in fields}
        return BackfillRequest(
            benchmark="hello",
            hosts=("here",),
            selection=CommitSelection(source=source, **selection),
            **fields,
        )

    def select(self, source, **fields) -> list[str]:
        selection = CommitSelection(source=source, **fields)
        return [commit.sha for commit in select_commits(self.project, selection)]


@pytest.fixture
def world(personas, data_dir, tmp_path) -> LongWorld:
    world = LongWorld.make(personas, tmp_path, line=[], side="")
    folder = world.repository
    world.line = list(world.shas)
    for number in range(4, 32):
        world.line.append(commit_files(folder, {"file.txt": f"{number}\n"}, number))
    git(folder, "checkout", "--quiet", "-b", "topic", world.line[10])
    world.side = commit_files(folder, {"side.txt": "1\n"}, 40)
    commit_files(folder, {"side.txt": "2\n"}, 41)
    git(folder, "checkout", "--quiet", "main")
    git(folder, "merge", "--quiet", "--no-ff", "-m", "Merge topic", "topic", at=3000)
    world.line.append(git(folder, "rev-parse", "HEAD"))
    git(folder, "tag", "v1.0", world.line[4], at=100)
    git(folder, "tag", "-a", "-m", "one", "v1.1", world.line[9], at=4000)
    git(folder, "tag", "v2.0", world.line[20], at=100)
    git(folder, "tag", "readme", f"{world.line[4]}:file.txt")
    fetch_now(world.project)
    return world


def test_the_last_commits_follow_first_parents(world):
    assert len(world.line) == 32
    assert world.select("last", count=500) == world.line[::-1]
    assert world.select("last", count=6, every=3) == [world.line[-1], world.line[-4]]
    assert world.select("last", count=2, branch="topic")[1] == world.side


def test_tags_are_selected_by_a_pattern_once_each(world):
    git(world.repository, "tag", "v1.1-again", world.line[9], at=100)
    fetch_now(world.project)
    everything = world.select("tags")
    assert set(everything) == {world.line[4], world.line[9], world.line[20]}
    assert len(everything) == 3
    assert world.select("tags", tags="v1.*") == [world.line[9], world.line[4]]


def test_a_range_includes_both_ends(world):
    ends = {"since": world.line[3], "until": world.line[7]}
    assert world.select("range", **ends) == world.line[3:8][::-1]
    assert world.select("range", since="v2.0")[0] == world.line[-1]


@pytest.mark.parametrize(
    ("source", "fields", "field", "part"),
    [
        ("last", {"count": 0}, "count", "from 1 to"),
        ("last", {"every": 0}, "every", "from 1 to"),
        ("last", {"branch": "nope"}, "branch", "nope"),
        ("tags", {"tags": "w*"}, "tags", "no commit matches"),
        ("range", {}, "since", "name the first commit"),
        ("range", {"since": "topic"}, "since", "line of first parents"),
    ],
)
def test_an_impossible_selection_is_refused_with_its_field(world, source, fields, field, part):
    with pytest.raises(InvalidRequestError, match=part) as refused:
        world.select(source, **fields)
    assert refused.value.field == field


def test_too_many_commits_are_refused_with_the_step_that_fits(world, monkeypatch):
    monkeypatch.setattr("orchestrator.runs.earlier_commits.MOST_COMMITS", 10)
    with pytest.raises(InvalidRequestError, match="take 1 in 4") as refused:
        world.select("last", count=40)
    assert refused.value.field == "every"
    assert len(world.select("last", count=40, every=4)) == 8


@given(some.integers(0, 200))
def test_the_order_has_both_ends_first_and_each_place_once(count):
    order = spread_order(count)
    assert sorted(order) == list(range(count))
    assert order[:2] == [0, count - 1][: min(2, count)]


def test_early_measurements_are_spread_over_the_history():
    assert spread_order(9) == [0, 8, 4, 2, 6, 1, 3, 5, 7]


def test_a_plan_states_the_cost_and_starts_nothing(world):
    plan = plan_backfill(member=world.alice, request=world.request(count=4))
    single = plan.runs[0]
    assert len(plan.runs) == 4
    assert [commit.sha for commit in plan.commits[:2]] == [world.line[-1], world.line[-4]]
    assert plan.trial_count == 4 * single.trial_count
    assert plan.machine_s == pytest.approx(4 * single.machine_s)
    alone = plan_backfill(member=world.alice, request=world.request(count=1))
    added_s = (plan.finish - alone.finish).total_seconds()
    assert added_s == pytest.approx(3 * single.job_s, abs=5)
    assert not Run.objects.exists()


def test_each_commit_has_a_run_of_the_lowest_priority(world):
    backfill = start_backfill(member=world.alice, request=world.request(count=5, rounds=2))
    runs = load_backfill_runs(backfill)
    shas = [[variant.commit.sha for variant in run.variants.all()] for run in runs]
    newest = world.line[:-6:-1]
    assert shas == [[newest[place]] for place in (0, 4, 2, 1, 3)]
    assert {(run.trigger, run.get_priority_display(), run.rounds) for run in runs} == {
        ("backfill", "Background", 2)
    }
    assert AuditEntry.objects.filter(action="backfill.started").count() == 1


def test_waiting_does_not_raise_the_runs_of_a_backfill():
    facts = {"team": 1, "benchmark": 1, "waited_s": 10 * AGEING_S, "expected_s": 1.0, "asks": ()}
    background = WaitingJob(job=uuid4(), priority=-2, **facts)
    low = WaitingJob(job=uuid4(), priority=-1, **{**facts, "waited_s": 0.0})
    assert background.level < low.level


def test_a_repeated_start_adds_nothing(world):
    start_backfill(member=world.alice, request=world.request(count=3))
    with pytest.raises(ConflictError, match="already in another backfill"):
        start_backfill(member=world.alice, request=world.request(count=3))
    assert (Backfill.objects.count(), Run.objects.count()) == (1, 3)
    wider = start_backfill(member=world.alice, request=world.request(count=5))
    assert len(load_backfill_runs(wider)) == 2
    assert [each.reason for each in load_skipped(wider)] == ["already in another backfill"] * 3


def test_measured_commits_are_left_out_until_the_definition_changes(world):
    run = start_backfill(member=world.alice, request=world.request(count=1)).runs.get()
    finish_run(run, [1000])
    request = world.request(count=2)
    plan = plan_backfill(member=world.alice, request=request)
    assert [commit.sha for commit in plan.commits] == [world.line[-2]]
    assert [each.reason for each in plan.skipped] == ["already measured"]
    again = plan_backfill(member=world.alice, request=world.request(count=2, again=True))
    assert len(again.runs) == 2
    source = world.benchmark.definitions.get().source
    make_definition(world.alice, world.project, source=source.replace("rounds: 5", "rounds: 6"))
    assert len(plan_backfill(member=world.alice, request=request).runs) == 2


def test_a_commit_that_failed_is_measured_again_only_on_request(world):
    run = start_backfill(member=world.alice, request=world.request(count=1)).runs.get()
    Run.objects.filter(pk=run.pk).update(state="failed")
    with pytest.raises(ConflictError, match="failed in an earlier backfill"):
        start_backfill(member=world.alice, request=world.request(count=1))
    again = start_backfill(member=world.alice, request=world.request(count=1, again=True))
    assert again.runs.count() == 1


def test_a_backfill_is_cancelled_as_a_whole_and_can_be_repeated(world):
    backfill = start_backfill(member=world.alice, request=world.request(count=3))
    finish_run(load_backfill_runs(backfill)[0], [1000])
    assert cancel_backfill(member=world.alice, backfill_id=backfill.pk) == 2
    assert sorted(run.state for run in load_backfill_runs(backfill)) == [
        "cancelled", "cancelled", "finished",
    ]  # fmt: skip
    assert cancel_backfill(member=world.alice, backfill_id=backfill.pk) == 0
    repeated = start_backfill(member=world.alice, request=world.request(count=3))
    assert repeated.runs.count() == 2


def test_an_unknown_host_is_refused_once_with_its_field(world):
    request = BackfillRequest(
        benchmark="hello", hosts=("nowhere",), selection=CommitSelection(source="last")
    )
    with pytest.raises(InvalidRequestError, match="nowhere") as refused:
        plan_backfill(member=world.alice, request=request)
    assert refused.value.field == "hosts"


def test_viewers_start_no_backfill_and_strangers_see_none(world):
    backfill = start_backfill(member=world.alice, request=world.request(count=1))
    with pytest.raises(PermissionRefusedError):
        start_backfill(member=world.personas.bob, request=world.request(count=2))
    with pytest.raises(PermissionRefusedError):
        cancel_backfill(member=world.personas.bob, backfill_id=backfill.pk)
    assert load_backfill(world.personas.bob, backfill.pk) == backfill
    with pytest.raises(NotFoundError):
        load_backfill(world.personas.mallory, backfill.pk)
