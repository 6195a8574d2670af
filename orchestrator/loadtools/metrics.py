"""All metrics that a trial can have: key, unit, which direction is better, and margin."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from orchestrator.loadtools.model import Model
from orchestrator.loadtools.oha_figures import OHA_FIGURES
from orchestrator.loadtools.script_metrics import parse_own_metric

Unit = Literal["1/s", "s", "s/1k", "count", "ratio", "B", "B/s", "B/1k", "J/1k", "money/1M"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """`margin` is the relative change below which a change does not matter.

    `informational` metrics are shown but never judged: the tool's own values, which count too much,
    and values without a ratio. `from_whole_load`: includes the warm-up.
    """

    key: str
    title: str
    unit: Unit
    better: Literal["higher", "lower"]
    margin: float = 0.03
    informational: bool = False
    from_whole_load: bool = False


PERCENTILES: tuple[float, ...] = (10, 25, 50, 75, 90, 95, 99, 99.9, 99.99)
FIRST_BYTE_PERCENTILES: tuple[float, ...] = (10, 25, 50, 75, 90, 95, 99, 99.9, 99.99)
_MARGINS: Mapping[float, float] = {90: 0.05, 95: 0.05, 99: 0.05, 99.9: 0.10, 99.99: 0.10}

_STATUS_KEY = re.compile(r"status\.([1-9][0-9]{0,2})\.ratio")

#: Metrics that decide the verdict of a case.
PRIMARY: Mapping[Model, tuple[str, ...]] = {
    "closed": ("requests.rate", "latency.p50", "cpu.seconds_per_1k"),
    "open": ("latency.p99", "latency.p50", "cpu.seconds_per_1k"),
}
#: The same if the client is measured.
PRIMARY_OF_CLIENT = ("requests.rate", "latency.p50", "cpu.tool_seconds_per_1k")
#: The shares of the baseline's capacity at which variants are compared.
CAPACITY_SHARES: tuple[float, ...] = (0.5, 0.8, 0.95)

#: It informs, and never decides: two searches are no comparison of two commits.
CAPACITY_METRIC = "capacity.rate"

#: Notes that must accompany each displayed latency of this model.
LATENCY_LABELS: Mapping[Model, str] = {
    "closed": "closed loop: slow answers delay the next request, so waiting is undercounted",
    "open": "open loop: from when the request was due",
}


def choose_deciding_metrics(primary: Sequence[str], measured: Collection[str]) -> tuple[str, ...]:
    """Return those of the `primary` metrics of a case that were `measured`.

    If none was, such as for a script with metrics of its own, return all that can be judged. The
    capacity of a search is never among them.
    """
    able = [key for key in measured if key != CAPACITY_METRIC]
    chosen = tuple(key for key in primary if key in able)
    return chosen or tuple(each.key for each in find_metrics(able) if not each.informational)


def is_judged_custom_metric(key: str) -> bool:
    """Return whether a script or a client reported this metric with a direction."""
    own = _build_script_metric(key)
    return own is not None and not own.informational


def build_percentile_key(percentile: float, prefix: str = "latency") -> str:
    """Return `latency.p99.9` for 99.9."""
    return f"{prefix}.p{percentile:g}"


def build_share_key(share: float, key: str) -> str:
    """Return `capacity.at_95.latency.p99` for 0.95 and the metric of an ordinary load."""
    return f"capacity.at_{share * 100:.0f}.{key}"


def select_share_readings(share: float, readings: Mapping[str, float]) -> dict[str, float]:
    """Return the readings of a load at a share of the capacity, with the keys of that share."""
    keys = {key: build_share_key(share, key) for key in readings}
    return {new: readings[key] for key, new in keys.items() if new in METRICS}


def build_status_key(status: int) -> str:
    """Return the key of the share of responses with a status, such as `status.302.ratio`."""
    return f"status.{status}.ratio"


def find_metric(key: str) -> Metric | None:
    """Return the metric of that key, including those of scripts and statuses; None if unknown."""
    return METRICS.get(key) or _build_status_metric(key) or _build_script_metric(key)


def find_metrics(keys: Collection[str]) -> tuple[Metric, ...]:
    """Return the known metrics of these keys in the order of the registry, then those of statuses
    and scripts."""
    own = [find_metric(key) for key in sorted(keys) if key not in METRICS]
    registered = [metric for key, metric in METRICS.items() if key in keys]
    return (*registered, *(metric for metric in own if metric is not None))


def _build_status_metric(key: str) -> Metric | None:
    match = _STATUS_KEY.fullmatch(key)
    if match is None:
        return None
    # gRPC has statuses up to 16.
    title = f"Answers with {'gRPC ' if int(match[1]) < 100 else ''}status {match[1]}"
    return Metric(
        key=key, title=title, unit="ratio", better="lower", informational=True,
        from_whole_load=True,
    )  # fmt: skip


def _build_script_metric(key: str) -> Metric | None:
    own = parse_own_metric(key)
    if own is None:
        return None
    unit, better, judged = own.suffix
    return Metric(key=key, title=own.title, unit=unit, better=better, informational=not judged)


def describe_latency_model(key: str, model: Model) -> str | None:
    """Return the note for a metric under this model; None if it needs none."""
    return LATENCY_LABELS[model] if key.startswith("latency.") else None


def _list_latency_metrics() -> list[Metric]:
    percentiles = [
        Metric(
            key=build_percentile_key(percentile),
            title=f"Latency p{percentile:g}",
            unit="s",
            better="lower",
            margin=_MARGINS.get(percentile, 0.03),
            informational=percentile < 50,
        )
        for percentile in PERCENTILES
    ]
    extremes = [
        Metric(key=f"latency.{key}", title=title, unit="s", better="lower", informational=True)
        for key, title in (
            ("min", "Fastest answer"),
            ("max", "Slowest answer"),
            ("sd", "Standard deviation of latency"),
        )
    ]
    mean = Metric(key="latency.mean", title="Mean latency", unit="s", better="lower")
    return [mean, *percentiles, *extremes]


def _list_first_byte_metrics() -> list[Metric]:
    return [
        Metric(
            key=build_percentile_key(percentile, "latency.first_byte"),
            title=f"First byte p{percentile:g}",
            unit="s",
            better="lower",
            margin=_MARGINS.get(percentile, 0.03),
            informational=True,
            from_whole_load=True,
        )
        for percentile in FIRST_BYTE_PERCENTILES
    ]


def _build_means() -> list[Metric]:
    return [
        Metric(
            key=key,
            title=title,
            unit="s",
            better="lower",
            informational=True,
            from_whole_load=True,
        )
        for key, title in (
            ("latency.first_byte.mean", "Mean time to first byte"),
            ("connect.mean", "Mean time to connect"),
            ("dns.mean", "Mean time of name look-up"),
        )
    ]


def _list_count_metrics() -> list[Metric]:
    return [
        Metric(
            key="requests.ok", title="Good answers", unit="count", better="higher",
            informational=True,
        ),
        Metric(
            key="requests.answered", title="Answers", unit="count", better="higher",
            informational=True,
        ),
        Metric(
            key="requests.errors", title="Requests without an answer", unit="count",
            better="lower", informational=True, from_whole_load=True,
        ),
        Metric(
            key="success.ratio", title="Share of good answers", unit="ratio", better="higher",
            informational=True, from_whole_load=True,
        ),
        Metric(
            key="requests.delivered_ratio", title="Share of the offered rate", unit="ratio",
            better="higher", informational=True,
        ),
    ]  # fmt: skip


def _list_cpu_metrics() -> list[Metric]:
    return [
        Metric(
            key="cpu.seconds_per_1k", title="Server CPU per 1,000 requests", unit="s/1k",
            better="lower", from_whole_load=True,
        ),
        Metric(
            key="cpu.tool_share", title="Share of its CPUs that the load tool used", unit="ratio",
            better="lower", informational=True, from_whole_load=True,
        ),
        Metric(
            key="cpu.tool_seconds_per_1k", title="Load tool's CPU per 1,000 requests",
            unit="s/1k", better="lower", informational=True, from_whole_load=True,
        ),
        Metric(
            key="cpu.services_seconds_per_1k", title="Services' CPU per 1,000 requests",
            unit="s/1k", better="lower", informational=True, from_whole_load=True,
        ),
    ]  # fmt: skip


def _list_machine_metrics() -> list[Metric]:
    return [
        Metric(
            key="body.bytes_per_1k", title="Body bytes per 1,000 answers", unit="B/1k",
            better="lower", informational=True,
        ),
        Metric(
            key="network.bytes_per_1k", title="Network bytes per 1,000 answers, both directions",
            unit="B/1k", better="lower", informational=True, from_whole_load=True,
        ),
        Metric(
            key="energy.joules_per_1k", title="Energy of the hosts' CPUs per 1,000 answers",
            unit="J/1k", better="lower", informational=True, from_whole_load=True,
        ),
        Metric(
            key="cost.money_per_1m", title="Price of the hosts for a million answers",
            unit="money/1M", better="lower", informational=True,
        ),
        Metric(
            key="memory.tool_peak", title="Peak memory of the load tool", unit="B",
            better="lower", informational=True, from_whole_load=True,
        ),
        Metric(
            key="memory.server_peak", title="Peak memory of the server", unit="B",
            better="lower", from_whole_load=True,
        ),
    ]  # fmt: skip


def _list_capacity_metrics() -> list[Metric]:
    return [
        Metric(key=CAPACITY_METRIC, title="Capacity", unit="1/s", better="higher"),
        *(
            Metric(key=key, title=title, unit="1/s", better="higher", informational=True)
            for key, title in (
                ("capacity.low", "Capacity, lower bound"),
                ("capacity.high", "Capacity, upper bound"),
            )
        ),
        Metric(
            key="capacity.probes", title="Loads that the search took", unit="count",
            better="lower", informational=True,
        ),
    ]  # fmt: skip


def _list_share_metrics() -> list[Metric]:
    ordinary = (*_list_latency_metrics(), *_list_cpu_metrics())
    return [
        replace(
            metric,
            key=build_share_key(share, metric.key),
            title=f"{metric.title} at {share:.0%} of the baseline's capacity",
        )
        for share in CAPACITY_SHARES
        for metric in ordinary
        if not metric.informational
    ]


def _list_oha_metrics() -> list[Metric]:
    return [
        Metric(
            key=figure.key,
            title=figure.title,
            unit=figure.unit,
            better=figure.better,
            informational=True,
            from_whole_load=True,
        )
        for figure in OHA_FIGURES
    ]


_ALL = (
    Metric(key="requests.rate", title="Requests per second", unit="1/s", better="higher"),
    *_list_latency_metrics(),
    Metric(
        key="throughput.bytes_per_s", title="Body bytes per second", unit="B/s", better="higher"
    ),
    Metric(
        key="throughput.sent_bytes_per_s",
        title="Body bytes sent per second",
        unit="B/s",
        better="higher",
        informational=True,
    ),
    *_list_cpu_metrics(),
    *_list_machine_metrics(),
    *_list_count_metrics(),
    *_list_first_byte_metrics(),
    *_build_means(),
    *_list_capacity_metrics(),
    *_list_share_metrics(),
    *_list_oha_metrics(),
)

METRICS: Mapping[str, Metric] = MappingProxyType({metric.key: metric for metric in _ALL})
