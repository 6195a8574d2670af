"""The prepare steps of a trial with their durations, as the agent reports them."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from orchestrator.benchmarks.prepare_steps import MAX_PREPARE_STEPS, After, Each


class PreparedStep(BaseModel):
    """A step that the trial needed. `step`: its number in the definition, from 1.

    `runs`: how often the trial ran it; 0 if an earlier trial did. `seconds`: of its last run.
    """

    model_config = ConfigDict(frozen=True)

    step: Annotated[int, Field(ge=1, le=MAX_PREPARE_STEPS)]
    run: Annotated[str, StringConstraints(max_length=400)]
    each: Each
    after: After
    seconds: Annotated[float, Field(ge=0, le=1e6)]
    runs: Annotated[int, Field(ge=0, le=1_000)]


_STEPS = TypeAdapter(Annotated[list[PreparedStep], Field(max_length=MAX_PREPARE_STEPS)])


def read_prepared_steps(value: object) -> list[PreparedStep]:
    """Return the steps of a result or a provenance; none if a host reports something else."""
    try:
        return _STEPS.validate_python(value)
    except ValidationError:
        return []


def build_prepare_provenance(value: object) -> dict[str, Any]:
    """Return the field of the provenance; empty for a trial without steps."""
    steps = read_prepared_steps(value)
    return {"prepare": [step.model_dump() for step in steps]} if steps else {}
