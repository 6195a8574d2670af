"""What `make demo` and `make seeds` measure with: a team, its owner, this machine, a project."""

import secrets
import sys

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role, Team, User
from orchestrator.accounts.selectors import member_for_user
from orchestrator.accounts.services import create_team, create_user
from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.services import create_project
from orchestrator.dispatch.agent import Agent
from orchestrator.fleet.catalogue import PROFILES
from orchestrator.fleet.connect import connect
from orchestrator.fleet.models import Host
from orchestrator.fleet.services import add_local_host, record_snapshot, save_profile

USER = "demo"
HOST = "this-machine"


def demo_owner() -> tuple[Member, str | None]:
    """The demo's user, with profiles in their team; the password only if they are new."""
    team = create_team(slug="demo", name="Demo team")
    member, password = _user(team)
    for slug, profile in PROFILES.items():
        save_profile(member=member, slug=slug, **profile)
    return member, password


def this_machine(member: Member) -> Host:
    """This machine as a host, with a profile of its own, filled by what it says of itself."""
    profile = save_profile(member=member, slug=HOST, name="This machine")
    host = add_local_host(member=member, name=HOST, profile=profile, python=sys.executable)
    with connect(host) as transport:
        agent = Agent(transport, python=host.python)
        facts = agent.facts()
    name = str(facts.get("hostname") or "This machine")
    save_profile(member=member, slug=HOST, name=name[:100])
    record_snapshot(host=host, facts=facts)
    return host


def project_at(member: Member, *, slug: str, name: str, path: str) -> Project:
    """The team's project of that name, its repository now at `path`."""
    project = member.team.projects.filter(slug=slug).first()
    if project is None:
        return create_project(member=member, slug=slug, name=name, repository_url=path)
    Project.objects.filter(pk=project.pk).update(repository_url=path)
    project.refresh_from_db()
    return project


def _user(team: Team) -> tuple[Member, str | None]:
    user = User.objects.filter(username=USER).first()
    if user is not None:
        return member_for_user(user, team.slug), None
    password = secrets.token_urlsafe(12)
    user = create_user(username=USER, password=password, team=team, role=Role.OWNER)
    return member_for_user(user, team.slug), password
