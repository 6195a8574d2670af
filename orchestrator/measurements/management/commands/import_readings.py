"""Import any number of finished results that were measured elsewhere; see docs/importing.md.

`import_readings FILE --project …`: JSON lines (each a result as in POST /api/v1/results) or CSV,
plain or gzip. If any line is wrong, nothing is stored. Existing results do not change.
"""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from orchestrator.accounts.selectors import load_first_owner
from orchestrator.core.errors import InvalidRequestError, PitwallError
from orchestrator.core.progress import add_quiet, build_progress
from orchestrator.measurements.bulk_import import check_file, import_file


class Command(BaseCommand):
    help = __doc__
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--project", help="slug; for results that name none")
        parser.add_argument("--team", help="slug; required if there are several teams")
        parser.add_argument("--check", action="store_true", help="only report what is wrong")

        add_quiet(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        path, project = options["file"], options["project"]
        try:
            member = load_first_owner(options["team"])
            if options["check"]:
                with build_progress(options, f"Checking {path.name}") as show:
                    checked = check_file(member, path, project, progress=show)
                self.stdout.write(f"{checked.results} results, all valid")
                return
            with build_progress(options, f"Importing {path.name}") as show:
                done = import_file(member=member, path=path, project=project, progress=show)
        except InvalidRequestError as error:
            faults = [f"{where}: {fault}" for where, fault in error.faults]
            raise CommandError("\n".join(faults) or str(error)) from error
        except PitwallError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(
            f"{done.results} results, {done.accepted} new, {done.repeated} already stored"
        )
