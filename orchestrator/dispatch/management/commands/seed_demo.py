"""Makes what the demo needs: a team, a user, hardware profiles, this machine, the benchmark.

May be run again: what is there stays, and only a new API token is made each time.
"""

import json
import secrets
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role, Team, User
from orchestrator.accounts.selectors import member_for_user
from orchestrator.accounts.services import create_team, create_token, create_user
from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.services import create_project, save_definition
from orchestrator.dispatch.agent import Agent
from orchestrator.fleet.catalogue import PROFILES
from orchestrator.fleet.connect import connect
from orchestrator.fleet.models import Host
from orchestrator.fleet.services import add_local_host, record_snapshot, save_profile

USER = "demo"
HOST = "this-machine"


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--server-repository", required=True, help="path of the demo server")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        team = create_team(slug="demo", name="Demo team")
        member, password = _owner(team)
        for slug, profile in PROFILES.items():
            save_profile(member=member, slug=slug, **profile)
        host = _this_machine(member)
        project = _project(member, options["server_repository"])
        source = Path(settings.BASE_DIR) / "agents" / "suites" / "hello" / "benchmark.yaml"
        save_definition(member=member, project=project, slug="hello", source=source.read_text())
        answer = {
            "team": team.slug,
            "user": USER,
            "password": password,
            "token": create_token(member=member, name="demo in the terminal").secret,
            "host": host.name,
            "benchmark": "hello",
        }
        lines = "\n".join(f"{name}: {value}" for name, value in answer.items())
        self.stdout.write(json.dumps(answer) if options["json"] else lines)


def _owner(team: Team) -> tuple[Member, str | None]:
    """The demo's user; their password is known only when they have just been made."""
    user = User.objects.filter(username=USER).first()
    if user is not None:
        return member_for_user(user, team.slug), None
    password = secrets.token_urlsafe(12)
    user = create_user(username=USER, password=password, team=team, role=Role.ADMIN)
    return member_for_user(user, team.slug), password


def _this_machine(member: Member) -> Host:
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


def _project(member: Member, path: str) -> Project:
    project = member.team.projects.filter(slug="hello-server").first()
    if project is not None:
        Project.objects.filter(pk=project.pk).update(repository_url=path)
        project.refresh_from_db()
        return project
    return create_project(
        member=member, slug="hello-server", name="Hello server", repository_url=path
    )
