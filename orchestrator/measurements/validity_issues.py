"""Counts of invalid, suspect and failed trials of a run, and their reasons."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from orchestrator.loadtools.thresholds import THRESHOLDS
from orchestrator.runs.models import Trial
from orchestrator.runs.states import TrialState, Validity


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidityIssue:
    """A reason why trials are suspect or invalid, and the number of `trials` with it."""

    code: str
    title: str
    trials: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunValidity:
    """Counts of the ended trials of one run.

    `validity_issues` are the reasons of its suspect and invalid trials.
    """

    suspect: int = 0
    invalid: int = 0
    failed: int = 0
    validity_issues: tuple[ValidityIssue, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.suspect or self.invalid or self.failed)


def load_run_validity(runs: Collection[UUID]) -> Mapping[UUID, RunValidity]:
    """The validity of each of these runs, also of those without issues."""
    rows = (
        Trial.objects.filter(job__run__in=runs)
        .filter(state__in=[TrialState.MEASURED, TrialState.FAILED])
        .exclude(validity=Validity.VALID)
        .values_list("job__run", "state", "validity", "reasons")
    )
    issues: dict[UUID, list[tuple[str, Sequence[str]]]] = defaultdict(list)
    for run, state, validity, reasons in rows:
        issues[run].append((validity if state == TrialState.MEASURED else state, reasons))
    return {run: _summarise(issues[run]) for run in runs}


def count_validity_issues(reasons: Collection[Sequence[str]]) -> tuple[ValidityIssue, ...]:
    """The reasons of several trials, the most frequent first."""
    counted = Counter(code for each in reasons for code in {parse_code(text) for text in each})
    return tuple(
        ValidityIssue(code=code, title=get_issue_title(code), trials=trials)
        for code, trials in sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    )


def parse_code(reason: str) -> str:
    """Return the code of a reason `code: description`."""
    return str(reason).partition(":")[0]


def get_issue_title(code: str) -> str:
    """Return the title of a code; its words if no threshold has the code."""
    rule = THRESHOLDS.get(code)
    return rule.title if rule else code.replace("_", " ").capitalize()


def _summarise(trials: Sequence[tuple[str, Sequence[str]]]) -> RunValidity:
    kinds = Counter(kind for kind, _ in trials)
    return RunValidity(
        suspect=kinds[Validity.SUSPECT],
        invalid=kinds[Validity.INVALID],
        failed=kinds[TrialState.FAILED],
        validity_issues=count_validity_issues(
            [reasons for kind, reasons in trials if kind != TrialState.FAILED]
        ),
    )
