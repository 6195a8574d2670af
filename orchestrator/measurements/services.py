"""Writes of results: one trial at a time, once."""

import json
import zlib
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from django.db import transaction

from orchestrator.benchmarks.matrix import resolve_network
from orchestrator.benchmarks.selectors import get_stored_spec
from orchestrator.core.clock import utc_now
from orchestrator.core.counting import count
from orchestrator.core.ids import sha256_hex
from orchestrator.core.untrusted_json import parse_json
from orchestrator.fleet.selectors import load_host_changes
from orchestrator.loadtools.emulated_network import EmulatedNetwork
from orchestrator.loadtools.model import Distribution, ToolOutputError, TrialReading, Validity
from orchestrator.measurements.build_provenance import (
    build_build_provenance,
    find_build_digest,
    load_trial_pins,
)
from orchestrator.measurements.comparability import (
    hash_block,
    hash_build,
    hash_configuration,
    hash_run,
    identify_tool,
)
from orchestrator.measurements.emulated_networks import build_network_provenance
from orchestrator.measurements.environment import read_tuning
from orchestrator.measurements.generator_settings import load_generator_settings
from orchestrator.measurements.load_results import (
    LoadReading,
    TrialReadings,
    read_share_rates,
    read_trial,
)
from orchestrator.measurements.metrics import store_trial_metrics
from orchestrator.measurements.placements import build_placement_provenance
from orchestrator.measurements.prepare_steps import build_prepare_provenance
from orchestrator.measurements.recording import MeasuredRow, record
from orchestrator.results.models import Artifact, Histogram, HistogramKind, LoadResult
from orchestrator.runs.models import Job, Trial
from orchestrator.runs.states import TrialState
from orchestrator.runs.version_keys import NEXT_REVISION
from orchestrator.stats import histogram as stats_histogram

#: The limit of a fact in the provenance of a trial, in characters of JSON.
FACT_LIMIT = 16_384


def store_trial(
    *,
    trial: Trial,
    job: Job,
    files: Mapping[str, bytes],
    late: bool = False,
    clock_ahead_s: float = 0.0,
) -> bool:
    """Store a finished trial: readings, distributions, raw files, provenance.

    Return False if it was stored before: the conditional UPDATE of the trial decides, so that a
    result that is fetched twice is stored once. `late`: an earlier attempt of the job, which still
    runs, measured it. `clock_ahead_s`: how far the clock of the host is ahead; times are stored by
    the clock of Pitwall. Output that cannot be read fails the trial; its files are kept.
    """
    try:
        result = parse_json(files["result.json"])
        read = read_trial(trial, files, result)
    except (KeyError, ValueError, ToolOutputError) as error:
        missing = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        return fail_trial(
            trial=trial, job=job, code="unreadable", message=f"output: {missing}", files=files
        )
    arrival = {"late": late, "clock_ahead_s": clock_ahead_s}
    stored = _store_measured(trial, job, files, result, read, arrival)
    if stored:
        count("pitwall_trials_total", outcome="measured")
    return stored


def _store_measured(
    trial: Trial,
    job: Job,
    files: Mapping[str, bytes],
    result: dict[str, Any],
    read: TrialReadings,
    arrival: Mapping[str, Any],
) -> bool:
    """Store a trial with the provenance `arrival`; return False if it was stored before."""
    reading, ahead_s = read.whole, arrival["clock_ahead_s"]
    generator = load_generator_settings(job)
    measured = _build_measured(trial, job, result, reading, generator, ahead_s=ahead_s)
    metrics = store_trial_metrics(job.run.team_id, measured.readings)
    readings = {key: measured.readings[key] for key in metrics.ids}
    judged = _build_validity_fields(reading.validity, metrics.note)
    times = {at: _correct_instant(result.get(at), ahead_s) for at in ("started_at", "ended_at")}
    provenance = {
        **_build_trial_provenance(job, trial, result, reading),
        **({"generator_settings": generator} if generator else {}),
        **arrival,
    }
    with transaction.atomic():
        if not _claim(trial, job, **judged, **times, provenance=provenance):
            return False
        record([replace(measured, readings=readings)], metrics.ids)
        _store_readings(trial, read, metrics.ids)
        _store_files(trial, files)
    return True


def fail_trial(
    *, trial: Trial, job: Job, code: str, message: str, files: Mapping[str, bytes]
) -> bool:
    """Mark a trial as failed, with the reason; return False if it was marked before."""
    with transaction.atomic():
        claimed = _claim(
            trial, job, state=TrialState.FAILED, reasons=[code], message=message[:20_000]
        )
        if claimed:
            _store_files(trial, files)
    if claimed:
        count("pitwall_trials_total", outcome="failed")
    return claimed


def _claim(trial: Trial, job: Job, **changes: Any) -> bool:
    Job.objects.filter(pk=job.pk).update(revision=NEXT_REVISION)
    planned = Trial.objects.filter(pk=trial.pk, job=job, state=TrialState.PLANNED)
    return bool(planned.update(attempt=job.attempt, host=job.host, **changes))


def _build_validity_fields(validity: Validity, note: str) -> dict[str, Any]:
    """Return the validity fields; `note` is shown with the reasons and changes nothing else."""
    return {
        "state": TrialState.MEASURED,
        "validity": validity.level,
        "reasons": [*_list_reasons(validity), *([note] if note else [])],
    }


def _list_reasons(validity: Validity) -> list[str]:
    return [f"{each.code}: {each.message}" for each in validity.reasons]


