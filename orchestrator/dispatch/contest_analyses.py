"""Interim analyses of contests: each value against the baseline, or the order of the first places.

A block is a round of the contest. As in other interim analyses, each is stored and never repeated.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from orchestrator.benchmarks.contests import ContestKey, get_contest_key
from orchestrator.benchmarks.fields import Scalar, format_axis_value
from orchestrator.benchmarks.selectors import get_stored_spec
from orchestrator.dispatch.case_data import CaseBlocks
from orchestrator.dispatch.interim import (
    ENDED,
    BlockTrial,
    judge_cases,
    list_cases,
    load_comparison_spec,
    select_due_cases,
)
from orchestrator.loadtools.metrics import Metric, choose_deciding_metrics, find_metrics
from orchestrator.measurements.readings import load_values
from orchestrator.runs import claims
from orchestrator.runs.case_status import load_latest_analyses
from orchestrator.runs.models import InterimAnalysis, Job, Trial, Until
from orchestrator.runs.states import TrialState
from orchestrator.runs.trial_order import number_build
from orchestrator.stats.comparison import Verdict
from orchestrator.stats.contests import ContestEntry, ContestTrial
from orchestrator.stats.first_places import DEFAULT_PLACES, PlacesDecision, decide_places
from orchestrator.stats.interim import is_analysis_due


@dataclass(slots=True, kw_only=True)
class Contest:
    """The cases of a contest in a job, with their values of its axis, and their trials by round.

    `parameters` are those of one of the cases.
    """

    parameters: Mapping[str, Scalar]
    values: dict[int, str] = field(default_factory=dict)
    rounds: defaultdict[int, dict[int, BlockTrial]] = field(
        default_factory=lambda: defaultdict(dict)
    )

    def find_case(self, value: str | None) -> int | None:
        return next((case for case, each in self.values.items() if each == value), None)

    def goes_on(self, case: int) -> bool:
        """Return whether more trials of the case are planned."""
        trials = (trials.get(case) for trials in self.rounds.values())
        return any(trial is not None and trial.state == TrialState.PLANNED for trial in trials)

    def list_open_cases(self, decided: Collection[int]) -> list[int]:
        """Return the cases that are not decided, without those that were given up.

        After the last round, these are all that have a trial that counts.
        """
        undecided = [case for case in self.values if case not in decided]
        counted = {
            case for trials in self.rounds.values() for case in trials if trials[case].counts
        }
        return list(filter(self.goes_on, undecided)) or [
            case for case in undecided if case in counted
        ]

    def list_rounds(self, cases: Sequence[int]) -> list[int]:
        """Return the rounds that have ended for all of these cases; a skipped trial has no end."""
        ended = []
        for number, trials in sorted(self.rounds.items()):
            states = {trials[case].state for case in cases if case in trials}
            if TrialState.PLANNED not in states and states & ENDED:
                ended.append(number)
        return ended


def analyse_contests(job: Job) -> None:
    """Analyse the contests of a run that compares them, if they are due; else do nothing."""
    if job.run.until == Until.COMPARED:
        _compare_with_baselines(job)
    elif job.run.until == Until.RANKED:
        _rank_contests(job)


def load_contests(job: Job) -> list[Contest]:
    """Return the contests of a job, without the cases that its hosts cannot measure."""
    axis = get_stored_spec(job.run.definition).spec.contest
    assert axis is not None, "a run of contests has a definition with one"
    rows = (
        Trial.objects.filter(job=job)
        .exclude(state=TrialState.UNSUPPORTED)
        .order_by("position")
        .values_list(
            "case_id", "case__parameters", "round", "position", "pk", "host", "state", "validity"
        )
    )
    contests: dict[ContestKey, Contest] = {}
    for case, parameters, number, position, pk, host, state, validity in rows:
        key = get_contest_key(axis, parameters)
        contest = contests.setdefault(key, Contest(parameters=parameters))
        contest.values[case] = format_axis_value(parameters[axis])
        contest.rounds[number][case] = BlockTrial(position, pk, host, state, validity)
    return list(contests.values())


def _compare_with_baselines(job: Job) -> None:
    """Analyse each value as a contender of the baseline's value; no case ends before the baseline.

    A baseline ends when nothing is left to compare with it.
    """
    definition = get_stored_spec(job.run.definition).spec
    baseline = format_axis_value(definition.baseline[definition.contest or ""])
    contests = [(each, each.find_case(baseline)) for each in load_contests(job)]
    blocks = {
        case: _pair_with_baseline(job, contest, base, case)
        for contest, base in contests
        for case in contest.values
        if base is not None and case != base
    }
    spec = replace(load_comparison_spec(job), contenders={1: ""})
    bases = {base for _, base in contests}
    # Other jobs of the run have as many values for each baseline.
    cells = sum(spec.count_cells(case) for case in list_cases(job) if case not in bases)
    due = select_due_cases(job, blocks)
    analyses = judge_cases(job, due, spec, cells=cells) if due else []
    ended = _load_ended_cases(job) | {each.case_id for each in analyses if each.decided}
    for contest, base in contests:
        others = [case for case in contest.values if case != base]
        if base is not None and base not in ended and _are_compared(contest, others, ended):
            analyses.append(_end_baseline(job, contest, base))
    if analyses:
        claims.store_analyses(job, analyses)


def _pair_with_baseline(job: Job, contest: Contest, base: int, case: int) -> CaseBlocks:
    """Return the rounds of a case as blocks: position 0 is the baseline's trial."""
    blocks = CaseBlocks(clean=[], builds=[])
    for number, trials in sorted(contest.rounds.items()):
        pair = {at: trials[each] for at, each in enumerate((base, case)) if each in trials}
        states = {trial.state for trial in pair.values()}
        if TrialState.PLANNED in states:
            blocks.goes_on = True
            continue
        if len(pair) == 2 and all(trial.counts for trial in pair.values()) and _are_together(pair):
            in_order = sorted(pair.items(), key=lambda each: each[1].position)
            blocks.clean.append({at: trial.trial for at, trial in in_order})
            blocks.builds.append(number_build(number, job.run.builds))
        elif states & ENDED:
            blocks.excluded += 1
        blocks.add_pairs({at: each.counts for at, each in pair.items() if each.state in ENDED})
    return blocks


