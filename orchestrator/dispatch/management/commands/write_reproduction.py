"""Writes the reports of a suite, of one run of it, as a page in Markdown with all provenance."""

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from orchestrator.accounts.members import Member
from orchestrator.accounts.selectors import member_for_user
from orchestrator.benchmarks.fields import shown_value
from orchestrator.benchmarks.selectors import spec_of
from orchestrator.core.errors import PitwallError
from orchestrator.results.pivots import report_of
from orchestrator.results.report_exports import report_markdown
from orchestrator.results.saved_reports import saved_report_for, spec_of_report
from orchestrator.runs.models import Run, Trial
from orchestrator.runs.states import TrialState, Validity

_MINIATURE = """\
This was measured in miniature, with short loads and few rounds{chosen}. It shows that the suite
gives each row and column of the report; its figures say little, and the whole takes the command
below.
"""
_COVERAGE = (
    "Here {working} of {systems} systems work, and {with_numbers} of {cases} cases have numbers."
)
_WHOLE = "This was measured in full, by the command below.\n"


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", type=UUID)
        parser.add_argument("--reports", nargs="+", required=True, help="names of saved reports")
        parser.add_argument("--full", required=True, help="the command that measures all of it")
        parser.add_argument("--miniature", action="store_true", help="this is not all of it")
        parser.add_argument("--out", type=Path, required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        run = Run.objects.select_related("definition__benchmark").filter(pk=options["run"]).first()
        if run is None:
            raise CommandError(f"there is no run {options['run']}")
        owner = run.requested_by
        if owner is None:
            raise CommandError(f"nobody asked for the run {run.pk}; start it with make seeds")
        member = member_for_user(owner, run.team.slug)
        coverage = _coverage(run)
        preface = _preface(run, coverage, options["full"], miniature=options["miniature"])
        try:
            text = "\n".join(_page(member, run, options["reports"], preface))
        except PitwallError as error:
            raise CommandError(str(error)) from error
        options["out"].parent.mkdir(parents=True, exist_ok=True)
        options["out"].write_text(text)
        self.stdout.write(json.dumps(coverage))


def _preface(run: Run, coverage: dict[str, Any], full: str, *, miniature: bool) -> str:
    chosen = f", only the cases where `{run.cases}`" if run.cases else ""
    notice = _MINIATURE.format(chosen=chosen) if miniature else _WHOLE
    return f"{notice}\n```bash\n{full}\n```\n\n{_COVERAGE.format(**coverage)}"


def _page(member: Member, run: Run, names: list[str], preface: str) -> Iterator[str]:
    for place, name in enumerate(names):
        spec = spec_of_report(saved_report_for(member, name))
        title, _, rest = report_markdown(report_of(member, spec, run=run)).partition("\n")
        yield title
        if not place:
            yield f"\n{preface}"
        yield rest


def _coverage(run: Run) -> dict[str, Any]:
    """How many cases and systems the run has a number of, and why the others have none.

    The systems are the values of the first axis whose values change the definition. One works that
    was measured, even if no trial is to be believed; a case has a number from one that is.
    """
    spec = spec_of(run.definition)
    axis = next((axis for axis in spec.matrix if axis in spec.options), None)
    trials = Trial.objects.filter(job__run=run).select_related("case")
    works: dict[str, bool] = {}
    cases: dict[str, bool] = {}
    why: dict[str, str] = {}
    for trial in trials:
        measured = trial.state == TrialState.MEASURED
        name = trial.case.label if axis is None else shown_value(trial.case.parameters[axis])
        works[name] = works.get(name, False) or measured
        counts = measured and trial.validity != Validity.INVALID
        cases[trial.case.label] = cases.get(trial.case.label, False) or counts
        if trial.message:
            why.setdefault(name, trial.message.splitlines()[0])
    return {
        "cases": len(cases),
        "with_numbers": sum(cases.values()),
        "systems": len(works),
        "working": sum(works.values()),
        "missing": {
            name: why.get(name, "") for name, works_here in works.items() if not works_here
        },
    }
