"""A definition in the form that runs use: its specification, its cases, and the time of a trial.

A stored version never changes, so the result is cached in the process.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.benchmarks.loads import expected_trials_s
from orchestrator.benchmarks.matrix import CaseSpec, expand
from orchestrator.benchmarks.models import Definition
from orchestrator.benchmarks.selectors import spec_of
from orchestrator.benchmarks.spec import Spec
from orchestrator.core.page_cache import kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Expanded:
    """A definition and its cases; `trial_s` maps the key of a case to the seconds of one trial."""

    spec: Spec
    cases: tuple[CaseSpec, ...]
    trial_s: Mapping[str, float]


def expanded(definition: Definition) -> Expanded:
    """Return the expanded definition from the cache. Callers share it and must not change it."""
    stored = None if definition._state.adding else definition.digest
    return kept(("definition", definition.pk), stored, lambda: _expanded(definition))


def _expanded(definition: Definition) -> Expanded:
    spec = spec_of(definition)
    cases = tuple(expand(spec))
    times = expected_trials_s(spec, cases)
    return Expanded(
        spec=spec,
        cases=cases,
        trial_s={case.key: each for case, each in zip(cases, times, strict=True)},
    )
