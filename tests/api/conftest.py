"""What the tests of the API share: clients that send a token, and something to measure."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from django.http import HttpResponse

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.services import create_token
from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.projects import create_project
from orchestrator.runs.models import Run
from tests.support import factories
from tests.support.factories import Personas
from tests.support.fetches import PatientClient, run_fetches


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiClient:
    secret: str

    def get(self, path: str, **query: Any) -> HttpResponse:
        return PatientClient().get(f"/api/v1/{path}", query, headers=self._headers())

    def post(self, path: str, body: Any = None, *, key: str | None = None) -> HttpResponse:
        headers = self._headers() | ({"Idempotency-Key": key} if key else {})
        return PatientClient(enforce_csrf_checks=True).post(
            f"/api/v1/{path}", body, content_type="application/json", headers=headers
        )

    def put(self, path: str, body: Any = None) -> HttpResponse:
        return self._send("PUT", path, body)

    def patch(self, path: str, body: Any = None) -> HttpResponse:
        return self._send("PATCH", path, body)

    def delete(self, path: str, _body: Any = None) -> HttpResponse:
        return self._send("DELETE", path, None)

    def _send(self, method: str, path: str, body: Any) -> HttpResponse:
        content = b"" if body is None else json.dumps(body).encode()
        return PatientClient(enforce_csrf_checks=True).generic(
            method,
            f"/api/v1/{path}",
            content,
            content_type="application/json",
            headers=self._headers(),
        )

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.secret}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lab:
    """Team red's benchmark `hello` on the host `here`, and the hashes of three commits."""

    personas: Personas
    shas: list[str]
    repository: Path

    def wanted(self, **changes: Any) -> dict[str, Any]:
        return {
            "benchmark": "hello",
            "baseline": self.shas[0],
            "contenders": [self.shas[1]],
            "hosts": ["here"],
            **changes,
        }

    def queued_run(self, *places: int) -> Run:
        shas = [self.shas[place] for place in places or (0, 1)]
        return factories.make_run(self.personas.alice, shas)

    def projects(self) -> dict[str, Project]:
        """The project, and another of the same team."""
        create_project(
            member=self.personas.alice, slug="other", name="Other",
            repository_url=str(self.repository),
        )  # fmt: skip
        run_fetches()
        return {each.slug: each for each in Project.objects.order_by("pk")}

    def measured_run(self, *rates: float) -> Run:
        return factories.finish_run(self.queued_run(*range(len(rates))), rates)


def make_client(member: Member) -> ApiClient:
    """Also for viewers: their token is from a time when they were members."""
    new = create_token(member=replace(member, role=Role.MEMBER), name="test")
    return ApiClient(secret=new.secret)


@pytest.fixture
def lab(personas: Personas, settings: Any, tmp_path: Path) -> Lab:
    settings.ALLOW_LOCAL_REPOSITORIES = True
    settings.DATA_DIR = tmp_path / "data"
    repository = tmp_path / "repository"
    project, shas = factories.make_project(personas.alice, repository)
    factories.make_definition(personas.alice, project)
    factories.make_local_host(personas.alice)
    return Lab(personas=personas, shas=shas, repository=repository)


@pytest.fixture
def alice(lab: Lab) -> ApiClient:
    return make_client(lab.personas.alice)


@pytest.fixture
def bob(lab: Lab) -> ApiClient:
    return make_client(lab.personas.bob)


@pytest.fixture
def mallory(lab: Lab) -> ApiClient:
    return make_client(lab.personas.mallory)