def _are_together(pair: Mapping[int, BlockTrial]) -> bool:
    return len({trial.host for trial in pair.values()}) == 1


def _load_ended_cases(job: Job) -> set[int]:
    latest = load_latest_analyses([job.pk])
    return {case for (_, case), analysis in latest.items() if analysis.decided}


def _are_compared(contest: Contest, others: Sequence[int], ended: set[int]) -> bool:
    return all(case in ended or not contest.goes_on(case) for case in others)


def _end_baseline(job: Job, contest: Contest, base: int) -> InterimAnalysis:
    return InterimAnalysis(
        job=job,
        case_id=base,
        blocks=len(contest.list_rounds([base])),
        excluded=0,
        decided=True,
        futile=False,
        verdict=Verdict.EQUIVALENT,
        needed_blocks=None,
        p_values=[],
        message="the other values are compared with it",
    )


def _rank_contests(job: Job) -> None:
    latest = {case: each for (_, case), each in load_latest_analyses([job.pk]).items()}
    analyses: list[InterimAnalysis] = []
    for contest in load_contests(job):
        decided = {case for case, each in latest.items() if each.decided}
        open_cases = contest.list_open_cases(decided)
        analysed_at = max((latest[case].blocks for case in open_cases if case in latest), default=0)
        goes_on = any(map(contest.goes_on, open_cases))
        rounds = contest.list_rounds(open_cases)
        if open_cases and is_analysis_due(len(rounds), analysed_at, last=not goes_on):
            analyses += _rank_contest(job, contest, open_cases, rounds)
    if analyses:
        claims.store_analyses(job, analyses)


def _rank_contest(
    job: Job, contest: Contest, open_cases: Sequence[int], rounds: Sequence[int]
) -> list[InterimAnalysis]:
    metric, entries = _load_entries(job, contest, rounds)
    if metric is None:
        return []
    places = job.run.places or DEFAULT_PLACES
    decision = decide_places(entries, open_cases, places=places, falling=metric.better == "higher")
    text = _describe_places(contest, decision, places, metric)
    return [
        InterimAnalysis(
            job=job,
            case_id=case,
            blocks=len(rounds),
            excluded=len(rounds) - len(entries[case].trials),
            decided=decision.decided or case in decision.out,
            futile=False,
            verdict="",
            needed_blocks=None,
            p_values=[],
            message=text[case],
        )
        for case in open_cases
    ]


def _load_entries(
    job: Job, contest: Contest, rounds: Sequence[int]
) -> tuple[Metric | None, dict[int, ContestEntry]]:
    """Return the first primary metric, and the trials of each case that count."""
    counted = {
        (number, case): trial
        for number in rounds
        for case, trial in contest.rounds[number].items()
        if trial.counts
    }
    values = load_values([trial.trial for trial in counted.values()])
    primary = get_stored_spec(job.run.definition).list_case_metrics(contest.parameters)
    measured = {key for each in values.values() for key in each}
    metric = next(iter(find_metrics(choose_deciding_metrics(primary, measured))), None)
    trials: dict[int, dict[int, ContestTrial]] = {case: {} for case in contest.values}
    blocks: dict[object, int] = {}
    for (number, case), trial in counted.items():
        value = values.get(trial.trial, {}).get(metric.key) if metric else None
        if value is not None:
            # After a retry, a round may be on two hosts.
            block = blocks.setdefault((number, trial.host), len(blocks) + 1)
            build = number_build(number, job.run.builds)
            trials[case][block] = ContestTrial(value, trial.position + 1, build)
    return metric, {case: ContestEntry(key=0, trials=each) for case, each in trials.items()}


def _describe_places(
    contest: Contest, decision: PlacesDecision[int], places: int, metric: Metric
) -> dict[int, str]:
    """Return the status line of each open case."""
    first = decision.order[:places]
    names = ", ".join(contest.values[case] for case in first)
    title = f"{metric.title[0].lower()}{metric.title[1:]}"
    text = (
        f"the order by {title} is {names}"
        if decision.decided
        else f"not decided: the order of the first {len(first)} by {title}"
    )
    behind = f"behind the first {places} by {title}"
    return {case: behind if case in decision.out else text for case in decision.order}
