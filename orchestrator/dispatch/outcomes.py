"""Outcomes of a job: which cases were measured, skipped after failures, or unsupported."""

from collections.abc import Collection, Iterable, Iterator

from cli.pitwall.units import format_items
from orchestrator.benchmarks.models import Case
from orchestrator.dispatch import intake
from orchestrator.dispatch.plan import FailedTrial, find_abandoned_cases
from orchestrator.measurements.validity_issues import count_validity_issues
from orchestrator.runs import claims
from orchestrator.runs.budgets import SPENT
from orchestrator.runs.cancelling import CANCELLED, load_cancel_reasons
from orchestrator.runs.case_status import CaseStatus, load_case_statuses
from orchestrator.runs.models import Job, Until
from orchestrator.runs.states import COUNTED_VALIDITIES, JobState, TrialState, Validity

#: The limit of a case's reason in the message of a job with several cases.
MAX_REASON = 400
#: The most reasons of invalid trials in the message of a job without usable data.
MAX_ISSUES = 5


def abandon_cases(job: Job) -> None:
    """Skip the rest of the cases that would only fail again."""
    for case, reason in find_abandoned_cases(intake.load_failed_trials(job)).items():
        claims.skip_case(job, case, reason)


def derive_outcome(job: Job) -> tuple[JobState, str]:
    """Return the state and the message of a job that has no trials left.

    It failed if no case that its hosts could measure has a value. It was cancelled if all of these
    cases were. Otherwise it has no usable data if no trial is valid or suspect.
    """
    trials = intake.load_failed_trials(job)
    given_up = find_abandoned_cases(trials)
    failed = _find_failed_cases(job, trials, given_up)
    unsupported = _find_unsupported_cases(job)
    cancelled = {
        case: why.removeprefix(CANCELLED).strip() for case, why in load_cancel_reasons(job).items()
    }
    cases = Case.objects.filter(trials__job=job).distinct().in_bulk()
    supported = set(cases) - set(unsupported)
    parts = [
        *_describe_decided_cases(job, {**failed, **given_up, **cancelled}),
        *_format_cases_by_reason("skipped after failures", given_up, cases),
        *_format_cases_by_reason("failed", failed, cases),
        *_format_cases_by_reason("cancelled", cancelled, cases),
        *_format_cases_by_reason("unsupported", unsupported, cases),
    ]
    message = "\n".join(parts)
    without = {**failed, **given_up}
    if supported and supported <= set(cancelled):
        return JobState.CANCELLED, message
    if not supported or not supported <= {*without, *cancelled}:
        if not cases or job.trials.filter(validity__in=COUNTED_VALIDITIES).exists():
            return JobState.FINISHED, message
        return JobState.NO_DATA, "\n".join([*_describe_invalid_trials(job), *parts])
    (reason, *_) = without.values()
    return JobState.FAILED, reason if len(cases) == 1 else message


def _describe_invalid_trials(job: Job) -> Iterator[str]:
    """Yield why all trials of a job are invalid; nothing if it has no invalid trial."""
    invalid = job.trials.filter(validity=Validity.INVALID).values_list("reasons", flat=True)
    if not invalid:
        return
    issues = count_validity_issues(invalid)
    why = ", ".join(
        f"{each.title} ({format_items(each.trials, 'trial')})" for each in issues[:MAX_ISSUES]
    )
    more = f" and {len(issues) - MAX_ISSUES} more reasons" if len(issues) > MAX_ISSUES else ""
    count = len(invalid)
    which = "the only trial is" if count == 1 else f"all {count} trials are"
    yield f"no usable data: {which} invalid: {why}{more}"


def _describe_decided_cases(job: Job, without: Collection[int]) -> list[str]:
    """Return messages about the cases of a job that continues until its cases are decided."""
    skipped = job.trials.filter(state=TrialState.SKIPPED, message=SPENT)
    spent = "budget spent: some rounds were skipped"
    parts = [spent] if job.run.budget_s is not None and skipped.exists() else []
    if job.run.until == Until.ROUNDS:
        return parts
    cases = [each for each in load_case_statuses(job.run, [job]) if each.case.pk not in without]
    for state in ("decided", "stopped early"):
        blocks = [each.analysis.blocks for each in cases if each.analysis and each.state == state]
        if blocks:
            parts.append(
                f"{state}: {len(blocks)} of {_format_case_count(len(cases))} after "
                f"{_format_block_span(blocks)}"
            )
    open_ = [each for each in cases if each.state in {"open", "undecided"}]
    reasons = {each.case.pk: _describe_undecided_case(each) for each in open_}
    return [
        *parts,
        *_format_cases_by_reason(
            "not decided", reasons, {each.case.pk: each.case for each in open_}
        ),
    ]


def _describe_undecided_case(status: CaseStatus) -> str:
    blocks = status.analysis.blocks if status.analysis else 0
    after = f"after {blocks} blocks" if blocks else "too few clean blocks"
    return "; ".join(part for part in (after, status.missing_blocks_text) if part)


def _format_case_count(number: int) -> str:
    return f"{number} case{'s' if number != 1 else ''}"


def _format_block_span(blocks: list[int]) -> str:
    least, most = min(blocks), max(blocks)
    return f"{most} blocks" if least == most else f"{least} to {most} blocks"


def _find_failed_cases(
    job: Job, trials: Iterable[FailedTrial], given_up: Collection[int]
) -> dict[int, str]:
    """Return the cases with failed trials only that were not skipped after failures."""
    measured = job.trials.filter(state=TrialState.MEASURED).values_list("case", flat=True)
    known = {*given_up, *measured}
    return {
        trial.case: f"every trial failed; the last: {trial.message}"
        for trial in trials
        if trial.case not in known
    }


def _find_unsupported_cases(job: Job) -> dict[int, str]:
    trials = job.trials.filter(state=TrialState.UNSUPPORTED).order_by("position")
    return dict(trials.values_list("case", "message"))


def _format_cases_by_reason(
    kind: str, reasons: dict[int, str], cases: dict[int, Case]
) -> list[str]:
    """Return one line for all cases with the same reason."""
    by_reason: dict[str, list[str]] = {}
    for case, reason in sorted(reasons.items()):
        by_reason.setdefault(reason, []).append(cases[case].label)
    return [
        f"{kind}: {_format_labels(labels)}: {reason[:MAX_REASON]}"
        for reason, labels in by_reason.items()
    ]


def _format_labels(labels: list[str]) -> str:
    if len(labels) <= 3:
        return " · ".join(labels)
    return f"{labels[0]} and {len(labels) - 1} more cases"
