"""Writes the reports of a suite as a Markdown page with all provenance.

They are of the commit that a run measured, and include all its runs: results of an earlier run need
not be measured again.
"""

import json
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from orchestrator.accounts.members import Member
from orchestrator.accounts.selectors import load_member
from orchestrator.benchmarks.fields import Scalar, format_axis_value
from orchestrator.benchmarks.matrix import expand
from orchestrator.benchmarks.models import Commit
from orchestrator.benchmarks.selectors import read_spec
from orchestrator.core.errors import PitwallError
from orchestrator.core.progress import Progress, add_quiet, build_progress
from orchestrator.reports.exports import report_markdown
from orchestrator.reports.report_builder import build_report
from orchestrator.reports.saved_reports import load_saved_report, read_report_spec
from orchestrator.runs.models import Run, Trial
from orchestrator.runs.states import TrialState, Validity

_MINIATURE = """\
This was measured in miniature, with short loads and few rounds. It shows that the suite
gives each row and column of the report; its values mean little, and the full result takes the
command below.
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
        parser.add_argument("--full", required=True, help="the command for the full measurement")
        parser.add_argument(
            "--miniature", action="store_true", help="the run has short loads and few rounds"
        )
        parser.add_argument("--out", type=Path, required=True)

        add_quiet(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        run = Run.objects.select_related("definition__benchmark").filter(pk=options["run"]).first()
        if run is None:
            raise CommandError(f"there is no run {options['run']}")
        owner = run.requested_by
        if owner is None:
            raise CommandError(f"the run {run.pk} has no requester; start it with make seeds")
        member = load_member(owner, run.team.slug)
        commit = run.variants.select_related("commit")[0].commit
        coverage = _count_coverage(run, commit)
        preface = _render_preface(coverage, options["full"], miniature=options["miniature"])
        try:
            with build_progress(options, "Writing reports") as show:
                pages = _render_page(member, options["reports"], commit.sha, preface, show)
                text = "\n".join(pages)
        except PitwallError as error:
            raise CommandError(str(error)) from error
        options["out"].parent.mkdir(parents=True, exist_ok=True)
        options["out"].write_text(text)
        self.stdout.write(json.dumps(coverage))


def _render_preface(coverage: dict[str, Any], full: str, *, miniature: bool) -> str:
    notice = _MINIATURE if miniature else _WHOLE
    return f"{notice}\n```bash\n{full}\n```\n\n{_COVERAGE.format(**coverage)}"


def _render_page(
    member: Member, names: list[str], commit: str, preface: str, show: Progress
) -> Iterator[str]:
    for place, name in enumerate(names):
        show(place, len(names), name)
        spec = read_report_spec(load_saved_report(member, name))
        report = build_report(member, spec.model_copy(update={"commit": commit}))
        title, _, rest = report_markdown(report).partition("\n")
        yield title
        if not place:
            yield f"\n{preface}"
        yield rest


def _count_coverage(run: Run, commit: Commit) -> dict[str, Any]:
    """Return how many cases and systems of a commit have values, and why the others have none.

    The systems are the values of the first axis whose values change the definition. A system works
    if it was measured, even if all its trials are invalid; a case has a value from a valid or
    suspect trial.
    """
    spec = read_spec(run.definition)
    axis = next((axis for axis in spec.matrix if axis in spec.options), None)
    working: set[str] = set()
    with_numbers: set[str] = set()
    why: dict[str, str] = {}
    trials = Trial.objects.filter(job__run__definition=run.definition, variant__commit=commit)
    for trial in trials.select_related("case"):
        name = _name_system(axis, trial.case.parameters)
        if trial.state == TrialState.MEASURED:
            working.add(name)
            if trial.validity != Validity.INVALID:
                with_numbers.add(trial.case.key)
        elif trial.message:
            why[name] = trial.message.splitlines()[0]
    cases = expand(spec)
    systems = dict.fromkeys(_name_system(axis, case.parameters) for case in cases)
    return {
        "cases": len(cases),
        "with_numbers": len(with_numbers),
        "systems": len(systems),
        "working": len(working),
        "missing": {name: why.get(name, "not measured") for name in systems if name not in working},
    }


def _name_system(axis: str | None, parameters: Mapping[str, Scalar]) -> str:
    if axis is None:
        return ", ".join(map(format_axis_value, parameters.values()))
    return format_axis_value(parameters[axis])
