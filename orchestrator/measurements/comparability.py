"""What makes two trials like for like: their block, and what exactly was measured."""

import hashlib
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from orchestrator.benchmarks.fields import Scalar
from orchestrator.benchmarks.models import Definition
from orchestrator.benchmarks.resolved import measured_by
from orchestrator.benchmarks.selectors import spec_of
from orchestrator.core.ids import digest_of


def block_of(job: UUID, number: int) -> int:
    """The round of a job as 64 bits with a sign, never 0: trials of one block share it."""
    return _number(f"{job}:{number}", 8)


def hash_configuration(
    definition: Definition, parameters: Mapping[str, Scalar], tool: object
) -> int:
    """A case of a definition, measured by a `tool` of some version, as 32 bits, never 0.

    Equal for two definitions where an edit did not touch this case.
    """
    return hash_measured_configuration(measured_by(spec_of(definition), parameters), tool)


def hash_measured_configuration(measured: Mapping[str, Any], tool: object) -> int:
    """The number of a configuration, from the result of `measured_by` and the tool."""
    return _number(digest_of([measured, tool]), 4)


def _number(text: str, size: int) -> int:
    digest = hashlib.sha256(text.encode()).digest()[:size]
    return int.from_bytes(digest, signed=True) or 1
