"""The examples of docs/examples, each with a small repository of its kind."""

import re
import shutil
from pathlib import Path

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.examples import load_example
from orchestrator.benchmarks.projects import create_project
from orchestrator.benchmarks.spec import parse
from orchestrator.runs.models import Run
from tests.support.factories import git, make_definition, make_run
from tests.support.fetches import fetch_now
from tests.support.programs import program

REPOSITORIES = Path(__file__).parent / "example_repositories"
#: Without packages of others. The examples of a group share one engine.
GROUPS = (
    ("client-library", "framework-and-application", "static-files"),
    ("node-monorepo",),
)
#: They need a package index, or take long.
LONG = ("django-postgresql", "fastapi", "go-cgo", "gradle-service", "grpc", "rust-workspace")
_SHORTER = {
    r"duration_s: \d+": "duration_s: 0.6",
    r"warmup_s: \d+": "warmup_s: 0.2",
    r"requests: \d+": "requests: 200",
}


def require_programs(slug: str, *, provided: frozenset[str] = frozenset()) -> None:
    """Skip the test if a program of the example is missing, and not `provided` by the test."""
    more = {"gradle"} if slug == "gradle-service" else set()
    for name in sorted({*parse(load_example(slug).source).requires, *more} - provided):
        program(name)


def start_example(member: Member, slug: str, folder: Path) -> Run:
    """Start one round of a shorter load on the host `here`, with the repository of the example."""
    sha = _make_repository(REPOSITORIES / slug, folder / slug)
    project = create_project(member=member, slug=slug, name=slug, repository_url=str(folder / slug))
    fetch_now(project)
    if slug == "framework-and-application":
        _add_application(member, folder / "application")
    make_definition(member, project, slug=slug, source=_shorten(slug))
    return make_run(member, [sha], benchmark=slug, rounds=1)


def _add_application(member: Member, folder: Path) -> None:
    """Add the project of the second repository that the example names."""
    _make_repository(REPOSITORIES / "application-of-framework", folder)
    git(folder, "tag", "v1.0")
    fetch_now(
        create_project(
            member=member, slug="application", name="Application", repository_url=str(folder)
        )
    )


def _shorten(slug: str) -> str:
    source = load_example(slug).source + "cooldown_s: 0\n"
    for usual, short in _SHORTER.items():
        source = re.sub(rf"^(  {usual})$", f"  {short}", source, flags=re.MULTILINE)
    return source


def _make_repository(files: Path, folder: Path) -> str:
    """Commit a copy of the files to a new repository. Return the hash of the commit."""
    ignored = shutil.ignore_patterns("__pycache__", "node_modules", "target")
    shutil.copytree(files, folder, ignore=ignored)
    git(folder, "init", "--quiet", "--template=", "--initial-branch=main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "-m", "the first version")
    return git(folder, "rev-parse", "HEAD")
