"""Comparisons of any two sides, with their mismatches."""

from pathlib import Path
from typing import Any

import pytest

from agents.hostagent.platform.placement import Placement
from orchestrator.accounts.visitors import Visitor
from orchestrator.benchmarks.models import Benchmark, Commit, Project
from orchestrator.benchmarks.projects import create_project
from orchestrator.comparisons.compare import compare_sides
from orchestrator.comparisons.report import ComparisonReport, build_comparison_query
from orchestrator.comparisons.sides import (
    SideQuery,
    load_choices,
    load_recent_commits,
    resolve_sides,
)
from orchestrator.core.errors import InvalidRequestError, NotFoundError
from orchestrator.fleet.models import Host, HostChange, HostSnapshot
from orchestrator.fleet.services import save_profile
from orchestrator.runs.models import Trial
from tests.support.factories import (
    DEFINITION,
    Personas,
    commit_files,
    finish_run,
    git,
    make_definition,
    make_repository,
    make_run,
    record_again,
)
from tests.support.fetches import fetch_now

TWO_CASES = DEFINITION.replace("connections: [4]", "connections: [4, 8]")


@pytest.fixture
def source() -> str:
    return TWO_CASES


def other_host(personas: Personas, name: str = "there", profile: str = "other") -> Host:
    """A second machine; a copy of the first in all but its name and profile."""
    first = personas.alice.team.hosts.get(name="here")
    kind = save_profile(member=personas.alice, slug=profile, name=profile.capitalize())
    first.pk, first.name, first.profile = None, name, kind
    first._state.adding = True
    first.id = Host._meta.get_field("id").get_default()
    first.transport = "external"
    first.state = "external"
    first.save()
    return first


def measure(
    personas: Personas, commits: list[Commit], rates: list[float], host: Host | None = None
) -> None:
    run = make_run(personas.alice, [commit.sha for commit in commits], rounds=7)
    if host is not None:
        run.jobs.update(host=host)
    finish_run(run, rates)


def compare(personas: Personas, first: SideQuery, second: SideQuery) -> ComparisonReport:
    benchmark = Benchmark.objects.select_related("project").get()
    sides = resolve_sides(personas.alice, benchmark, first, second)
    return compare_sides(personas.alice, benchmark=benchmark, sides=sides)


def what(report: ComparisonReport) -> list[str]:
    return [each.aspect for each in report.mismatches]


def keys(personas: Personas) -> dict[int, str]:
    cases = Benchmark.objects.get().cases.all()
    return {case.parameters["connections"]: case.key for case in cases}


def test_two_cases_of_a_commit_are_paired_by_their_rounds(
    personas: Personas, commits: list[Commit]
) -> None:
    measure(personas, commits[:1], [1000])
    key = keys(personas)
    report = compare(
        personas, SideQuery(commit=commits[0].sha, case=key[4]), SideQuery(case=key[8])
    )
    (case,) = report.cases
    assert (case.case.key, case.contender_case.key) == (key[4], key[8])
    assert (case.paired, case.metrics[0].blocks) == (True, 7)
    assert what(report) == ["case"]
    assert "connections" in report.mismatches[0].reason


def test_two_hosts_are_unpaired_and_a_mismatch(personas: Personas, commits: list[Commit]) -> None:
    measure(personas, commits[:1], [1000])
    measure(personas, commits[:1], [800], other_host(personas))
    report = compare(
        personas, SideQuery(commit=commits[0].sha, host="here"), SideQuery(host="there")
    )
    assert len(report.cases) == 2
    assert not report.paired
    assert (report.verdict, what(report)) == ("inconclusive", ["host", "profile"])
    assert report.outcome == "differs, not confirmed"
    assert {(case.host.name, case.contender_host.name) for case in report.cases} == {
        ("here", "there")
    }


def test_hosts_of_a_profile_are_combined(personas: Personas, commits: list[Commit]) -> None:
    measure(personas, commits[:1], [1000])
    for name in ("there", "yonder"):
        measure(personas, commits[:1], [800], other_host(personas, name))
    report = compare(
        personas, SideQuery(commit=commits[0].sha, profile="any"), SideQuery(profile="other")
    )
    case = report.cases[0]
    assert (case.host.name, case.contender_host.name) == ("here", "there, yonder")
    assert case.source is not None
    assert [len(values) for values in case.source.metrics["requests.rate"]] == [7, 14]


def test_commits_on_different_hosts_are_compared(personas: Personas, commits: list[Commit]) -> None:
    measure(personas, commits[:1], [1000])
    measure(personas, commits[1:2], [800], other_host(personas))
    report = compare(personas, SideQuery(commit=commits[0].sha), SideQuery(commit=commits[1].sha))
    assert (report.paired, what(report)) == (False, ["host", "profile"])


