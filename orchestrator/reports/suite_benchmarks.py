"""Benchmarks of the suites of the catalogue, in a project that needs no repository of the team."""

from dataclasses import dataclass

from django.db import transaction

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.benchmarks.catalogue import Suite, load_suite
from orchestrator.benchmarks.miniature import Miniature, build_miniature
from orchestrator.benchmarks.models import Benchmark, Project
from orchestrator.benchmarks.projects import create_project
from orchestrator.benchmarks.services import save_definition
from orchestrator.benchmarks.suite_repositories import BRANCH, build_suite_address
from orchestrator.core.errors import ConflictError
from orchestrator.reports.saved_reports import save_suite_reports


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteBenchmark:
    """`cases`: an expression that selects the cases to measure; empty: all."""

    benchmark: Benchmark
    cases: str


@transaction.atomic
def add_suite_benchmark(*, member: Member, suite: str, small: bool = False) -> SuiteBenchmark:
    """Return the benchmark of a suite in the member's team; create it and its project if needed.

    `small`: with the short loads and few rounds of its `miniature.yaml`. A benchmark that exists
    stays as it is, because a member may have changed it.
    """
    member.require(Role.MEMBER, to="run a suite of the catalogue")
    entry = load_suite(suite)
    if small and not entry.miniature:
        raise ConflictError(f"the suite {suite} has no small version")
    chosen = _build_source(entry, small=small)
    project = _find_or_create_project(member, entry)
    slug = f"{suite}-small"[:60] if small else suite
    benchmark = project.benchmarks.filter(slug=slug).first()
    if benchmark is None:
        benchmark = save_definition(
            member=member, project=project, slug=slug, source=chosen.source
        ).benchmark
        if entry.reports:
            save_suite_reports(member=member, benchmark=benchmark, source=entry.reports)
    return SuiteBenchmark(benchmark=benchmark, cases=chosen.cases)


def _build_source(entry: Suite, *, small: bool) -> Miniature:
    if small:
        return build_miniature(entry.source, entry.miniature)
    return Miniature(source=entry.source, cases="")


def _find_or_create_project(member: Member, entry: Suite) -> Project:
    address = build_suite_address(entry.slug)
    known = member.team.projects.filter(repository_url=address).order_by("pk").first()
    if known is not None:
        return known
    is_taken = member.team.projects.filter(slug=entry.slug).exists()
    return create_project(
        member=member,
        slug=f"{entry.slug}-suite"[:60] if is_taken else entry.slug,
        name=entry.title[:100],
        repository_url=address,
        default_branch=BRANCH,
    )
