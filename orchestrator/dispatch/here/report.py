"""The report of a run on this machine, in the format of comparisons in the API."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from orchestrator.benchmarks.models import Case, Commit
from orchestrator.benchmarks.selectors import StoredSpec
from orchestrator.comparisons.compare import build_report, judge_cases
from orchestrator.comparisons.exclusions import FlaggedTrial
from orchestrator.comparisons.formats import to_dict
from orchestrator.comparisons.mismatches import Mismatches, Names
from orchestrator.comparisons.points import (
    CaseOnHost,
    ComparabilityKey,
    MetricValues,
    PointGroup,
    PointIndex,
)
from orchestrator.comparisons.ranking import rank_cases
from orchestrator.comparisons.reasons import LOOPBACK_NOTE, SHARED_HOST_NOTE, build_notes
from orchestrator.comparisons.report import CaseName, ComparisonReport, HostName
from orchestrator.comparisons.same_builds import IdentifiedBuild, build_same_build_notes
from orchestrator.comparisons.selection import Selection, build_selection
from orchestrator.comparisons.sides import Side
from orchestrator.comparisons.spending import count_analyses
from orchestrator.dispatch.here.reading import MeasuredTrial
from orchestrator.dispatch.here.rows import LocalRows
from orchestrator.loadtools.metrics import choose_deciding_metrics, find_metrics
from orchestrator.measurements.validity_issues import count_validity_issues
from orchestrator.runs.models import Trial, Variant
from orchestrator.stats.alpha_spending import Spending
from orchestrator.stats.summary import summarise

NOT_CARRIED_OUT = MeasuredTrial(failure="not carried out")
#: There is one host in one epoch, and one version of the definition.
_ONE_CONFIGURATION = ComparabilityKey(epoch=0, configuration=0)
_VERSION = 1


def build_local_report(
    rows: LocalRows,
    results: Mapping[str, MeasuredTrial],
    notes: Sequence[str],
    builds: Iterable[IdentifiedBuild],
) -> dict[str, Any]:
    """Build the report; `results` is by trial id. With one commit `contender` is null."""
    if len(rows.variants) == 1:
        return _describe_one_commit(rows, results, notes)
    report = _compare_commits(rows, results, notes, builds)
    return to_dict(report, web_url="", with_latency=False)


def _compare_commits(
    rows: LocalRows,
    results: Mapping[str, MeasuredTrial],
    notes: Sequence[str],
    builds: Iterable[IdentifiedBuild],
) -> ComparisonReport:
    """Compare as a server does, but without a database. The round is the block."""
    baseline, contender = rows.variants
    sides = Side(commit=baseline.commit), Side(commit=contender.commit)
    selection = _select_cases(rows, results, sides)
    spec = StoredSpec(rows.spec)
    spending = Spending(analyses=count_analyses(rows.until))
    spent = {str(index): spending for index in range(len(selection.cases))}
    judged = judge_cases(selection, Mismatches(), (spec, spec), spent, {})
    trial_s = {trial.case.pk: trial.expected_s for trial in rows.trials}
    cases = rank_cases(selection, judged, trial_s)
    shared = (SHARED_HOST_NOTE,) if rows.job.shared_hosts else ()
    same_builds = build_same_build_notes(builds, baseline.commit.pk, contender.commit.pk)
    compared = build_notes(
        selection,
        cases,
        (),
        same_builds,
        judged.sensitivity,
        has_steps=rows.spec.has_build_steps,
    )
    limits = (*notes, *compared, LOOPBACK_NOTE, *shared)
    return build_report(rows.job.run.definition.benchmark, sides, judged, cases, limits)


def _select_cases(
    rows: LocalRows, results: Mapping[str, MeasuredTrial], sides: tuple[Side, Side]
) -> Selection:
    baseline, contender = rows.variants
    return build_selection(
        (_index_points(rows, results, baseline), _index_points(rows, results, contender)),
        _collect_names(rows),
        sides,
        [_flag_trial(rows, *each) for each in _iterate_trials(rows, results)],
        version=_VERSION,
    )


def _index_points(
    rows: LocalRows, results: Mapping[str, MeasuredTrial], variant: Variant
) -> PointIndex:
    """Return the values of the trials of one commit that count."""
    points: PointIndex = {}
    for trial, measured in _iterate_trials(rows, results):
        if trial.variant is not variant or not measured.counts:
            continue
        place = _locate_case(rows, trial.case)
        groups = points.setdefault(place, {})
        group = groups.setdefault(_ONE_CONFIGURATION, PointGroup(place, _ONE_CONFIGURATION, at=0.0))
        for metric, value in measured.readings.items():
            of_metric = group.metrics.setdefault(metric, MetricValues([], [], [], []))
            of_metric.values.append(value)
            of_metric.blocks.append(trial.round)
            of_metric.places.append(trial.position + 1)
            of_metric.builds.append(measured.build)
    return points


def _flag_trial(rows: LocalRows, trial: Trial, measured: MeasuredTrial) -> FlaggedTrial:
    return FlaggedTrial(
        commit=trial.variant.commit.pk,
        place=_locate_case(rows, trial.case),
        block=trial.round,
        outcome=measured.outcome,
        version=_VERSION,
        reasons=measured.reasons,
        order=trial.position + 1,
        values=measured.readings,
    )


def _collect_names(rows: LocalRows) -> Names:
    host = rows.job.host
    assert host is not None
    return Names(
        cases={
            case.pk: CaseName(
                pk=case.pk, key=case.key, label=case.label, parameters=case.parameters
            )
            for case in rows.cases
        },
        hosts={str(host.pk): HostName(pk=host.pk, name=host.name, profile="")},
    )


def _locate_case(rows: LocalRows, case: Case) -> CaseOnHost:
    assert rows.job.host is not None
    return CaseOnHost(str(rows.job.host.pk), case.pk)


def _iterate_trials(
    rows: LocalRows, results: Mapping[str, MeasuredTrial]
) -> Iterator[tuple[Trial, MeasuredTrial]]:
    for trial in rows.trials:
        yield trial, results.get(str(trial.pk), NOT_CARRIED_OUT)


def _describe_one_commit(
    rows: LocalRows, results: Mapping[str, MeasuredTrial], notes: Sequence[str]
) -> dict[str, Any]:
    commit = rows.variants[0].commit
    trials = list(_iterate_trials(rows, results))
    valid = sum(measured.counts for _, measured in trials)
    return {
        "benchmark": rows.job.run.definition.benchmark.slug,
        "baseline": _describe_commit(commit),
        "contender": None,
        "verdict": None,
        "summary": f"{commit.short_sha}, measured alone: {valid} valid trials.",
        "notes": [*notes, *_describe_validity([each for _, each in trials]), LOOPBACK_NOTE],
        "cases": [
            _describe_case(rows, case, [each for trial, each in trials if trial.case is case])
            for case in rows.cases
        ],
    }


def _describe_case(rows: LocalRows, case: Case, trials: Sequence[MeasuredTrial]) -> dict[str, Any]:
    assert rows.job.host is not None
    return {
        "case": {"key": case.key, "label": case.label, "parameters": case.parameters},
        "host": rows.job.host.name,
        "metrics": list(_summarise_metrics(rows, case, [each for each in trials if each.counts])),
    }


def _summarise_metrics(
    rows: LocalRows, case: Case, trials: Sequence[MeasuredTrial]
) -> Iterator[dict[str, Any]]:
    measured = {key for each in trials for key in each.readings}
    own = StoredSpec(rows.spec).list_case_metrics(case.parameters)
    primary = choose_deciding_metrics(own, measured)
    for info in find_metrics(measured):
        summary = summarise([each.readings.get(info.key) for each in trials])
        if summary is None or info.informational:
            continue
        yield {
            "metric": info.key,
            "title": info.title,
            "unit": info.unit,
            "better": info.better,
            "primary": info.key in primary,
            "value": summary.mean,
            "interval": None if summary.low is None else [summary.low, summary.high],
            "trials": summary.n,
        }


def _describe_validity(trials: Sequence[MeasuredTrial]) -> Iterator[str]:
    """Yield each validity issue once, with the number of trials that have it."""
    for issue in count_validity_issues([each.reasons for each in trials if each.reasons]):
        yield f"{issue.trials} of {len(trials)} trials: {issue.title}"


def _describe_commit(commit: Commit) -> dict[str, str]:
    return {"commit": commit.sha, "short": commit.short_sha, "subject": commit.subject}
