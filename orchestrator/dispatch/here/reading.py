"""The result of one trial."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.loadtools.model import Level, ToolOutputError
from orchestrator.loadtools.trial_outcomes import classify_failure, classify_invalid
from orchestrator.measurements.build_provenance import find_build_digest
from orchestrator.measurements.comparability import hash_build
from orchestrator.measurements.load_results import read_trial
from orchestrator.measurements.validity_issues import parse_code
from orchestrator.runs.models import Trial
from orchestrator.stats.block_outcomes import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredTrial:
    """`readings`: metric → value in its SI unit. `reasons`: why it is suspect or invalid.

    `failure`: why it has no readings, with the `code` of the agent; empty if it has some. `build`:
    a number that identifies its build, 0 if unknown.
    """

    readings: Mapping[str, float] = field(default_factory=dict)
    invalid: bool = False
    reasons: tuple[str, ...] = ()
    failure: str = ""
    code: str = ""
    build: int = 0

    @property
    def counts(self) -> bool:
        return self.outcome is Outcome.COUNTS

    @property
    def outcome(self) -> Outcome:
        """Return what it says about the measured code."""
        if self.failure:
            return classify_failure(self.code)
        codes = [parse_code(reason) for reason in self.reasons]
        return classify_invalid(codes) if self.invalid else Outcome.COUNTS


def read_measured_trial(trial: Trial, files: Mapping[str, bytes]) -> MeasuredTrial:
    """Read and judge a trial as a server does."""
    try:
        result = json.loads(files["result.json"])
        reading = read_trial(trial, files, result).whole
    except (KeyError, ValueError, ToolOutputError) as error:
        missing = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        return MeasuredTrial(failure=f"output: {missing}")
    return MeasuredTrial(
        readings=reading.readings,
        invalid=reading.validity.level == Level.INVALID,
        build=hash_build(find_build_digest(result)),
        reasons=tuple(f"{each.code}: {each.message}" for each in reading.validity.reasons),
    )
