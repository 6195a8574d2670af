"""How the requests of a load ended, read again from what its tool left behind."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agents.hostagent.protocol import load_files
from orchestrator.core.errors import InvalidRequestError
from orchestrator.loadtools.model import ToolOutputError
from orchestrator.measurements.load_results import read_load
from orchestrator.measurements.trial_files import Facts, rows_of
from orchestrator.results.models import Artifact
from orchestrator.runs.models import Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Of the whole load, its warm-up included, but for the bytes: these are of the window's bodies.

    `by_status`: status → answers; `errors`: (class, requests, what the tool said). None is what the
    tool does not tell; an empty `errors` means that there were none. `truncated`: cut off by the
    end of the load.
    """

    by_status: Mapping[int, int] | None
    errors: Sequence[tuple[str, int, Sequence[str]]] | None
    truncated: int
    bytes_in: int | None


def outcome_of_load(trial: Trial, result: Facts, load: int) -> Outcome | None:
    """Of one load, counted from 0; None where its files cannot be read any more."""
    names = load_files(load)
    found = Artifact.objects.filter(trial=trial, name__in=names)
    files = {each.name: zlib.decompress(each.compressed) for each in found}
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
        bytes_in=rows_of(trial, load).get("bytes"),
    )