def test_another_epoch_of_the_host_is_a_mismatch(personas: Personas, commits: list[Commit]) -> None:
    measure(personas, commits[:1], [1000])
    host = personas.alice.team.hosts.get()
    snapshot = HostSnapshot.objects.create(host=host, facts={}, fingerprint="g" * 64)
    HostChange.objects.create(
        host=host, snapshot=snapshot, changed={"kernel": ["6.1", "6.6"]}, at=snapshot.taken_at
    )
    measure(personas, commits[1:2], [800])
    report = compare(personas, SideQuery(commit=commits[0].sha), SideQuery(commit=commits[1].sha))
    assert (report.paired, what(report)) == (False, ["epoch"])
    assert "kernel" in report.mismatches[0].reason


def change_provenance(commit: Commit, **changes: Any) -> None:
    """Change the provenance of the trials of a commit, and record their results again."""
    for trial in Trial.objects.filter(variant__commit=commit):
        Trial.objects.filter(pk=trial.pk).update(provenance={**trial.provenance, **changes})
    record_again()


def test_another_cpu_placement_or_load_generator_is_a_mismatch(
    personas: Personas, commits: list[Commit]
) -> None:
    measure(personas, commits[:1], [1000])
    measure(personas, commits[1:2], [800])
    placed = {"server": (1,), "tool": (2, 3)}
    for commit, cpus in ((commits[0], placed), (commits[1], {**placed, "server": (0, 1)})):
        placement = {**Placement(cpus).as_json(), "agent": [0]}
        change_provenance(commit, placement={"a": placement})
    sides = SideQuery(commit=commits[0].sha), SideQuery(commit=commits[1].sha)
    (mismatch,) = compare(personas, *sides).mismatches
    assert (mismatch.aspect, mismatch.baseline, mismatch.contender) == (
        "CPU placement", "server 1, load tool 2-3", "server 0-1, load tool 2-3",
    )  # fmt: skip
    benchmark = Benchmark.objects.get()
    visitor = Visitor(project=benchmark.project_id, place="/public/red/server/")
    report = compare_sides(
        visitor,
        benchmark=benchmark,
        sides=resolve_sides(personas.alice, benchmark, *sides),
    )
    (mismatch,) = report.mismatches
    assert {mismatch.baseline, mismatch.contender} == {"not public"}
    change_provenance(commits[1], placement={"a": {**Placement(placed).as_json(), "agent": [0]}})
    assert compare(personas, *sides).mismatches == ()

    change_provenance(commits[0], generator_settings={"turbo": "on"})
    change_provenance(commits[1], generator_settings={"turbo": "off", "governor": "performance"})
    report = compare(personas, SideQuery(commit=commits[0].sha), SideQuery(commit=commits[1].sha))
    (mismatch,) = report.mismatches
    assert (mismatch.aspect, mismatch.baseline, mismatch.contender) == (
        "generator settings", "turbo on", "governor performance, turbo off",
    )  # fmt: skip
    assert not report.paired


def edit(personas: Personas, project: Project, *changes: tuple[str, str]) -> None:
    source = TWO_CASES
    for old, new in changes:
        assert old in source
        source = source.replace(old, new)
    make_definition(personas.alice, project, source=source)


def test_two_versions_of_the_definition_list_their_differences(
    personas: Personas, project: Project, commits: list[Commit]
) -> None:
    measure(personas, commits[:1], [1000])
    edit(personas, project, ("duration_s: 0.6", "duration_s: 0.7"))
    measure(personas, commits[:1], [900])
    report = compare(
        personas, SideQuery(commit=commits[0].sha, version="1"), SideQuery(version="2")
    )
    (mismatch,) = report.mismatches
    assert (mismatch.aspect, mismatch.baseline, mismatch.contender) == (
        "definition", "version 1", "version 2",
    )  # fmt: skip
    assert [line.text.strip() for line in mismatch.diff if line.sign in "+-"] == [
        "duration_s: 0.6", "duration_s: 0.7",
    ]  # fmt: skip
    assert not report.paired
    assert report.cases[0].metrics[0].change == pytest.approx(-0.1, abs=0.01)


def test_another_commit_of_another_repository_is_a_mismatch(
    personas: Personas, project: Project, commits: list[Commit], tmp_path: Path
) -> None:
    folder = tmp_path / "framework"
    make_repository(folder, [{"word.txt": "one"}])
    framework = create_project(
        member=personas.alice, slug="framework", name="", repository_url=str(folder)
    )
    fetch_now(framework)
    repositories = "repositories: {framework: {project: framework, ref: main}}\n"
    edit(personas, project, ("rounds: 5\n", f"rounds: 5\n{repositories}"))
    measure(personas, commits[:1], [1000])
    measure(personas, commits[1:2], [1000])
    sides = SideQuery(commit=commits[0].sha), SideQuery(commit=commits[1].sha)
    assert compare(personas, *sides).mismatches == ()
    commit_files(folder, {"word.txt": "two"}, 9)
    fetch_now(framework)
    measure(personas, commits[2:3], [900])
    report = compare(personas, sides[0], SideQuery(commit=commits[2].sha))
    (mismatch,) = report.mismatches
    old, new = (f"framework {sha[:10]}" for sha in read_log(folder))
    assert (mismatch.aspect, mismatch.baseline, mismatch.contender) == ("repositories", old, new)


