"""The data for `make demo` and `make seeds`: a team, its owner, this machine, a project."""

import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role, Team, User
from orchestrator.accounts.selectors import load_member
from orchestrator.accounts.services import create_team, create_user
from orchestrator.benchmarks.fetching import finish_fetch
from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.projects import create_project
from orchestrator.dispatch.agent import Agent
from orchestrator.fleet.connect import connect
from orchestrator.fleet.known_profiles import PROFILES
from orchestrator.fleet.models import Credential, Host
from orchestrator.fleet.services import (
    NewHost,
    add_credential,
    add_host,
    add_local_host,
    confirm_host_key,
    record_snapshot,
    save_profile,
)
from orchestrator.retention.whole_team import remove_whole_team

TEAM = USER = "demo"
HOST = "this-machine"
SSH_HOST = "sample-host"


@contextmanager
def open_demo_team() -> Iterator[tuple[Member, str | None]]:
    """Yield the demo's user, with hardware profiles in their team; the password only if it is new.

    If the block fails, a new team and user are removed with everything that the block created:
    nobody saw the password, so the next attempt starts from nothing.
    """
    new_team = not Team.objects.filter(slug=TEAM).exists()
    new_user = not User.objects.filter(username=USER).exists()
    try:
        yield _create_owner()
    except BaseException:
        team = Team.objects.filter(slug=TEAM).first() if new_team else None
        if team is not None:
            remove_whole_team(team=team)
        if new_user:
            User.objects.filter(username=USER).delete()
        raise


def _create_owner() -> tuple[Member, str | None]:
    team = create_team(slug=TEAM, name="Demo team")
    member, password = _find_or_create_user(team)
    for slug, profile in PROFILES.items():
        save_profile(member=member, slug=slug, **profile)
    return member, password


def register_this_machine(member: Member) -> Host:
    """Return this machine as a host, with a profile from its facts."""
    profile = save_profile(member=member, slug=HOST, name="This machine")
    host = add_local_host(member=member, name=HOST, profile=profile, python=sys.executable)
    facts = _fetch_facts(host)
    name = str(facts.get("hostname") or "This machine")
    save_profile(member=member, slug=HOST, name=name[:100])
    record_snapshot(host=host, facts=facts)
    return host


def register_ssh_machine(member: Member, where: str, authorized_keys: Path) -> Host:
    """Return the host at `login@address:port`; `authorized_keys` is a file of that host.

    Both are of the same installation, so the key that the host shows is pinned.
    """
    credential = _sample_key(member)
    authorized_keys.write_text(f"{credential.public_key}\n")
    host = member.team.hosts.filter(name=SSH_HOST).first()
    if host is None:
        save_profile(member=member, slug=SSH_HOST, name="Sample host")
        login, _, address = where.partition("@")
        name, _, port = address.rpartition(":")
        new = NewHost(
            name=SSH_HOST,
            profile_slug=SSH_HOST,
            address=name,
            port=int(port),
            login=login,
            credential_id=credential.pk,
        )
        host, shown = add_host(member=member, new=new)
        host = confirm_host_key(member=member, host_id=host.pk, host_key=shown.line)
    record_snapshot(host=host, facts=_fetch_facts(host))
    return host


def _sample_key(member: Member) -> Credential:
    known = Credential.objects.filter(team=member.team, name=SSH_HOST).first()
    return known or add_credential(member=member, name=SSH_HOST)


def _fetch_facts(host: Host) -> dict[str, Any]:
    with connect(host) as transport:
        return Agent(transport, python=host.python).facts().facts


def store_project(member: Member, *, slug: str, name: str, path: str) -> Project:
    """Return the team's project of that name, with its repository at `path`.

    A new project whose repository cannot be fetched is removed again.
    """
    known = member.team.projects.filter(slug=slug).first()
    if known is None:
        project = create_project(member=member, slug=slug, name=name, repository_url=path)
    else:
        project = known
        Project.objects.filter(pk=project.pk).update(repository_url=path)
        project.refresh_from_db()
    try:
        finish_fetch(project)
    except BaseException:
        if known is None:
            project.delete()
        raise
    return project


def _find_or_create_user(team: Team) -> tuple[Member, str | None]:
    user = User.objects.filter(username=USER).first()
    if user is not None:
        return load_member(user, team.slug), None
    password = secrets.token_urlsafe(12)
    user = create_user(username=USER, password=password, team=team, role=Role.OWNER)
    return load_member(user, team.slug), password
