"""Takes in finished results that were measured elsewhere, any number of them; docs/importing.md.

`import_readings FILE --project …`: JSON lines (each a result as POST /api/v1/results takes it) or
CSV, plain or gzip. Nothing is stored where a line is wrong; what is there already stays as it is.
"""

import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from orchestrator.accounts.selectors import first_admin
from orchestrator.core.errors import InvalidRequestError, PitwallError
from orchestrator.results.recording.bulk import check_file, import_file


class Command(BaseCommand):
    help = __doc__
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--project", help="slug; of results that name none")
        parser.add_argument("--team", help="slug; needed where there are several teams")
        parser.add_argument("--check", action="store_true", help="only say what is wrong")

    def handle(self, *args: Any, **options: Any) -> None:
        path, project = options["file"], options["project"]
        began = time.monotonic()
        try:
            member = first_admin(options["team"])
            if options["check"]:
                self.stdout.write(f"{check_file(member, path, project)} results, none is wrong")
                return
            done = import_file(
                member=member, path=path, project=project, progress=self._told_of(began)
            )
        except InvalidRequestError as error:
            faults = [f"{where}: {fault}" for where, fault in error.faults]
            raise CommandError("\n".join(faults) or str(error)) from error
        except PitwallError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(
            f"{done.results} results, {done.accepted} new, {done.repeated} there before"
        )

    def _told_of(self, began: float) -> Any:
        def show(done: int) -> None:
            seconds = max(time.monotonic() - began, 1e-9)
            self.stdout.write(f"stored {done} ({done / seconds:,.0f} a second)")

        return show
