"""The cost per answer of a trial, and the reason if a cost is unknown."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from orchestrator.loadtools.metrics import METRICS, Metric
from orchestrator.measurements.trial_files import Facts, read_loads
from orchestrator.runs.models import Trial

#: Metric → its key in "usage" of result.json.
_USAGE: Mapping[str, str] = {
    "cpu.seconds_per_1k": "server_cpu_s",
    "cpu.tool_seconds_per_1k": "tool_cpu_s",
    "cpu.services_seconds_per_1k": "services_cpu_s",
    "memory.server_peak": "server_peak_rss_bytes",
    "memory.tool_peak": "tool_peak_rss_bytes",
}
#: Metric → its key in "interference" of result.json, which has an entry for each host.
_AMBIENT: Mapping[str, str] = {
    "network.bytes_per_1k": "octets_out",
    "energy.joules_per_1k": "energy_j",
}
#: In display order.
COSTS = (
    "cpu.seconds_per_1k", "cpu.tool_seconds_per_1k", "cpu.services_seconds_per_1k",
    "memory.server_peak", "memory.tool_peak", "body.bytes_per_1k", "network.bytes_per_1k",
    "energy.joules_per_1k", "cost.money_per_1m",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """A cost; `why` is the reason if `value` is None, else empty."""

    metric: Metric
    value: float | None
    reason: str = ""


def list_costs(trial: Trial, values: Mapping[str, float], result: Facts) -> list[Cost]:
    """Return all costs; `values`: measurements by metric key; `result`: its result.json."""
    return [
        Cost(metric=METRICS[key], value=values[key])
        if key in values
        else Cost(
            metric=METRICS[key],
            value=None,
            reason=_explain_missing_cost(key, trial, values, result),
        )
        for key in COSTS
    ]


def _explain_missing_cost(
    key: str, trial: Trial, values: Mapping[str, float], result: Facts
) -> str:
    if "capacity.probes" in values and key != "cost.money_per_1m":
        return "each load of the search has its own"
    if key in _USAGE:
        reasons = _list_usage_reasons(_USAGE[key], result)
    elif key in _AMBIENT:
        reasons = _list_environment_reasons(_AMBIENT[key], result)
    elif key == "cost.money_per_1m":
        reasons = _list_price_reasons(trial, values)
    else:
        reasons = iter(("the load tool does not report the bytes of bodies",))
    unknown = "the trial does not report it" if result else "its raw output is not stored"
    return next(reasons, unknown)


def _list_usage_reasons(key: str, result: Facts) -> Iterator[str]:
    for load in read_loads(result):
        reasons = (load.get("usage") or {}).get("reasons") or {}
        if key in reasons:
            yield str(reasons[key])


def _list_environment_reasons(key: str, result: Facts) -> Iterator[str]:
    for load in read_loads(result):
        for host in (load.get("interference") or {}).values():
            if key in (reasons := host.get("reasons") or {}):
                yield str(reasons[key])


def _list_price_reasons(trial: Trial, values: Mapping[str, float]) -> Iterator[str]:
    if not values.get("requests.rate") and not values.get("capacity.rate"):
        yield "no rate was measured"
    placed = [place.host for place in trial.job.placements.select_related("host__profile")]
    for host in (trial.host, *placed):
        if host is not None and host.profile.price_per_hour is None:
            yield f"the hardware profile {host.profile.name} has no price an hour"
    yield "its hosts had no price an hour when it was measured"
