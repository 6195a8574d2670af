"""Read the measured loads of a trial from its files, with the adapter of its tool."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.hostagent.protocol import load_files
from orchestrator.benchmarks.loads import load_specs_of, tool_of
from orchestrator.benchmarks.selectors import spec_of
from orchestrator.core.untrusted_json import json_from
from orchestrator.loadtools.combined import of_search, of_steps
from orchestrator.loadtools.model import GARBAGE, LoadSpec, ToolOutputError, TrialReading
from orchestrator.loadtools.registry import Adapter
from orchestrator.runs.models import Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReading:
    """One measured load; `passed` and `why` are set for a probe of a search."""

    number: int
    reading: TrialReading
    passed: bool | None = None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialReadings:
    """The trial as a whole, and its loads if it has several."""

    whole: TrialReading
    loads: Sequence[LoadReading]


def read_trial(
    trial: Trial, files: Mapping[str, bytes], result: Mapping[str, Any]
) -> TrialReadings:
    """Read all results of a finished trial.

    Raise ToolOutputError, or KeyError with the name of a missing file.
    """
    try:
        return _read_trial(trial, files, result)
    except KeyError:
        raise
    except GARBAGE as error:
        raise ToolOutputError(
            f"result.json: {type(error).__name__}: {error}; was it written by an agent of another "
            "version?"
        ) from error


def _read_trial(
    trial: Trial, files: Mapping[str, bytes], result: Mapping[str, Any]
) -> TrialReadings:
    spec, parameters = spec_of(trial.job.run.definition), trial.case.parameters
    tool, loads = tool_of(spec, parameters), load_specs_of(spec, parameters)
    found = [
        _read(tool, loads[min(number, len(loads) - 1)], number, files, {**result, **loaded})
        for number, loaded in enumerate(result["loads"])
    ]
    search = result.get("search")
    if search is None:
        return TrialReadings(
            whole=of_steps(found),
            loads=_numbered(found, ()) if len(found) > 1 else (),
        )
    # A probe whose server crashed has no files.
    probes = [probe for probe in search["probes"] if probe["load"] is not None]
    return TrialReadings(whole=of_search(found, search), loads=_numbered(found, probes))


def read_load(
    trial: Trial, files: Mapping[str, bytes], result: Mapping[str, Any], number: int
) -> TrialReading:
    """Read one measured load of a finished trial, counted from 0; raises as `read_trial` does."""
    spec, parameters = spec_of(trial.job.run.definition), trial.case.parameters
    loads = load_specs_of(spec, parameters)
    load = loads[min(number, len(loads) - 1)]
    told = {**result, **result["loads"][number]}
    return _read(tool_of(spec, parameters), load, number, files, told)


def _read(
    tool: Adapter,
    load: LoadSpec,
    number: int,
    files: Mapping[str, bytes],
    result: Mapping[str, Any],
) -> TrialReading:
    report, rows = load_files(number)
    try:
        reduced = json_from(files[rows])
    except ValueError as error:
        raise ToolOutputError(f"{rows} is not JSON: {error}") from error
    return tool.parse(load, files[report], reduced, result)


def _numbered(
    readings: Sequence[TrialReading], probes: Sequence[Mapping[str, Any]]
) -> tuple[LoadReading, ...]:
    by_load = {probe["load"]: probe for probe in probes}
    return tuple(
        LoadReading(
            number=number,
            reading=reading,
            passed=by_load[number]["passed"] if number in by_load else None,
            why=str(by_load[number].get("why") or "") if number in by_load else "",
        )
        for number, reading in enumerate(readings)
    )
