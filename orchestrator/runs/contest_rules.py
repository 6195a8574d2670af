"""The contests of a run: whole ones are chosen, and the run may end when they are decided."""

from collections.abc import Iterator, Sequence

from orchestrator.benchmarks.fields import format_axis_value
from orchestrator.benchmarks.matrix import CaseSpec, find_unsupported_reason, select_pairwise
from orchestrator.benchmarks.spec import Spec
from orchestrator.core.errors import InvalidRequestError
from orchestrator.runs.models import Until
from orchestrator.runs.trial_order import group_cases
from orchestrator.stats.first_places import DEFAULT_PLACES, MOST_PLACES


def resolve_places(until: Until, places: int | None) -> int | None:
    """Return how many first places are ordered; None if the run orders none."""
    if until != Until.RANKED:
        if places is not None:
            raise InvalidRequestError(
                f"only a run until {Until.RANKED} orders places: omit places", field="places"
            )
        return None
    if places is None:
        return DEFAULT_PLACES
    if not 1 <= places <= MOST_PLACES:
        raise InvalidRequestError(
            f"expected 1 to {MOST_PLACES} places, got {places}", field="places"
        )
    return places


def check_contests(spec: Spec, until: Until, cases: Sequence[CaseSpec]) -> None:
    """Raise InvalidRequestError if the chosen cases have nothing that `until` could decide.

    `until`: one of UNTIL_OF_CONTESTS.
    """
    if spec.contest is None:
        raise InvalidRequestError(
            f"{until} compares the values of a contest: add one to the definition, such as "
            "contest: server",
            field="until",
        )
    able = [case for case in cases if not find_unsupported_reason(spec, case.parameters)]
    groups = [[able[at].parameters[spec.contest] for at in one] for one in group_cases(spec, able)]
    if all(len(values) < 2 for values in groups):
        raise InvalidRequestError(
            f"no contest has two of the chosen values of {spec.contest}", field="cases"
        )
    if until == Until.COMPARED and spec.contest not in spec.baseline:
        raise InvalidRequestError(
            f"{until} needs a value to compare with: add baseline: {{{spec.contest}: ...}} to the "
            "definition",
            field="until",
        )
    base = spec.baseline.get(spec.contest)
    if until == Until.COMPARED and any(base not in values for values in groups):
        raise InvalidRequestError(
            f"the chosen cases leave out the baseline {format_axis_value(base or '')}; add it",
            field="cases",
        )


def select_pairwise_contests(spec: Spec, cases: Sequence[CaseSpec]) -> Iterator[CaseSpec]:
    """Yield the cases of as few contests as `select_pairwise` needs, each with all its values."""
    groups = group_cases(spec, cases)
    first = {cases[group[0]].key: group for group in groups}
    for case in select_pairwise([cases[group[0]] for group in groups]):
        yield from (cases[place] for place in first[case.key])
