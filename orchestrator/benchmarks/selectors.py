"""Reads of projects, benchmarks, definitions and commits."""

from typing import Any

from django.db.models import Count, Max, QuerySet

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Benchmark, Case, Commit, Definition, Project
from orchestrator.benchmarks.spec import Spec, from_data
from orchestrator.core.errors import NotFoundError


def projects_of(member: Member) -> QuerySet[Project]:
    return member.team.projects.prefetch_related("benchmarks")


def project_for(member: Member, slug: str) -> Project:
    project = member.team.projects.filter(slug=slug).first()
    if project is None:
        raise NotFoundError(f"the team has no project {slug}")
    return project


def benchmarks_of(member: Member) -> QuerySet[Benchmark]:
    return Benchmark.objects.filter(project__team=member.team).select_related("project")


def benchmarks_with_versions(member: Member) -> QuerySet[Any]:
    """With their cases, and the number of the newest definition as `version`."""
    return (
        benchmarks_of(member)
        .annotate(version=Max("definitions__version"))
        .prefetch_related("cases")
    )


def benchmark_for(member: Member, slug: str, project: str | None = None) -> Benchmark:
    """The benchmark of that name; `project` is needed only where two projects share the name."""
    found = benchmarks_of(member).filter(slug=slug)
    if project:
        found = found.filter(project__slug=project)
    benchmarks = list(found[:2])
    if not benchmarks:
        known = ", ".join(benchmarks_of(member).values_list("slug", flat=True)) or "none"
        raise NotFoundError(f"the team has no benchmark {slug}; its benchmarks are: {known}")
    if len(benchmarks) > 1:
        raise NotFoundError(f"several projects have a benchmark {slug}; name the project as well")
    return benchmarks[0]


def latest_definition(benchmark: Benchmark) -> Definition:
    definition = benchmark.definitions.order_by("-version").first()
    if definition is None:
        raise NotFoundError(f"the benchmark {benchmark.slug} has no definition yet")
    return definition


def version_of(benchmark: Benchmark, version: int) -> Definition:
    definition = benchmark.definitions.filter(version=version).first()
    if definition is None:
        raise NotFoundError(f"the benchmark {benchmark.slug} has no version {version}")
    return definition


def spec_of(definition: Definition) -> Spec:
    """The specification of a stored definition, its axes in the order of its text."""
    data = dict(definition.spec)
    for field in ("matrix", "options"):
        if field in data:
            data[field] = _in_order(data[field], definition.axes)
    return from_data(data)


def _in_order(axes: dict[str, Any], order: list[str]) -> dict[str, Any]:
    return {axis: axes[axis] for axis in [*order, *axes] if axis in axes}


def case_for(benchmark: Benchmark, key: str) -> Case:
    case = benchmark.cases.filter(key=key).first()
    if case is None:
        raise NotFoundError(f"the benchmark {benchmark.slug} has no case {key}")
    return case


def commit_for(member: Member, benchmark: Benchmark, sha: str) -> Commit:
    """A known commit by its hash, or by the first seven or more digits of it."""
    commits = benchmark.project.commits.filter(project__team=member.team)
    found = list(commits.filter(sha__startswith=sha.lower())[:2]) if len(sha) >= 7 else []
    if not found:
        raise NotFoundError(
            f"no commit {sha or '(none)'} of {benchmark.project.name} is known here"
        )
    if len(found) > 1:
        raise NotFoundError(f"{sha} is the beginning of several commits; give more digits")
    return found[0]


def recent_commits(project: Project, limit: int = 100) -> QuerySet[Commit]:
    """The newest commits that are known of a project, newest first."""
    return project.commits.order_by("-committed_at", "-position")[:limit]


def versions_of(benchmark: Benchmark) -> QuerySet[Any]:
    """All definitions of a benchmark, newest first, with the number of their runs (`run_count`)."""
    definitions = benchmark.definitions.select_related("created_by", "commit")
    return definitions.annotate(run_count=Count("runs")).order_by("-version")
