"""Writes of results: one trial at a time, once."""

import json
import zlib
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from django.db import transaction

from orchestrator.core.clock import utc_now
from orchestrator.core.counting import count
from orchestrator.core.ids import sha256_hex
from orchestrator.core.untrusted_json import json_from
from orchestrator.fleet.selectors import changes_of
from orchestrator.loadtools.model import Distribution, ToolOutputError, TrialReading, Validity
from orchestrator.measurements.build_provenance import made_with
from orchestrator.measurements.comparability import block_of, hash_configuration
from orchestrator.measurements.load_results import LoadReading, TrialReadings, read_trial
from orchestrator.measurements.metrics import metrics_of_trial
from orchestrator.measurements.recording import Measured, record
from orchestrator.results.models import Artifact, Histogram, HistogramKind, LoadResult, RunVerdict
from orchestrator.runs.models import Job, Trial
from orchestrator.runs.states import TrialState
from orchestrator.stats import histogram as stats_histogram

#: Characters of JSON that one fact of a trial's provenance may have.
FACT_LIMIT = 16_384


def store_trial(
    *,
    trial: Trial,
    job: Job,
    files: Mapping[str, bytes],
    late: bool = False,
    clock_ahead_s: float = 0.0,
) -> bool:
    """Takes in a finished trial: readings, distributions, raw files, provenance.

    `late`: it arrives after its attempt was given up. `clock_ahead_s`: how far the host's clock is
    ahead of ours; the trial's times are told by ours. False where it was taken in before: the
    guarded UPDATE of the trial decides, so that a result fetched twice is stored once. Output that
    cannot be read fails the trial; the files are kept.
    """
    try:
        result = json_from(files["result.json"])
        read = read_trial(trial, files, result)
    except (KeyError, ValueError, ToolOutputError) as error:
        missing = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        return fail_trial(
            trial=trial, job=job, code="unreadable", message=f"output: {missing}", files=files
        )
    told = {"late": late, "clock_ahead_s": clock_ahead_s}
    stored = _store_measured(trial, job, files, result, read, told)
    if stored:
        count("pitwall_trials_total", outcome="measured")
    return stored


def _store_measured(
    trial: Trial,
    job: Job,
    files: Mapping[str, bytes],
    result: dict[str, Any],
    read: TrialReadings,
    told: Mapping[str, Any],
) -> bool:
    """Whether the trial was still to be stored; `told` is kept with its provenance."""
    reading, ahead_s = read.whole, told["clock_ahead_s"]
    measured = _measured(trial, job, result, reading, ahead_s=ahead_s)
    metrics = metrics_of_trial(job.run.team_id, measured.readings)
    readings = {key: measured.readings[key] for key in metrics.ids}
    judged = _judged(reading.validity, metrics.note)
    times = {at: _instant(result.get(at), ahead_s) for at in ("started_at", "ended_at")}
    provenance = {**_provenance(job, trial, result, reading), **told}
    with transaction.atomic():
        if not _claim(trial, job, **judged, **times, provenance=provenance):
            return False
        record([replace(measured, readings=readings)], metrics.ids)
        _store_readings(trial, read, metrics.ids)
        _store_files(trial, files)
        if told["late"]:
            # The run has ended already, and its verdict was without this trial.
            RunVerdict.objects.filter(run=job.run_id).delete()
    return True


def fail_trial(
    *, trial: Trial, job: Job, code: str, message: str, files: Mapping[str, bytes]
) -> bool:
    """Notes that a trial could not be measured, and why; False where that was noted before."""
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
    planned = Trial.objects.filter(pk=trial.pk, job=job, state=TrialState.PLANNED)
    return bool(planned.update(attempt=job.attempt, host=job.host, **changes))


def _judged(validity: Validity, note: str) -> dict[str, Any]:
    """`note` is shown with the reasons, and does not change the validity."""
    return {
        "state": TrialState.MEASURED,
        "validity": validity.level,
        "reasons": [*_reasons(validity), *([note] if note else [])],
    }


def _reasons(validity: Validity) -> list[str]:
    return [f"{each.code}: {each.message}" for each in validity.reasons]


