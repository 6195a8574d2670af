"""Measuring a report again: the same benchmark, commits, cases, rounds and hosts."""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from django.conf import settings

from orchestrator.benchmarks.choice import MAX_LENGTH, choose
from orchestrator.benchmarks.matrix import expand
from orchestrator.benchmarks.selectors import read_spec
from orchestrator.core.errors import InvalidRequestError
from orchestrator.reports.report_builder import Report
from orchestrator.reports.report_spec import ReportSpec
from orchestrator.reports.svg import clean
from orchestrator.runs.models import Run
from orchestrator.runs.rerun import load_requested_placements

#: The newest runs whose placements and rounds count.
MAX_RUNS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerun:
    """`commits`: full hashes, the baseline first. `cases`: an expression; empty for all.

    `definition`: the version that was measured, or None if the repository contains it: then each
    commit has its own. `is_newest`: a new run uses this version.
    """

    project: str
    benchmark: str
    commits: tuple[str, ...]
    cases: str
    pairwise: bool
    rounds: int
    placements: tuple[Mapping[str, str], ...]
    definition: int | None
    is_newest: bool


def load_rerun(report: Report) -> Rerun | None:
    """Return how to measure a report again; None if it has no trials of this Pitwall."""
    runs = _load_runs(report)
    if not runs:
        return None
    placements = {
        tuple(sorted(each.items())): each for run in runs for each in load_requested_placements(run)
    }
    alone = runs[0] if len(runs) == 1 else None
    stored = not report.benchmark.repository_path
    newest = report.versions[-1] if report.versions else None
    # The commits of a run begin with its baseline; those of a report with the newest one.
    commits = report.commits if report.run is not None else report.commits[::-1]
    return Rerun(
        project=report.benchmark.project.slug,
        benchmark=report.benchmark.slug,
        commits=tuple(commit.sha for commit in commits),
        cases=_combine_cases(report) if alone is None else alone.cases,
        pairwise=alone is not None and alone.pairwise,
        rounds=max(run.rounds for run in runs),
        placements=tuple(placements.values()),
        definition=newest if stored else None,
        is_newest=not stored or newest == report.definition.version,
    )


def render_script(report: Report, rerun: Rerun, page: str) -> str:
    """Return a shell script that repeats the measurement with the command line.

    `page` is the address of the report.
    """
    return "\n".join(_iterate_script(report, rerun, page)) + "\n"


def _iterate_script(report: Report, rerun: Rerun, page: str) -> Iterator[str]:
    title = clean(report.spec.title)
    yield "#!/bin/sh"
    yield f"# Measures the report “{title}” again."
    yield "# Needs the command line of Pitwall, an API token in PITWALL_TOKEN, and the hosts below."
    yield "# Its arguments are further options of pitwall run, such as --timeout 2h."
    yield "set -eu"
    yield 'cd "$(dirname "$0")"'
    yield "pitwall=${PITWALL:-pitwall}"
    yield f': "${{PITWALL_URL:={settings.BASE_URL}}}"'
    yield "export PITWALL_URL"
    if any(set(each) - {"target"} for each in rerun.placements):
        yield "echo 'Its jobs used several hosts. Use “Measure this again” on its page:' >&2"
        yield f"echo {shlex.quote(page)} >&2"
        yield "exit 1"
        return
    if rerun.definition is not None:
        yield from _check_definition(rerun)
    yield f'"$pitwall" run {_build_options(rerun)} --wait "$@"'
    yield f"echo {shlex.quote(page)}"


def _check_definition(rerun: Rerun) -> Iterator[str]:
    """Yield commands that stop if a run would use another definition."""
    name = shlex.quote(f"{rerun.project}/{rerun.benchmark}")
    file = f"definition-{rerun.definition}.yaml"
    yield f'if ! "$pitwall" export definition {name} | cmp -s - {file}; then'
    yield f"  echo 'The newest definition of {name} differs from {file}. Save that one first.' >&2"
    yield "  exit 1"
    yield "fi"


def _build_options(rerun: Rerun) -> str:
    baseline, *contenders = rerun.commits
    words = ["--project", rerun.project, "--benchmark", rerun.benchmark]
    if contenders:
        words += ["--baseline", baseline]
        words += [word for sha in contenders for word in ("--contender", sha)]
    else:
        words += ["--alone", "--contender", baseline]
    for placement in rerun.placements:
        words += ["--hosts", placement["target"]]
    if rerun.cases:
        words += ["--cases", rerun.cases]
    return shlex.join([*words, "--rounds", str(rerun.rounds)])


def _load_runs(report: Report) -> list[Run]:
    """Return the runs of the report's trials, the newest first."""
    rows = Run.objects.filter(jobs__trials__in=report.trials).distinct().order_by("-created_at")
    return list(rows.prefetch_related("jobs__placements", "jobs__host")[:MAX_RUNS])


def _combine_cases(report: Report) -> str:
    """Return the cases of the report's tables; all if a run cannot select these."""
    expression = _join_expressions(report.spec)
    spec = read_spec(report.definition)
    try:
        choose(spec, expand(spec), expression)
    except InvalidRequestError:
        # The report selects by hosts, commits or sources, which are no properties of a case.
        return ""
    return expression if len(expression) <= MAX_LENGTH else ""


def _join_expressions(spec: ReportSpec) -> str:
    tables = dict.fromkeys(table.cases.strip() for table in spec.tables)
    parts = [spec.cases.strip()]
    if "" not in tables:
        parts.append(" or ".join(f"({each})" for each in tables))
    known = [part for part in parts if part]
    return known[0] if len(known) == 1 else " and ".join(f"({part})" for part in known)
