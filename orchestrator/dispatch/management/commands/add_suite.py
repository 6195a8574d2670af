"""Adds a suite of the catalogue to the demo's team: definition, reports, reference results.

The suite's files must be in a git repository, which is measured. It may be run again.
"""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from orchestrator.accounts.members import Member
from orchestrator.accounts.services import create_token
from orchestrator.benchmarks.miniature import build_miniature
from orchestrator.benchmarks.models import Benchmark
from orchestrator.benchmarks.report_size import Part, ReportSize, build_report_size
from orchestrator.benchmarks.services import save_definition
from orchestrator.core.errors import PitwallError
from orchestrator.core.progress import Progress, add_quiet, build_progress
from orchestrator.dispatch.demo_team import (
    USER,
    open_demo_team,
    register_this_machine,
    store_project,
)
from orchestrator.reports.pivot_model import FEWEST_VALID
from orchestrator.reports.reference_suites import import_published
from orchestrator.reports.saved_reports import save_suite_reports


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("suite", help="its name below agents/suites")
        parser.add_argument("--repository", required=True, help="path of its git repository")
        parser.add_argument(
            "--size",
            choices=("miniature", "report", "full"),
            default="full",
            help="miniature: short loads, few rounds; report: some hours, with intervals",
        )

        add_quiet(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        folder = Path(settings.BASE_DIR) / "agents" / "suites" / options["suite"]
        if not (folder / "benchmark.yaml").is_file():
            raise CommandError(f"the catalogue has no suite {options['suite']}")
        try:
            with (
                build_progress(options, f"Adding {folder.name}") as show,
                open_demo_team() as owner,
            ):
                answer = _add(owner, folder, options["repository"], show, size=options["size"])
        except PitwallError as error:
            raise CommandError(f"{options['suite']}: {error}") from error
        self.stdout.write(json.dumps(answer))


def _add(
    owner: tuple[Member, str | None],
    folder: Path,
    repository: str,
    show: Progress,
    *,
    size: str,
) -> dict[str, Any]:
    member, password = owner
    host = register_this_machine(member)
    suite = folder.name
    project = store_project(member, slug=suite, name=suite, path=repository)
    chosen = _read_size(folder, size)
    definition = save_definition(member=member, project=project, slug=suite, source=chosen.source)
    return {
        "user": USER,
        "password": password,
        "token": create_token(member=member, name=f"{suite} in the terminal").secret,
        "host": host.name,
        "benchmark": suite,
        "version": definition.version,
        "repeats": chosen.repeats,
        "enough_trials": FEWEST_VALID,
        "parts": [part.model_dump() for part in chosen.parts],
        "reports": _add_reports(member, definition.benchmark, folder, show),
    }


def _read_size(folder: Path, size: str) -> ReportSize:
    """Return the definition in a size, with its runs: one, except for the size of a report."""
    source = (folder / "benchmark.yaml").read_text()
    if size == "report":
        return build_report_size(source, (folder / "report-size.yaml").read_text())
    cases = ""
    if size == "miniature":
        small = build_miniature(source, (folder / "miniature.yaml").read_text())
        source, cases = small.source, small.cases
    return ReportSize(source=source, repeats=1, parts=(Part(cases=cases),))


def _add_reports(member: Member, benchmark: Benchmark, folder: Path, show: Progress) -> list[str]:
    """Save the suite's reports and its reference results; return the names of the reports."""
    if (folder / "published.yaml").is_file():
        import_published(member=member, suite=folder.name, progress=show)
    if not (folder / "report.yaml").is_file():
        return []
    source = (folder / "report.yaml").read_text()
    saved = save_suite_reports(member=member, benchmark=benchmark, source=source)
    return [report.slug for report in saved]
