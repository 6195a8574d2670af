"""Creates the data of the demo: a team, a user, hardware profiles, a host, the benchmark.

It may be run again: existing data stay, and only a new API token is created each time.
"""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from orchestrator.accounts.members import Member
from orchestrator.accounts.services import create_token
from orchestrator.benchmarks.services import save_definition
from orchestrator.dispatch.demo_team import (
    USER,
    open_demo_team,
    register_ssh_machine,
    register_this_machine,
    store_project,
)


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--server-repository", required=True, help="path of the demo server")
        parser.add_argument(
            "--ssh", metavar="LOGIN@ADDRESS:PORT", help="measure there instead of on this machine"
        )
        parser.add_argument(
            "--authorized-keys", type=Path, help="the authorized_keys file of that host"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        where, keys = options["ssh"], options["authorized_keys"]
        if bool(where) != bool(keys):
            raise CommandError("--ssh requires --authorized-keys, and the reverse")
        with open_demo_team() as owner:
            answer = _seed_team(owner, options["server_repository"], where, keys)
        lines = "\n".join(f"{name}: {value}" for name, value in answer.items())
        self.stdout.write(json.dumps(answer) if options["json"] else lines)


def _seed_team(
    owner: tuple[Member, str | None], path: str, where: str | None, keys: Path | None
) -> dict[str, Any]:
    member, password = owner
    host = (
        register_ssh_machine(member, where, keys)
        if where and keys
        else register_this_machine(member)
    )
    project = store_project(member, slug="hello-server", name="Hello server", path=path)
    source = Path(settings.BASE_DIR) / "agents" / "suites" / "hello" / "benchmark.yaml"
    save_definition(member=member, project=project, slug="hello", source=source.read_text())
    return {
        "team": member.team.slug,
        "user": USER,
        "password": password,
        "token": create_token(member=member, name="demo in the terminal").secret,
        "host": host.name,
        "benchmark": "hello",
    }
