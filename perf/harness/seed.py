"""Data that must exist before a job can be queued: a team, its hosts, a project."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.selectors import load_member
from orchestrator.accounts.services import create_team, create_token, create_user
from orchestrator.benchmarks.fetching import finish_fetch
from orchestrator.benchmarks.projects import create_project
from orchestrator.benchmarks.services import save_definition
from orchestrator.core.ids import new_hex
from orchestrator.fleet.services import (
    NewHost,
    add_credential,
    add_host,
    confirm_host_key,
    save_profile,
)
from perf.harness.ssh_hosts import PYTHON, Fleet

DEFINITION = """\
version: 1
title: {title}
subject:
  start: ["{{python}}", "server.py", "--port", "{{port}}"]
  ready: {{path: /hello, status: 200, body: "Hello, World!", timeout_s: 10}}
load:
  path: /hello
  connections: "{{connections}}"
  duration_s: {duration_s}
  warmup_s: {warmup_s}
matrix:
  connections: {connections}
rounds: 1
cooldown_s: 0
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The user who requests the runs, and the secret of their API token."""

    member: Member
    token: str


def make_account(name: str = "bench") -> Account:
    """Create a team with one user, both of this name."""
    team = create_team(slug=name, name=name.title())
    user = create_user(username=name, password=new_hex(), team=team, role=Role.OWNER)
    member = load_member(user)
    return Account(member=member, token=create_token(member=member, name=name).secret)


def add_fleet(member: Member, fleet: Fleet) -> None:
    """Add every host under its name, with its key confirmed."""
    save_profile(member=member, slug="loopback", name="This machine over loopback")
    key = fleet.client.private_openssh
    credential = add_credential(member=member, name="bench", private_key=key)
    for host in fleet.hosts:
        new = NewHost(
            name=host.name,
            profile_slug="loopback",
            address="127.0.0.1",
            port=host.port,
            login=host.user,
            credential_id=credential.pk,
            work_dir=str(host.work_dir),
            python=PYTHON,
        )
        row, _ = add_host(member=member, new=new)
        confirm_host_key(member=member, host_id=row.pk, host_key=host.host_key)


def add_benchmark(
    member: Member,
    repository: Path,
    slug: str,
    *,
    duration_s: float,
    warmup_s: float,
    connections: list[int],
) -> None:
    """Add a project over the repository with one benchmark, both named `slug`.

    Each number of connections is a case.
    """
    project = create_project(
        member=member, slug=slug, name=slug.title(), repository_url=str(repository)
    )
    finish_fetch(project)
    source = DEFINITION.format(
        title=slug.title(), duration_s=duration_s, warmup_s=warmup_s, connections=connections
    )
    save_definition(member=member, project=project, slug=slug, source=source)
