"""The environment of a trial's hosts in words, with thresholds."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cli.pitwall.units import format_number, format_seconds, format_value
from orchestrator.loadtools.thresholds import THRESHOLDS, format_quantity
from orchestrator.measurements.environment import TrialEnvironment
from orchestrator.measurements.trial_files import Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentRow:
    """`value` is None if the host did not report it, and `why` says why.

    `good` is the threshold, "" if there is none. `state`: `fine`, `flagged` (the trial has this
    reason), `not counted` (beyond the threshold, but no reason by the rules) or "".
    """

    title: str
    value: str | None
    reason: str
    good: str
    code: str
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEnvironment:
    host: str
    loads: int
    before: tuple[EnvironmentRow, ...]
    during: tuple[EnvironmentRow, ...]


FactFormatter = Callable[[Any, Facts], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fact:
    """A key of ENVIRONMENT or INTERFERENCE; `code` is the reason that it can cause.

    `also` are further reasons that it can cause. `alone`: the value itself is compared with its
    threshold.
    """

    key: str
    format_value: FactFormatter
    title: str = ""
    code: str = ""
    also: tuple[str, ...] = ()
    good: str = "{}"
    alone: bool = True


def _share(value: float, _: Facts) -> str:
    return format_quantity(value, "share")


def _format_cores(value: float, facts: Facts) -> str:
    return f"{format_quantity(value, 'cores')}{_format_names(facts)}"


def _format_names(facts: Facts) -> str:
    processes = [
        f"{each['name']} {format_seconds(each['cpu_s'])}" for each in facts.get("foreign") or ()
    ]
    return f" ({', '.join(processes)})" if processes else ""


def _count(value: float, _: Facts) -> str:
    return format_number(value, digits=6)


def _load(value: float, facts: Facts) -> str:
    cpus = facts.get("cpus")
    return f"{format_number(value)} on {cpus} CPUs" if cpus else format_number(value)


def _format_yes_no(value: bool, _: Facts) -> str:
    return "yes" if value else "no"


def _format_seconds(value: float, _: Facts) -> str:
    # Smaller differences are within the error of two readings of the clocks.
    return "none" if abs(value) < 1e-4 else format_quantity(value, "s")


def _format_rate(value: float, _: Facts) -> str:
    return format_quantity(value, "B/s")


def _format_joules(value: float, _: Facts) -> str:
    return format_value(value, "J")


def _format_tuning(value: Mapping[str, Any], _: Facts) -> str:
    return _format_settings(value.get("applied") or {}, _)


def _format_settings(value: Mapping[str, Any], _: Facts) -> str:
    return ", ".join(f"{name}: {text}" for name, text in value.items()) or "none"


def _build_span_formatter(unit: str) -> FactFormatter:
    def format_value(value: float | Sequence[float], _: Facts) -> str:
        ends = value if isinstance(value, Sequence) else (value,)
        texts = dict.fromkeys(format_number(end) for end in ends)
        return f"{' to '.join(texts)} {unit}"

    return format_value


_BEFORE: tuple[_Fact, ...] = (
    _Fact(key="busy_share", format_value=_share, code="busy_before"),
    _Fact(key="pressure", format_value=_share, code="pressure_before"),
    _Fact(
        key="load1", format_value=_load, title="Load average (1 minute)", code="load_before",
        good="{} per core, if CPU time is unknown", alone=False,
    ),
    _Fact(key="run_queue", format_value=_count, title="Runnable processes"),
    _Fact(key="temperature_c", format_value=_build_span_formatter("°C"), title="Temperature"),
    _Fact(key="clock_mhz", format_value=_build_span_formatter("MHz"), title="Clock"),
    _Fact(key="on_battery", format_value=_format_yes_no, code="on_battery"),
    _Fact(
        key="tuning", format_value=_format_tuning, title="Tuning", code="tuning_refused",
        good="set completely", alone=False,
    ),
)  # fmt: skip
_DURING: tuple[_Fact, ...] = (
    _Fact(
        key="foreign_share", format_value=_format_cores, title="CPU of other processes",
        code="foreign_process",
        also=("busy_neighbour", "virus_scan"),
    ),
    _Fact(key="pressure_share", format_value=_share, code="cpu_pressure"),
    _Fact(key="steal_share", format_value=_share, code="steal"),
    _Fact(
        key="clock_mhz", format_value=_build_span_formatter("MHz"), title="Clock",
        code="clock_drop",
        good="{} of the highest under load", alone=False,
    ),
    _Fact(
        key="temperature_c", format_value=_build_span_formatter("°C"), title="Temperature",
        code="heating",
        good="{} hotter at the end", alone=False,
    ),
    _Fact(
        key="clock_limit_mhz", format_value=_build_span_formatter("MHz"), title="Clock limit",
        code="clock_limited",
        good="constant", alone=False,
    ),
    _Fact(
        key="clock_base_mhz", format_value=_build_span_formatter("MHz"), title="Base clock",
        code="clock_below_base",
        good="clock {} of it", alone=False,
    ),
    _Fact(key="throttle_count", format_value=_count, code="throttled_by_heat"),
    _Fact(
        key="cooling_state", format_value=_count, title="State of cooling devices",
        code="throttled_by_heat",
    ),
    _Fact(
        key="changed_settings", format_value=_format_settings, title="Changed tuning",
        code="tuning_changed",
        alone=False,
    ),
    _Fact(key="log_bytes_per_s", format_value=_format_rate, code="chatty_log"),
    _Fact(key="swapped_pages", format_value=_count, code="swapping"),
    _Fact(key="quota_periods", format_value=_count, code="foreign_quota"),
    _Fact(key="listen_overflows", format_value=_count, code="listen_overflow"),
    _Fact(key="retransmitted_share", format_value=_share, code="retransmissions"),
    _Fact(key="ports_exhausted", format_value=_format_yes_no, code="ports_exhausted"),
    _Fact(key="clock_step_s", format_value=_format_seconds, code="clock_stepped"),
    _Fact(key="suspended_s", format_value=_format_seconds, code="suspended"),
    _Fact(key="on_battery", format_value=_format_yes_no, code="on_battery"),
    _Fact(key="energy_j", format_value=_format_joules, title="CPU energy"),
)  # fmt: skip


def build_host_environments(
    environments: Sequence[TrialEnvironment], codes: Collection[str]
) -> list[HostEnvironment]:
    """Return the rows.

    `codes` are the stored reasons of the trial: as judged then, not by today's rules.
    """
    return [
        HostEnvironment(
            host=each.host,
            loads=each.loads,
            before=tuple(_build_environment_rows(_BEFORE, each.before, codes)),
            during=tuple(_build_environment_rows(_DURING, each.during, codes)),
        )
        for each in environments
    ]


def _build_environment_rows(
    facts: Sequence[_Fact], report: Facts, codes: Collection[str]
) -> Iterator[EnvironmentRow]:
    reasons: Mapping[str, str] = report.get("reasons") or {}
    for fact in facts if report else ():
        given = next((code for code in (fact.code, *fact.also) if code in codes), fact.code)
        value, rule = report.get(fact.key), THRESHOLDS.get(given)
        yield EnvironmentRow(
            title=fact.title or (rule.title if rule else fact.key),
            value=None if value is None else fact.format_value(value, report),
            reason=reasons.get(fact.key, "not reported") if value is None else "",
            good=fact.good.format(rule.text or "no") if rule else "",
            code=given,
            state=_describe_state(fact, value, given in codes),
        )


def _describe_state(fact: _Fact, value: Any, flagged: bool) -> str:
    rule = THRESHOLDS.get(fact.code)
    if rule is None or value is None:
        return ""
    if flagged:
        return "flagged"
    if not fact.alone:
        return ""
    return "not counted" if rule.is_broken_by(abs(value)) else "fine"
