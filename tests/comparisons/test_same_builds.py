"""A comparison says when both commits gave the same build."""

import pytest

from orchestrator.benchmarks.models import Benchmark, Commit
from orchestrator.comparisons.compare import compare_commits
from orchestrator.comparisons.same_builds import IdentifiedBuild, build_same_build_notes
from orchestrator.core.clock import utc_now
from orchestrator.runs.models import Build, Run
from tests.support.factories import Personas, finish_run, make_run

BASELINE, CONTENDER = 1, 2
BYTES = "Both commits gave the same build, byte for byte"
SOURCE = "Both commits have the same source, steps and install"


def build(commit: int, digest: str, source: str = "s", recipe: str = "r") -> IdentifiedBuild:
    return IdentifiedBuild(commit, ("host", recipe), digest, source)


@pytest.mark.parametrize(
    ("builds", "note"),
    [
        ([build(BASELINE, "a"), build(CONTENDER, "a")], BYTES),
        ([build(BASELINE, "a"), build(CONTENDER, "b")], SOURCE),
        ([build(BASELINE, "a", "s1"), build(CONTENDER, "b", "s2")], None),
        # One of several recipes.
        (
            [
                build(BASELINE, "a"),
                build(CONTENDER, "a"),
                build(BASELINE, "b", "s1", recipe="r2"),
                build(CONTENDER, "c", "s2", recipe="r2"),
            ],
            "1 of 2 builds are the same for both commits, byte for byte",
        ),
        # A commit was built twice with different results.
        (
            [build(BASELINE, "a"), build(BASELINE, "b", "s2"), build(CONTENDER, "a")],
            None,
        ),
        # Builds of different recipes, or of one commit only, say nothing.
        ([build(BASELINE, "a", recipe="r1"), build(CONTENDER, "a", recipe="r2")], None),
        ([build(BASELINE, "a")], None),
        ([build(BASELINE, "", ""), build(CONTENDER, "", "")], None),
        ([], None),
    ],
)
def test_the_note_states_what_both_commits_have_in_common(
    builds: list[IdentifiedBuild], note: str | None
) -> None:
    notes = list(build_same_build_notes(builds, BASELINE, CONTENDER))
    assert [each.startswith(note or "no note") for each in notes] == ([True] if note else [])


def test_two_sides_of_one_commit_have_no_note() -> None:
    assert not list(build_same_build_notes([build(BASELINE, "a")], BASELINE, BASELINE))


def store_builds(run: Run, digests: list[str]) -> None:
    """A build of each commit of the run."""
    job = run.jobs.get()
    for number, variant in enumerate(run.variants.all()):
        Build.objects.create(
            job=job,
            host=job.host,
            commit=variant.commit,
            recipe="r",
            digest=digests[number],
            source_digest=f"{number}" * 64,
            started_at=utc_now(),
        )


@pytest.mark.parametrize("same", [True, False])
def test_a_comparison_of_stored_builds_has_the_note(
    same: bool, personas: Personas, commits: list[Commit]
) -> None:
    run = make_run(personas.alice, [commit.sha for commit in commits[:2]], rounds=7)
    finish_run(run, [1000, 1000])
    store_builds(run, ["a" * 64, ("a" if same else "b") * 64])
    benchmark = Benchmark.objects.select_related("project").get()
    for only in (None, run):
        report = compare_commits(
            personas.alice,
            benchmark=benchmark,
            baseline=commits[0],
            contender=commits[1],
            run=only,
        )
        assert any(note.startswith(BYTES) for note in report.notes) is same
