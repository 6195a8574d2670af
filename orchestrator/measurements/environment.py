"""The environment of the hosts of a trial before and during the load, read from its files."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.measurements.trial_files import Facts, read_loads
from orchestrator.runs.models import HostRole, Trial

_TITLES = {"server": "server", "tool": "load tool"}
#: The labels that the dispatcher gives to the hosts of a job, the target's first.
_LABELS = "abc"


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedLimits:
    """The limits that applied to one process of a trial; None if it had no limit or it is unknown.

    `refused`: (limit, reason why it could not be applied). `changed`: (limit, its values before and
    after the load).
    """

    process: str
    mechanism: str
    cpus: tuple[int, ...] | None
    cpu_quota: float | None
    memory_bytes: int | None
    open_files: int | None
    throttled: int | None
    oom_kills: int | None
    refused: tuple[tuple[str, str], ...]
    changed: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialEnvironment:
    """The environment of one host: ENVIRONMENT and INTERFERENCE of
    agents/hostagent/monitoring/environment.py.

    `host` is its name, or its label in the plan if the name is unknown. With several loads,
    `during` has the worst value of each fact.
    """

    host: str
    before: Facts
    during: Facts
    loads: int


def build_environments(trial: Trial, result: Facts) -> list[TrialEnvironment]:
    """Return the environment of each host that reported one, from the result.json of the trial."""
    before = result.get("hosts") or {}
    loads = [each.get("interference") or {} for each in read_loads(result)]
    names = map_host_names(trial)
    labels = sorted({*before, *(label for load in loads for label in load)})
    return [
        TrialEnvironment(
            host=names.get(label, label),
            before=before.get(label) or {},
            during=merge_interference([load[label] for load in loads if load.get(label)]),
            loads=len(loads),
        )
        for label in labels
    ]


def merge_interference(looks: Sequence[Facts]) -> Facts:
    """Merge several INTERFERENCE: the highest numbers, the widest ranges, flags if set in any."""
    if len(looks) < 2:
        return looks[0] if looks else {}
    keys = dict.fromkeys(key for look in looks for key in look)
    worst = {key: _find_worst_value([look.get(key) for look in looks]) for key in keys}
    busiest = max(looks, key=lambda look: look.get("foreign_share") or 0.0)
    reasons = {key: why for look in looks for key, why in (look.get("reasons") or {}).items()}
    missing_reasons = {key: why for key, why in reasons.items() if worst.get(key) is None}
    changed = [look.get("changed_settings") or {} for look in looks]
    return {
        **worst,
        "foreign": busiest.get("foreign"),
        "changed_settings": {name: why for each in changed for name, why in each.items()},
        "reasons": missing_reasons,
    }


def read_tuning(result: Facts) -> dict[str, Any]:
    """Return the settings that were set for the trial, by the label of the host in the plan."""
    environments: Mapping[str, Facts] = result.get("hosts") or {}
    return {
        label: (facts.get("tuning") or {}).get("applied") for label, facts in environments.items()
    }


def list_applied_limits(trial: Trial) -> list[AppliedLimits]:
    """Return the limits of the server, the load tool and the services, as read back on the host."""
    limits = trial.provenance.get("limits") or {}
    order = sorted(limits, key=lambda process: (process not in _TITLES, process))
    return [_read_applied_limits(process, limits[process]) for process in order if limits[process]]


def _find_worst_value(values: Iterable[Any]) -> Any:
    known = [value for value in values if value is not None]
    if known and all(isinstance(value, list) for value in known):
        ends = [end for value in known for end in value]
        return [min(ends), max(ends)] if ends and all(map(_is_number, ends)) else known[0]
    if known and all(map(_is_number, known)):
        return max(known, key=abs)
    return next(iter(known), None)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def map_host_names(trial: Trial) -> Mapping[str, str]:
    """Map the labels of the plan to host names: each host once, in the order of the roles."""
    hosts = trial.provenance.get("hosts") or {}
    target = hosts.get(HostRole.TARGET) or (trial.host.name if trial.host else None)
    played = (hosts.get(role) or target for role in HostRole.values)
    return dict(zip(_LABELS, dict.fromkeys(name for name in played if name), strict=False))


def _read_applied_limits(process: str, applied: Mapping[str, Any]) -> AppliedLimits:
    cpus = applied.get("cpus")
    return AppliedLimits(
        process=format_process(process),
        mechanism=str(applied.get("mechanism") or ""),
        cpus=None if cpus is None else tuple(cpus),
        cpu_quota=applied.get("cpu_quota"),
        memory_bytes=applied.get("memory_bytes"),
        open_files=applied.get("open_files"),
        throttled=applied.get("throttled"),
        oom_kills=applied.get("oom_kills"),
        refused=tuple((applied.get("refused") or {}).items()),
        changed=tuple((applied.get("changed") or {}).items()),
    )


def format_process(process: str) -> str:
    """Format `service:redis:1` as `redis 1`."""
    return _TITLES.get(process) or process.removeprefix("service:").replace(":", " ")