def _price(job: Job, reading: TrialReading) -> dict[str, float]:
    """What a million answers cost at the hourly prices of the job's hosts; unknown without one."""
    placed = [place.host for place in job.placements.select_related("host__profile")]
    hosts = {host for host in [job.host, *placed] if host is not None}
    prices = [host.profile.price_per_hour if host.profile else None for host in hosts]
    rate = reading.readings.get("requests.rate") or reading.readings.get("capacity.rate")
    if not rate or not prices or None in prices:
        return {}
    hourly = float(sum(price for price in prices if price is not None))
    return {"cost.money_per_1m": hourly / 3600 / rate * 1e6}


def _measured(
    trial: Trial, job: Job, result: Mapping[str, Any], reading: TrialReading, *, ahead_s: float
) -> Measured:
    at = _instant(result.get("started_at"), ahead_s) or utc_now()
    host = job.host
    assert host is not None, "a job that measured has a host"
    tool = result.get("tool") or {}
    seen_at = job.snapshot.taken_at if job.snapshot else at
    return Measured(
        id=trial.pk,
        benchmark=trial.case.benchmark_id,
        case=trial.case_id,
        host=host.pk,
        commit=trial.variant.commit_id,
        at=at,
        validity=reading.validity.level,
        readings={**reading.readings, **_price(job, reading)},
        block=block_of(job.pk, trial.round),
        configuration=hash_configuration(
            job.run.definition, trial.case.parameters, [tool.get("name"), tool.get("version")]
        ),
        epoch=changes_of(host).filter(at__lte=seen_at).count(),
    )


def _store_readings(trial: Trial, read: TrialReadings, keys: Collection[str]) -> None:
    whole = read.whole
    Histogram.objects.bulk_create(
        _histogram(trial, kind, part)
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
        why=load.why,
        validity=reading.validity.level,
        reasons=_reasons(reading.validity),
        readings={key: value for key, value in reading.readings.items() if key in keys},
        encoded=_encoded(reading.ok).encode() if reading.ok.n else b"",
    )


def _encoded(part: Distribution) -> stats_histogram.Histogram:
    return stats_histogram.Histogram.from_counts(part.value_us, part.count)


def _histogram(trial: Trial, kind: str, part: Distribution) -> Histogram:
    whole = _encoded(part)
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


def _provenance(
    job: Job, trial: Trial, result: dict[str, Any], reading: TrialReading
) -> dict[str, Any]:
    """What the trial was made of. Larger parts (samples) stay in the raw result.json.

    Of several loads the first one's command stands for all; each one's own is in result.json.
    `left_out`: facts that are too long; they are there as well.
    """
    kept = (
        "argv", "tool", "tool_cpus", "server_argv", "port", "port_checked", "rc", "signal",
        "wall_s", "load_started_at", "load_ended_at", "load_before", "usage", "hung",
        "server_exit", "limits", "on", "checks", "peer_gap_s",
    )  # fmt: skip
    told = {**result, **result["loads"][0]}
    long = [key for key in kept if not _is_short(told.get(key))]
    return {
        **{key: told.get(key) if key not in long else None for key in kept},
        **({"left_out": long} if long else {}),
        "protocol": reading.protocol,
        "commit": trial.variant.commit.sha,
        "definition": str(job.run.definition_id),
        "definition_digest": job.run.definition.digest,
        "hosts": {place.role: place.host.name for place in job.placements.all() if place.host},
        "host_snapshot": job.snapshot_id,
        "host_fingerprint": job.snapshot.fingerprint if job.snapshot else None,
        "design_seed": job.run.seed,
        "attempt": job.attempt,
        **made_with(job, trial, result),
    }


def _is_short(value: object) -> bool:
    """Whether a fact that a host tells is short enough to stand in lists of trials."""
    return len(json.dumps(value)) <= FACT_LIMIT


def _instant(value: object, ahead_s: float) -> datetime | None:
    return datetime.fromtimestamp(value - ahead_s, UTC) if isinstance(value, int | float) else None
