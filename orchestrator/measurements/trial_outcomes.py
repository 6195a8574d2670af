"""Outcomes of the requests of a load, read from the files of its tool."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agents.hostagent.protocol import load_files
from orchestrator.core.errors import InvalidRequestError
from orchestrator.loadtools.model import ToolOutputError
from orchestrator.measurements.load_results import read_load
from orchestrator.measurements.trial_files import Facts, load_rows
from orchestrator.results.models import Artifact
from orchestrator.runs.models import Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of the whole load with its warm-up; the bytes of bodies are of the window only.

    `by_status`: status → answers; `errors`: (class, requests, message of the tool). None means that
    the tool does not report it; an empty `errors` means no errors. `truncated`: requests that the
    end of the load cut off.
    """

    by_status: Mapping[int, int] | None
    errors: Sequence[tuple[str, int, Sequence[str]]] | None
    truncated: int
    bytes_in: int | None


def read_load_outcome(trial: Trial, result: Facts, load: int) -> Outcome | None:
    """Return the outcome of one load, counted from 0; None if its files cannot be read."""
    names = load_files(load)
    artifacts = Artifact.objects.filter(trial=trial, name__in=names)
    files = {each.name: zlib.decompress(each.compressed) for each in artifacts}
    try:
        reading = read_load(trial, files, result, load)
    except (KeyError, IndexError, TypeError, ToolOutputError, InvalidRequestError):
        return None
    errors = reading.errors
    return Outcome(
        by_status=reading.by_status,
        errors=None
        if errors is None
        else [(name, n, reading.error_texts.get(name, ())) for name, n in errors.items() if n],
        truncated=reading.truncated,
        bytes_in=load_rows(trial, load).get("bytes"),
    )
