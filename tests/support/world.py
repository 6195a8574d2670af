"""The world that most tests start from: two teams, a project, a benchmark, a host and runs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pytest

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import AuditEntry
from orchestrator.benchmarks.models import Benchmark, Commit, Definition, Fetch, Project
from orchestrator.benchmarks.projects import create_project
from orchestrator.fleet.models import HardwareProfile, Host
from orchestrator.runs.models import Run
from tests.support.copied_rows import RowTemplate
from tests.support.factories import (
    DEFINITION,
    WITHOUT_SERVER,
    Personas,
    finish_run,
    make_definition,
    make_local_host,
    make_project,
    make_repository,
    make_run,
)
from tests.support.fetched_projects import FETCHED_REPOSITORIES
from tests.support.fetches import run_fetches

#: What the usual world has rows of, next to the personas.
MODELS = (
    Project, Fetch, Commit, Benchmark, Definition, HardwareProfile, Host, AuditEntry,
)  # fmt: skip


#: By the source of their definition: the rows of a world, and the member that they refer to.
_SAVED: dict[str, tuple[RowTemplate, Member]] = {}


@dataclass(kw_only=True)
class World:
    """Team red with its project `server` of three commits, its benchmark `hello` and its host
    `here`. Alice owns team red, bob is a viewer of it, and mallory owns team blue.

    Tests of an area extend it by methods.
    """

    personas: Personas
    project: Project
    benchmark: Benchmark
    host: Host
    shas: list[str]
    #: The measured run of tests that begin with one.
    run: Any = None

    @classmethod
    def make(
        cls, personas: Personas, folder: Path, *, source: str = DEFINITION, **fields: Any
    ) -> Self:
        """`source`: the definition of the benchmark. `fields`: those that a subclass adds."""
        alice, repository = personas.alice, folder / "repository"
        if source in _SAVED:
            project, benchmark, host, shas = _copy_saved(source, alice, repository)
        else:
            template = RowTemplate(*MODELS)
            with template.reading():
                project, shas = make_project(alice, repository)
                benchmark = make_definition(alice, project, source=source).benchmark
                host = make_local_host(alice)
            if template.rows is not None:
                _SAVED[source] = template, alice
        return cls(
            personas=personas, project=project, benchmark=benchmark, host=host, shas=shas, **fields
        )

    @property
    def alice(self) -> Member:
        return self.personas.alice

    @property
    def repository(self) -> Path:
        return Path(self.project.repository_url)

    @property
    def commits(self) -> list[Commit]:
        """In the order of the hashes."""
        return list(self.project.commits.order_by("position"))

    def run_body(self, **changes: Any) -> dict[str, Any]:
        """The body of a request that starts a run of the first two commits."""
        return {
            "benchmark": "hello",
            "baseline": self.shas[0],
            "contenders": [self.shas[1]],
            "hosts": ["here"],
            **changes,
        }

    def queue_run(self, *places: int, **changes: Any) -> Run:
        """A queued run of the commits at these places, by default of the first two."""
        return make_run(self.alice, [self.shas[place] for place in places or (0, 1)], **changes)

    def measure_run(self, *rates: float, **changes: Any) -> Run:
        """A finished run of as many commits as there are rates (requests/s)."""
        return finish_run(self.queue_run(*range(len(rates)), **changes), rates)

    def add_project(self, slug: str = "other") -> Project:
        """Another project of the team with the same repository."""
        project = create_project(
            member=self.alice, slug=slug, name=slug.title(), repository_url=str(self.repository)
        )
        run_fetches()
        return project


def _copy_saved(
    source: str, alice: Member, repository: Path
) -> tuple[Project, Benchmark, Host, list[str]]:
    """Create the repository, its mirror and the rows of a saved world."""
    shas = make_repository(repository, WITHOUT_SERVER)
    template, first = _SAVED[source]
    rows = template.copy(
        known={first.team: alice.team, first.user: alice.user},
        changes={(Project, "repository_url"): str(repository)},
    )
    (project,), (benchmark,), (host,) = rows[Project], rows[Benchmark], rows[Host]
    fetched = FETCHED_REPOSITORIES.find(shas)
    assert fetched is not None, "the saved world has it"
    fetched.copy_mirror(project)
    return project, benchmark, host, shas


@pytest.fixture
def data_dir(settings: Any, tmp_path: Path) -> Path:
    """The test's own data folder; repositories may be folders of this machine."""
    settings.DATA_DIR = tmp_path / "data"
    settings.ALLOW_LOCAL_REPOSITORIES = True
    return tmp_path / "data"


@pytest.fixture
def world(personas: Personas, data_dir: Path, tmp_path: Path) -> World:
    """Without a run."""
    return World.make(personas, tmp_path)
