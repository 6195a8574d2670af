"""Shapes of results that were measured elsewhere."""

from typing import Annotated

from ninja import Schema
from pydantic import BaseModel, ConfigDict, Field

from orchestrator.results.recording.incoming import MOST_RESULTS, ResultIn


class ResultsIn(BaseModel):
    """Finished results, all of which are stored or none."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    results: Annotated[list[ResultIn], Field(min_length=1, max_length=MOST_RESULTS)]


class TakenOut(Schema):
    """`repeated` of the results had been taken before and changed nothing."""

    accepted: int
    repeated: int
