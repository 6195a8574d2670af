"""What the tests of the pages start from."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from orchestrator.accounts.members import Member
from orchestrator.fleet.models import Host
from orchestrator.runs.models import Run
from tests.support.factories import (
    Personas,
    finish_run,
    make_definition,
    make_local_host,
    make_project,
    make_run,
)
from tests.support.fetches import PatientClient


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Team red's project with three commits, its benchmark, its host, and one measured run."""

    alice: Member
    shas: list[str]
    host: Host
    run: Run


@pytest.fixture(autouse=True)
def _own_settings(settings: Any, tmp_path: Path) -> None:
    """Static files as they lie, data below the test's own folder, and quick password hashes."""
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    }
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    settings.STATIC_ROOT = str(tmp_path)
    settings.DATA_DIR = tmp_path / "data"
    settings.ALLOW_LOCAL_REPOSITORIES = True


@pytest.fixture
def world(personas: Personas, tmp_path: Path) -> World:
    project, shas = make_project(personas.alice, tmp_path / "repository")
    make_definition(personas.alice, project)
    host = make_local_host(personas.alice)
    run = finish_run(make_run(personas.alice, shas, rounds=6), [1000, 1001, 850])
    return World(alice=personas.alice, shas=shas, host=host, run=run)


def signed_in(member: Member) -> Client:
    client = PatientClient()
    client.force_login(member.user)
    return client


@pytest.fixture
def alice(personas: Personas) -> Client:
    """The browser of alice, an owner of team red."""
    return signed_in(personas.alice)


@pytest.fixture
def bob(personas: Personas) -> Client:
    """The browser of bob, who may only look at what team red does."""
    return signed_in(personas.bob)


@pytest.fixture
def mallory(personas: Personas) -> Client:
    """The browser of mallory, of another team."""
    return signed_in(personas.mallory)
