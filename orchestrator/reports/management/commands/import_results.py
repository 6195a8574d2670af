"""Imports reference results of other sources: shown next to measurements, but kept separate.

`import_results FILE --format … --source …`, or `import_results --published` for those in the suites
of the catalogue.
"""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from orchestrator.accounts.members import Member
from orchestrator.accounts.selectors import load_first_owner
from orchestrator.core.errors import PitwallError
from orchestrator.core.progress import add_quiet, build_progress
from orchestrator.importers.document import parse_instant
from orchestrator.importers.registry import FORMATS
from orchestrator.reports.reference_import import NewImport, ReferenceImport, import_results
from orchestrator.reports.reference_suites import import_published, list_reference_suites


class Command(BaseCommand):
    help = __doc__
    #: The checks load every page and endpoint, which takes longer than an import.
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", nargs="?", type=Path)
        parser.add_argument("--format", choices=list(FORMATS), default="csv")
        parser.add_argument("--source", default="", help="name in Pitwall; default: the file name")
        parser.add_argument("--origin", default="", help="where it is from: an address or a text")
        parser.add_argument("--team", help="slug; required if there are several teams")
        parser.add_argument("--suite", default="", help="default if the file names none")
        parser.add_argument("--profile", default="", help="the machine, if the file names none")
        parser.add_argument("--commit", default="", help="default if the file names none")
        parser.add_argument("--measured-at", default="", help="default if the file has no time")
        parser.add_argument(
            "--unknown", type=float, action="append", default=[], metavar="NUMBER",
            help="a number that means unknown, such as -1",
        )  # fmt: skip
        parser.add_argument(
            "--published",
            nargs="?",
            const="all",
            metavar="SUITE",
            help="the results in a suite, or in all: " + ", ".join(list_reference_suites()),
        )

        add_quiet(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            member = load_first_owner(options["team"])
            if options["published"]:
                self._import_published(member, options)
            else:
                new = _build_import(options)
                with build_progress(options, f"Importing {new.name}") as show:
                    done = import_results(member=member, new=new, progress=show)
                self._print_import(done)
        except PitwallError as error:
            raise CommandError(str(error)) from error

    def _import_published(self, member: Member, options: dict[str, Any]) -> None:
        choice = options["published"]
        for suite in list_reference_suites() if choice == "all" else [choice]:
            with build_progress(options, f"Importing {suite}") as show:
                done = import_published(member=member, suite=suite, progress=show)
            self._print_import(done)

    def _print_import(self, done: ReferenceImport) -> None:
        self.stdout.write(
            f"{done.source.name}: {done.rows} values, {done.unknown} of them unknown; "
            f"{done.added} added, {done.changed} changed, {done.unchanged} unchanged"
        )


def _build_import(options: dict[str, Any]) -> NewImport:
    path = options["file"]
    if path is None:
        raise CommandError("name a file, or --published")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}") from error
    moment = parse_instant(options["measured_at"]) if options["measured_at"] else None
    if options["measured_at"] and moment is None:
        raise CommandError("--measured-at: expected a date and time such as 2026-01-31T12:00:00Z")
    return NewImport(
        name=options["source"] or path.name,
        format=options["format"],
        content=content,
        origin=options["origin"],
        suite=options["suite"],
        environment=options["profile"],
        commit=options["commit"],
        measured_at=moment,
        unknown=frozenset(options["unknown"]),
    )
