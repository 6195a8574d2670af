"""Writes the reports of a suite as a Markdown page with all provenance.

They are of the newest commit that the last run measured, and include all its runs: results of an
earlier run need not be measured again.
"""

import json
import re
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from orchestrator.accounts.members import Member
from orchestrator.accounts.selectors import load_member
from orchestrator.benchmarks.fields import Scalar, format_axis_value
from orchestrator.benchmarks.matrix import expand
from orchestrator.benchmarks.models import Commit
from orchestrator.benchmarks.selectors import read_spec
from orchestrator.core.errors import PitwallError
from orchestrator.core.progress import Progress, add_quiet, build_progress
from orchestrator.reports.charts import Chart
from orchestrator.reports.claim_exports import render_conclusions
from orchestrator.reports.exports import report_markdown
from orchestrator.reports.measured_tables import keep_measured_parts
from orchestrator.reports.pictures import take_first_picture
from orchestrator.reports.report_builder import Report, build_report
from orchestrator.reports.saved_reports import load_saved_report, read_report_spec
from orchestrator.runs.models import Run, Trial
from orchestrator.runs.states import TrialState, Validity

_SIZES = {
    "miniature": """\
This was measured in miniature, with short loads and few rounds. It shows that the suite
gives each row and column of the report; its values mean little. The command below measures for
hours, and gives intervals.
""",
    "report": """\
This was measured in the size of a report: several runs, so that each number has an interval, with
shorter loads than in the original. The command below repeats it.
""",
    "full": "This was measured in full, by the command below.\n",
}
_COVERAGE = (
    "Here {working} of {systems} systems work, and {with_numbers} of {cases} cases have numbers."
)
_HEADING = re.compile(r"^#+ ", re.MULTILINE)


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("runs", nargs="+", type=UUID)
        parser.add_argument("--reports", nargs="+", required=True, help="names of saved reports")
        parser.add_argument("--command", required=True, help="the command that measures again")
        parser.add_argument("--size", choices=tuple(_SIZES), required=True)
        parser.add_argument("--out", type=Path, required=True)

        add_quiet(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        runs = Run.objects.select_related("definition__benchmark", "team").in_bulk(options["runs"])
        if missing := [pk for pk in options["runs"] if pk not in runs]:
            raise CommandError(f"there is no run {missing[0]}")
        run = runs[options["runs"][-1]]
        owner = run.requested_by
        if owner is None:
            raise CommandError(f"the run {run.pk} has no requester; start it with make seeds")
        member = load_member(owner, run.team.slug)
        # The newest commit is the last variant.
        commit = run.variants.select_related("commit").order_by("-position")[0].commit
        coverage = _count_coverage(run, commit, selected=options["size"] == "report")
        preface = _render_preface(coverage, options["command"], options["size"])
        try:
            with build_progress(options, "Writing reports") as show:
                options["out"].parent.mkdir(parents=True, exist_ok=True)
                reports = _build_reports(member, options["reports"], commit.sha, show)
                if options["size"] == "report":
                    reports = map(keep_measured_parts, reports)
                text = "\n".join(_render_page(reports, options["reports"], preface, options["out"]))
        except PitwallError as error:
            raise CommandError(str(error)) from error
        options["out"].write_text(text)
        self.stdout.write(json.dumps(coverage))


def _render_preface(coverage: dict[str, Any], command: str, size: str) -> str:
    return f"{_SIZES[size]}\n```bash\n{command}\n```\n\n{_COVERAGE.format(**coverage)}"


def _build_reports(
    member: Member, names: list[str], commit: str, show: Progress
) -> Iterator[Report]:
    for place, name in enumerate(names):
        show(place, len(names), name)
        spec = read_report_spec(load_saved_report(member, name))
        # A report of all commits compares them.
        wanted = spec.commit if spec.commit == "all" else commit
        yield build_report(member, spec.model_copy(update={"commit": wanted}))


def _render_page(
    reports: Iterable[Report], names: list[str], preface: str, out: Path
) -> Iterator[str]:
    """Yield the text of each report, the preface in the first one.

    Charts are written next to `out`. Paths of this machine are relative to its data folder.
    """
    for place, (report, name) in enumerate(zip(reports, names, strict=True)):
        address = partial(_write_chart, out.with_suffix(""), name)
        text = report_markdown(report, address=address).replace(f"{settings.DATA_DIR}/", "")
        parts = _render_parts(text, render_conclusions(report), "" if place else preface)
        part = "\n".join(parts)
        # A page has one title.
        yield _HEADING.sub(r"#\g<0>", part) if place else part


def _render_parts(text: str, conclusions: str, preface: str) -> Iterator[str]:
    """Yield a picture, the conclusions, how it was measured, and the tables of a report."""
    title, _, rest = text.partition("\n")
    picture, rest = take_first_picture(rest)
    yield title
    if picture:
        yield f"\n{picture}"
    if conclusions:
        yield f"\n## Conclusions\n\n{conclusions}"
    if preface:
        yield f"\n## This measurement\n\n{preface}"
    yield rest


def _write_chart(folder: Path, report: str, chart: Chart) -> str:
    """Write the picture of a chart; return its address for a page next to the folder."""
    folder.mkdir(exist_ok=True)
    name = f"{report}-{chart.file_name}"
    (folder / name).write_text(chart.render_file())
    return f"{folder.name}/{name}"


def _count_coverage(run: Run, commit: Commit, *, selected: bool) -> dict[str, Any]:
    """Return how many cases and systems of a commit have values, and why the others have none.

    The systems are the values of the first axis whose values change the definition. A system works
    if it was measured, even if all its trials are invalid; a case has a value from a valid or
    suspect trial. `selected`: only the cases of the runs count.
    """
    spec = read_spec(run.definition)
    axis = next((axis for axis in spec.matrix if axis in spec.options), None)
    working: set[str] = set()
    with_numbers: set[str] = set()
    tried: set[str] = set()
    why: dict[str, str] = {}
    trials = Trial.objects.filter(job__run__definition=run.definition, variant__commit=commit)
    for trial in trials.select_related("case"):
        name = _name_system(axis, trial.case.parameters)
        tried.add(trial.case.key)
        if trial.state == TrialState.MEASURED:
            working.add(name)
            if trial.validity != Validity.INVALID:
                with_numbers.add(trial.case.key)
        elif trial.message:
            why[name] = trial.message.splitlines()[0]
    cases = [case for case in expand(spec) if not selected or case.key in tried]
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
