"""The sources of a job: its commits, those of other repositories, and what belongs to them."""

from collections.abc import Iterable
from typing import Any

from orchestrator.benchmarks.build_sources import read_submodules
from orchestrator.benchmarks.models import BuildSource, Commit, Project
from orchestrator.core.ids import hash_value
from orchestrator.dispatch.stage import Facts
from orchestrator.runs.models import Job
from orchestrator.runs.pinned_repositories import load_pinned_commits


def build_source_path(sha: str) -> str:
    return f"sources/{sha}.tar.gz"


def build_lfs_path(sha: str) -> str:
    """Return the place of the files of Git LFS of a commit and of its submodules."""
    return f"sources/{sha}-lfs.tar"


def build_repository_id(project: Project) -> str:
    """Return the name of a project's repository on hosts."""
    return hash_value(project.repository_url)[:16]


def has_git(facts: Facts) -> bool:
    return bool((facts.get("tools") or {}).get("git"))


def list_commits(job: Job) -> list[Commit]:
    """Return the commits of the job and those of other repositories, with their projects."""
    variants = job.run.variants.select_related("commit__project__team")
    every = [*(each.commit for each in variants), *load_pinned_commits(job.run).values()]
    return list({commit.pk: commit for commit in every}.values())


def load_sources(commits: Iterable[Commit]) -> dict[int, BuildSource]:
    """Return the sources that are known, by the key of the commit."""
    return BuildSource.objects.in_bulk([commit.pk for commit in commits])


def describe_source(
    facts: Facts, project: Project, sha: str, source: BuildSource | None
) -> dict[str, Any]:
    """Return the source of a commit in a plan, for a host with these facts."""
    if source is not None and source.problem:
        return {"problem": source.problem}
    own: dict[str, Any] = (
        {"repository": build_repository_id(project)}
        if has_git(facts)
        else {"archive": build_source_path(sha)}
    )
    if source is not None and source.submodules:
        own["submodules"] = [
            {"path": tree.path, "archive": build_source_path(tree.sha)}
            for tree in read_submodules(source)
        ]
    if source is not None and source.has_lfs_files:
        own["lfs_files"] = build_lfs_path(sha)
    return own
