"""Read the measured loads of a trial from its files, with the adapter of its tool."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agents.hostagent.protocol import load_files
from orchestrator.benchmarks.capacity_rates import replace_search
from orchestrator.benchmarks.load_specs import build_load_specs, get_tool
from orchestrator.benchmarks.selectors import get_stored_spec
from orchestrator.benchmarks.spec import Spec
from orchestrator.core.untrusted_json import parse_json
from orchestrator.loadtools.combined import combine_search, combine_shares, combine_steps
from orchestrator.loadtools.model import GARBAGE, LoadSpec, ToolOutputError, TrialReading
from orchestrator.loadtools.registry import Adapter
from orchestrator.loadtools.validity import tolerate_neighbours
from orchestrator.runs.models import Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReading:
    """One measured load; `passed` and `why` are set for a probe of a search."""

    number: int
    reading: TrialReading
    passed: bool | None = None
    reason: str = ""


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
    spec, parameters = read_measured_spec(trial, result), trial.case.parameters
    tool, loads = get_tool(spec, parameters), build_load_specs(spec, parameters)
    parts = [
        _read(trial, tool, loads[min(number, len(loads) - 1)], number, files, {**result, **loaded})
        for number, loaded in enumerate(result["loads"])
    ]
    search = result.get("search")
    if search is None and read_share_rates(trial, result):
        return TrialReadings(whole=combine_shares(parts), loads=_number_loads(parts, ()))
    if search is None:
        return TrialReadings(
            whole=combine_steps(parts),
            loads=_number_loads(parts, ()) if len(parts) > 1 else (),
        )
    probes = _number_loads(parts, search["probes"])
    return TrialReadings(whole=combine_search(parts, search), loads=probes)


def read_share_rates(trial: Trial, result: Mapping[str, Any]) -> tuple[float, ...]:
    """Return the rates of a trial that measured at shares of a capacity instead of a search."""
    spec = get_stored_spec(trial.job.run.definition).resolve(trial.case.parameters)
    if spec.load.search is None or result.get("search") is not None:
        return ()
    return tuple(float(loaded["rate"]) for loaded in result["loads"])


def read_measured_spec(trial: Trial, result: Mapping[str, Any]) -> Spec:
    """Return the definition of the trial's case, as the trial measured it."""
    spec = get_stored_spec(trial.job.run.definition).resolve(trial.case.parameters)
    rates = read_share_rates(trial, result)
    return replace_search(spec, rates) if rates else spec


def read_load(
    trial: Trial, files: Mapping[str, bytes], result: Mapping[str, Any], number: int
) -> TrialReading:
    """Read one measured load of a finished trial, counted from 0; raises as `read_trial` does."""
    spec, parameters = read_measured_spec(trial, result), trial.case.parameters
    loads = build_load_specs(spec, parameters)
    load = loads[min(number, len(loads) - 1)]
    load_result = {**result, **result["loads"][number]}
    return _read(trial, get_tool(spec, parameters), load, number, files, load_result)


def _read(
    trial: Trial,
    tool: Adapter,
    load: LoadSpec,
    number: int,
    files: Mapping[str, bytes],
    result: Mapping[str, Any],
) -> TrialReading:
    report, rows = load_files(number)
    try:
        reduced = parse_json(files[rows])
    except ValueError as error:
        raise ToolOutputError(f"{rows} is not JSON: {error}") from error
    reading = tool.parse(load, files[report], reduced, result)
    if not trial.job.shared_hosts:
        return reading
    return replace(reading, validity=tolerate_neighbours(reading.validity))


def _number_loads(
    readings: Sequence[TrialReading], probes: Sequence[Mapping[str, Any]]
) -> tuple[LoadReading, ...]:
    by_load = {number: probe for probe in probes for number in probe["loads"]}
    return tuple(
        LoadReading(
            number=number,
            reading=reading,
            passed=by_load[number]["passed"] if number in by_load else None,
            reason=str(by_load[number].get("reason") or "") if number in by_load else "",
        )
        for number, reading in enumerate(readings)
    )
