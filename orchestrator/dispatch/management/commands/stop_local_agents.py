"""Stops every agent of this installation on this machine. Needs no database."""

import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from orchestrator.core.errors import HostError
from orchestrator.dispatch.agent import Agent
from orchestrator.transport.local import LocalTransport


class Command(BaseCommand):
    help = __doc__
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        for work_dir in sorted((Path(settings.DATA_DIR) / "hosts").glob("*")):
            if not (work_dir / "agents").is_dir():
                continue
            try:
                with LocalTransport(work_dir) as transport:
                    agent = Agent(transport, python=sys.executable)
                    agent.stop_all()
            except HostError as error:
                self.stderr.write(f"{work_dir}: {error}")
