"""Comparability of trials: their block, their run and their measured configuration."""

import hashlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any
from uuid import UUID

from orchestrator.benchmarks.capacity_rates import replace_search
from orchestrator.benchmarks.fields import Scalar
from orchestrator.benchmarks.matrix import select_measured_part
from orchestrator.benchmarks.models import Definition
from orchestrator.benchmarks.selectors import get_stored_spec
from orchestrator.core.ids import hash_value
from orchestrator.stats.build_variance import UNKNOWN_BUILD


def hash_block(job: UUID, number: int) -> int:
    """Return the block of a round: a signed 64-bit number, never 0. All trials of it share it."""
    return _number(f"{job}:{number}", 8)


def hash_run(run: UUID) -> int:
    """Return the number of a run in points: signed, with 64 bits, never 0."""
    return _number(str(run), 8)


def hash_build(digest: str) -> int:
    """Return a signed 32-bit number that identifies a build by its digest; 0 if it is unknown."""
    return _number(digest, 4) if digest else UNKNOWN_BUILD


def identify_tool(
    name: str | None, version: str | None, generator: Mapping[str, str] | None
) -> list[object]:
    """Return the `tool` of a configuration. `generator`: the settings of another load's host."""
    return [name, version, *([dict(generator)] if generator else [])]


def hash_configuration(
    definition: Definition,
    parameters: Mapping[str, Scalar],
    tool: object,
    repositories: Mapping[str, str] = MappingProxyType({}),
    rates: Sequence[float] = (),
) -> int:
    """Hash a case of a definition, a `tool` and commits of other repositories.

    The result has 32 bits and is never 0. It is equal for two definitions if an edit did not touch
    this case. `tool`: of `identify_tool`. `repositories`: the hash of the commit of each name.
    `rates`: those of loads in place of a search, as values at different rates are not comparable.
    """
    resolved = get_stored_spec(definition).resolve(parameters)
    if rates:
        resolved = replace_search(resolved, rates)
    return hash_measured_configuration(
        select_measured_part(resolved, parameters), tool, repositories
    )


def hash_measured_configuration(
    measured: Mapping[str, Any],
    tool: object,
    repositories: Mapping[str, str] = MappingProxyType({}),
) -> int:
    """Hash a configuration, from the result of `select_measured_part` and the rest."""
    others = [dict(repositories)] if repositories else []
    return _number(hash_value([measured, tool, *others]), 4)


def _number(text: str, size: int) -> int:
    digest = hashlib.sha256(text.encode()).digest()[:size]
    return int.from_bytes(digest, signed=True) or 1
