"""The button that measures a report again: the form of a run, filled in."""

from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from orchestrator.reports.report_builder import Report
from orchestrator.reports.rerun import load_rerun
from orchestrator.web.runs.placements import build_placements_form_data

#: The form of a run has a baseline and two contenders.
MAX_COMMITS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureAgain:
    """The address of the form; `note` says how the new run would differ from the report."""

    address: str
    note: str


def build_measure_again(report: Report) -> MeasureAgain | None:
    """Return None if the report has no trials, or more commits than one run can have."""
    rerun = load_rerun(report)
    if rerun is None or len(rerun.commits) > MAX_COMMITS:
        return None
    commits = dict(zip(("baseline", "contender", "second_contender"), rerun.commits, strict=False))
    data = {
        "benchmark": f"{rerun.project}/{rerun.benchmark}",
        **commits,
        "cases": rerun.cases,
        "pairwise": "on" if rerun.pairwise else "",
        "rounds": rerun.rounds,
        **build_placements_form_data(rerun.placements),
    }
    query = urlencode({name: value for name, value in data.items() if value}, doseq=True)
    note = "" if rerun.is_newest else "A new run uses the newest version of the definition."
    return MeasureAgain(address=f"{reverse('run-new')}?{query}", note=note)
