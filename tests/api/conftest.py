"""Clients of the API that send a token."""

import json
from dataclasses import dataclass, replace
from typing import Any

import pytest
from django.http import HttpResponse

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.services import create_token
from tests.support.fetches import PatientClient
from tests.support.world import World


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


def make_client(member: Member) -> ApiClient:
    """Also for viewers: their token is from a time when they were members."""
    new = create_token(member=replace(member, role=Role.MEMBER), name="test")
    return ApiClient(secret=new.secret)


@pytest.fixture
def alice(world: World) -> ApiClient:
    return make_client(world.personas.alice)


@pytest.fixture
def bob(world: World) -> ApiClient:
    return make_client(world.personas.bob)


@pytest.fixture
def mallory(world: World) -> ApiClient:
    return make_client(world.personas.mallory)