def read_log(folder: Path) -> list[str]:
    """Return the hashes of all commits, oldest first."""
    return git(folder, "rev-list", "--reverse", "main").split()


def test_an_edit_that_does_not_change_a_case_is_not_a_mismatch(
    personas: Personas, project: Project, commits: list[Commit]
) -> None:
    measure(personas, commits[:1], [1000])
    edit(personas, project, ("title: Hello", "title: Good day"))
    measure(personas, commits[1:2], [900])
    report = compare(personas, SideQuery(commit=commits[0].sha), SideQuery(commit=commits[1].sha))
    assert (report.mismatches, report.paired) == ((), False)
    with pytest.raises(NotFoundError, match="start a run"):
        compare(personas, SideQuery(commit=commits[0].sha, version="1"), SideQuery(version="2"))


def test_latencies_of_closed_and_open_loops_have_no_verdict(
    personas: Personas, project: Project, commits: list[Commit]
) -> None:
    measure(personas, commits[:1], [1000])
    edit(personas, project, ("  duration_s: 0.6", "  rate: 100\n  duration_s: 0.6"))
    measure(personas, commits[:1], [500])
    report = compare(
        personas, SideQuery(commit=commits[0].sha, version="1"), SideQuery(version="2")
    )
    assert {"definition", "loop"} <= set(what(report))
    for case in report.cases:
        latencies = [each for each in case.metrics if each.key.startswith("latency.")]
        assert latencies
        for metric in latencies:
            assert (metric.change, metric.interval, metric.verdict) == (None, None, "inconclusive")
            assert metric.baseline is not None
            assert "not comparable" in metric.reasons[0]
            assert not metric.primary


def test_a_side_of_one_tool_has_only_what_it_measured(
    personas: Personas, commits: list[Commit]
) -> None:
    measure(personas, commits[:2], [1000, 800])
    first, second = SideQuery(commit=commits[0].sha, tool="oha"), SideQuery(commit=commits[1].sha)
    assert compare(personas, first, second).verdict == "regressed"
    with pytest.raises(NotFoundError):
        compare(personas, SideQuery(commit=commits[0].sha, tool="wrk"), second)


def test_one_case_on_one_host_is_paired(personas: Personas, commits: list[Commit]) -> None:
    measure(personas, commits[:2], [1000, 800])
    baseline = SideQuery(commit=commits[0].sha, case=keys(personas)[8], host="here")
    report = compare(personas, baseline, SideQuery(commit=commits[1].sha))
    assert (len(report.cases), report.paired, report.mismatches) == (1, True, ())


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ({"host": "nowhere"}, NotFoundError),
        ({"profile": "none"}, NotFoundError),
        ({"case": "0" * 16}, NotFoundError),
        ({"version": "9"}, NotFoundError),
        ({"version": "two"}, InvalidRequestError),
        ({}, InvalidRequestError),
    ],
)
def test_an_unknown_parameter_value_is_named(
    personas: Personas, commits: list[Commit], words: dict[str, Any], error: type[Exception]
) -> None:
    measure(personas, commits[:1], [1000])
    with pytest.raises(error):
        compare(personas, SideQuery(commit=commits[0].sha), SideQuery(**words))


def test_the_query_of_a_comparison_reproduces_it(personas: Personas, commits: list[Commit]) -> None:
    measure(personas, commits[:1], [1000])
    key = keys(personas)
    report = compare(
        personas, SideQuery(commit=commits[0].sha, case=key[4]), SideQuery(case=key[8])
    )
    assert build_comparison_query(report) == {
        "benchmark": "server/hello",
        "baseline": commits[0].sha,
        "contender": commits[0].sha,
        "case": key[4],
        "contender_case": key[8],
    }


def test_only_measured_choices_are_offered(personas: Personas, commits: list[Commit]) -> None:
    other_host(personas)
    benchmark = Benchmark.objects.get()
    assert load_choices(personas.alice, benchmark).hosts == []
    measure(personas, commits[:1], [1000])
    choices = load_choices(personas.alice, benchmark)
    assert choices.hosts == [("here", "here")]
    assert choices.tools == [("oha", "oha")]
    assert choices.versions == [("1", "version 1")]
    assert len(choices.cases) == 2
    assert load_recent_commits(personas.alice, benchmark) == commits[:1]
    assert load_choices(personas.mallory, benchmark).cases == []


def test_what_only_one_side_measured_is_listed_without_data(
    personas: Personas, project: Project, commits: list[Commit]
) -> None:
    measure(personas, commits[:1], [1000])
    edit(personas, project, ("connections: [4, 8]", "connections: [8]"))
    measure(personas, commits[1:2], [900])
    report = compare(personas, SideQuery(commit=commits[0].sha), SideQuery(commit=commits[1].sha))
    outcomes = {case.case.parameters["connections"]: case.outcome for case in report.cases}
    assert outcomes == {8: "differs, not confirmed", 4: "no usable data"}
    assert any("1 case was measured on one side only" in note for note in report.notes)