def _compute_price(job: Job, reading: TrialReading) -> dict[str, float]:
    """Return the cost of a million answers at the hourly prices of the hosts; empty if unknown."""
    placed = [place.host for place in job.placements.select_related("host__profile")]
    hosts = {host for host in [job.host, *placed] if host is not None}
    prices = [host.profile.price_per_hour if host.profile else None for host in hosts]
    rate = reading.readings.get("requests.rate") or reading.readings.get("capacity.rate")
    if not rate or not prices or None in prices:
        return {}
    hourly = float(sum(price for price in prices if price is not None))
    return {"cost.money_per_1m": hourly / 3600 / rate * 1e6}


def _build_measured(
    trial: Trial,
    job: Job,
    result: Mapping[str, Any],
    reading: TrialReading,
    generator: Mapping[str, str],
    *,
    ahead_s: float,
) -> MeasuredRow:
    at = _correct_instant(result.get("started_at"), ahead_s) or utc_now()
    host = job.host
    assert host is not None, "a job that measured has a host"
    tool = result.get("tool") or {}
    seen_at = job.snapshot.taken_at if job.snapshot else at
    return MeasuredRow(
        id=trial.pk,
        benchmark=trial.case.benchmark_id,
        case=trial.case_id,
        host=host.pk,
        commit=trial.variant.commit_id,
        at=at,
        validity=reading.validity.level,
        readings={**reading.readings, **_compute_price(job, reading)},
        block=hash_block(job.pk, trial.round),
        place=trial.position + 1,
        run=hash_run(job.run_id),
        build=hash_build(find_build_digest(result)),
        configuration=hash_configuration(
            job.run.definition,
            trial.case.parameters,
            identify_tool(tool.get("name"), tool.get("version"), generator),
            {name: pin.sha for name, pin in load_trial_pins(job, trial).items()},
            read_share_rates(trial, result),
        ),
        epoch=load_host_changes(host).filter(at__lte=seen_at).count(),
    )


def _store_readings(trial: Trial, read: TrialReadings, keys: Collection[str]) -> None:
    whole = read.whole
    Histogram.objects.bulk_create(
        _build_histogram(trial, kind, part)
        for kind, part in ((HistogramKind.OK, whole.ok), (HistogramKind.OTHER, whole.other))
        if part.n
    )
    LoadResult.objects.bulk_create(_load_result(trial, each, keys) for each in read.loads)


def _load_result(trial: Trial, load: LoadReading, keys: Collection[str]) -> LoadResult:
    reading = load.reading
    return LoadResult(
        trial=trial,
        number=load.number,
        rate=reading.load.rate,
        connections=reading.load.connections,
        streams=reading.load.streams,
        passed=load.passed,
        reason=load.reason,
        validity=reading.validity.level,
        reasons=_list_reasons(reading.validity),
        readings={key: value for key, value in reading.readings.items() if key in keys},
        encoded=_convert_distribution(reading.ok).encode() if reading.ok.n else b"",
    )


def _convert_distribution(part: Distribution) -> stats_histogram.Histogram:
    return stats_histogram.Histogram.from_counts(part.value_us, part.count)


def _build_histogram(trial: Trial, kind: str, part: Distribution) -> Histogram:
    whole = _convert_distribution(part)
    return Histogram(trial=trial, kind=kind, encoded=whole.encode(), count=whole.total_count)


def _store_files(trial: Trial, files: Mapping[str, bytes]) -> None:
    Artifact.objects.bulk_create(
        Artifact(
            trial=trial,
            name=name,
            sha256=sha256_hex(content),
            size=len(content),
            compressed=zlib.compress(content, 6),
        )
        for name, content in files.items()
    )


def _build_trial_provenance(
    job: Job, trial: Trial, result: dict[str, Any], reading: TrialReading
) -> dict[str, Any]:
    """Return the provenance of a trial; larger parts (samples) stay in the raw result.json.

    With several loads, the command is that of the first one; result.json has all. `excluded_facts`:
    names of facts that are too long; result.json has them too.
    """
    kept = (
        "argv", "tool", "tool_cpus", "server_argv", "port", "port_checked", "rc", "signal",
        "wall_s", "load_started_at", "load_ended_at", "load_before", "usage", "hung",
        "server_exit", "limits", "on", "checks", "answers", "peer_gap_s", "tuning",
    )  # fmt: skip
    load_result = {**result, **result["loads"][0], "tuning": read_tuning(result)}
    long = [key for key in kept if not _is_short(load_result.get(key))]
    return {
        **{key: load_result.get(key) if key not in long else None for key in kept},
        **({"excluded_facts": long} if long else {}),
        "protocol": reading.protocol,
        "commit": trial.variant.commit.sha,
        "definition": str(job.run.definition_id),
        "definition_digest": job.run.definition.digest,
        "hosts": {place.role: place.host.name for place in job.placements.all() if place.host},
        "host_snapshot": job.snapshot_id,
        "host_fingerprint": job.snapshot.fingerprint if job.snapshot else None,
        "design_seed": job.run.seed,
        "attempt": job.attempt,
        **build_placement_provenance(result.get("placement")),
        **build_prepare_provenance(result.get("prepare")),
        **build_network_provenance(
            _resolve_network(job, trial),
            result.get("network"),
        ),
        **build_build_provenance(job, trial, result),
    }


def _resolve_network(job: Job, trial: Trial) -> EmulatedNetwork | None:
    parameters = trial.case.parameters
    return resolve_network(get_stored_spec(job.run.definition).resolve(parameters), parameters)


def _is_short(value: object) -> bool:
    """Return whether a fact of a host is short enough for lists of trials."""
    return len(json.dumps(value)) <= FACT_LIMIT


def _correct_instant(value: object, ahead_s: float) -> datetime | None:
    return datetime.fromtimestamp(value - ahead_s, UTC) if isinstance(value, int | float) else None
