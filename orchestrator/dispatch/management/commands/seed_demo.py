"""Makes what the demo needs: a team, a user, hardware profiles, this machine, the benchmark.

May be run again: what is there stays, and only a new API token is made each time.
"""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from orchestrator.accounts.services import create_token
from orchestrator.benchmarks.services import save_definition
from orchestrator.dispatch.demo_team import USER, demo_owner, project_at, this_machine


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--server-repository", required=True, help="path of the demo server")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        member, password = demo_owner()
        host = this_machine(member)
        path = options["server_repository"]
        project = project_at(member, slug="hello-server", name="Hello server", path=path)
        source = Path(settings.BASE_DIR) / "agents" / "suites" / "hello" / "benchmark.yaml"
        save_definition(member=member, project=project, slug="hello", source=source.read_text())
        answer = {
            "team": member.team.slug,
            "user": USER,
            "password": password,
            "token": create_token(member=member, name="demo in the terminal").secret,
            "host": host.name,
            "benchmark": "hello",
        }
        lines = "\n".join(f"{name}: {value}" for name, value in answer.items())
        self.stdout.write(json.dumps(answer) if options["json"] else lines)
