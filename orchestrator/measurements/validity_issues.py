"""How many trials of a run are not to be believed, or only half, and why."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from orchestrator.loadtools.thresholds import THRESHOLDS
from orchestrator.runs.models import Trial
from orchestrator.runs.states import TrialState, Validity


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """One reason, and how many trials have it; `title` says it in words."""

    code: str
    title: str
    trials: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubts:
    """Of the trials of one run that have ended; `doubts` are those of the suspect and invalid."""

    suspect: int = 0
    invalid: int = 0
    failed: int = 0
    doubts: tuple[Doubt, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.suspect or self.invalid or self.failed)


def doubts_of(runs: Collection[UUID]) -> Mapping[UUID, Doubts]:
    """By run; one without doubts is among them, too."""
    rows = (
        Trial.objects.filter(job__run__in=runs)
        .filter(state__in=[TrialState.MEASURED, TrialState.FAILED])
        .exclude(validity=Validity.VALID)
        .values_list("job__run", "state", "validity", "reasons")
    )
    found: dict[UUID, list[tuple[str, Sequence[str]]]] = defaultdict(list)
    for run, state, validity, reasons in rows:
        found[run].append((validity if state == TrialState.MEASURED else state, reasons))
    return {run: _doubts(found[run]) for run in runs}


def doubts_in(reasons: Collection[Sequence[str]]) -> tuple[Doubt, ...]:
    """The reasons of several trials, the most frequent first."""
    counted = Counter(code for each in reasons for code in {code_of(text) for text in each})
    return tuple(
        Doubt(code=code, title=title_of(code), trials=trials)
        for code, trials in sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    )


def code_of(reason: str) -> str:
    """Of `code: what was found`."""
    return str(reason).partition(":")[0]


def title_of(code: str) -> str:
    """`CPU of other processes`; the code in words where no threshold has it."""
    rule = THRESHOLDS.get(code)
    return rule.title if rule else code.replace("_", " ").capitalize()


def _doubts(trials: Sequence[tuple[str, Sequence[str]]]) -> Doubts:
    kinds = Counter(kind for kind, _ in trials)
    return Doubts(
        suspect=kinds[Validity.SUSPECT],
        invalid=kinds[Validity.INVALID],
        failed=kinds[TrialState.FAILED],
        doubts=doubts_in([reasons for kind, reasons in trials if kind != TrialState.FAILED]),
    )
