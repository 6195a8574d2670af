"""May a trial be believed? Facts of its environment and of its load; never its value.

Thresholds are starting values: keep them here, as data.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.loadtools.costs import loading_s
from orchestrator.loadtools.model import (
    Distribution,
    Level,
    LoadFacts,
    LoadSpec,
    Reason,
    Validity,
)

MAX_ERROR_SHARE = 0.001
MIN_DELIVERED = 0.99
BUSY_TOOL_SHARE = 0.85
BOUND_TOOL_SHARE = 0.95
MAX_STEAL_SHARE = 0.02
LITTLES_LAW_TOLERANCE = 0.10
MAX_PEER_GAP_S = 3.0
#: A limit without which another machine is measured than the definition says.
DECISIVE_LIMITS = frozenset({"cpu_quota"})
_NEVER_ARRIVED = {"refused", "dns", "timeout", "tls"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a verdict on a load rests on: what was asked, what came.

    `rows` is the agent's rows.json; `result` its result.json with the fields of the load among
    them. `errors` is None where the tool does not tell all of them. `spoken`: every protocol that
    the tool or a check saw, the tool first.
    """

    spec: LoadSpec
    load: LoadFacts
    ok: Distribution
    other: Distribution
    answered_of_load: int
    errors: Mapping[str, int] | None
    truncated: int
    delivered: float | None
    rate: float | None
    tool_share: float | None
    rows_match: bool
    spoken: tuple[str, ...]
    rows: Mapping[str, Any]
    result: Mapping[str, Any]


def judge(evidence: Evidence) -> Validity:
    """All reasons not to believe the trial, or to be careful; none at all: it is valid."""
    found = (check(evidence) for check in _CHECKS)
    return Validity(reasons=tuple(reason for reason in found if reason is not None))


def _invalid(code: str, message: str) -> Reason:
    return Reason(code=code, level=Level.INVALID, message=message)


def _suspect(code: str, message: str) -> Reason:
    return Reason(code=code, level=Level.SUSPECT, message=message)


def _tool_crashed(evidence: Evidence) -> Reason | None:
    code, signal = evidence.result.get("rc"), evidence.result.get("signal")
    if evidence.result.get("hung") or (code == 0 and signal is None):
        return None
    return _invalid("tool_crashed", f"the load tool ended with status {code}, signal {signal}")


def _hung(evidence: Evidence) -> Reason | None:
    if not evidence.result.get("hung"):
        return None
    return _invalid("hung", "the load did not end within its limit and was interrupted")


def _server_died(evidence: Evidence) -> Reason | None:
    status = evidence.result.get("server_exit")
    if status is None:
        return None
    return _invalid("server_died", f"the server ended by itself under load, with status {status}")


def _parse_mismatch(evidence: Evidence) -> Reason | None:
    if evidence.rows_match:
        return None
    return _invalid("parse_mismatch", "the tool's rows and its summary tell of different requests")


def _no_answers(evidence: Evidence) -> Reason | None:
    if evidence.answered_of_load:
        return None
    if evidence.errors:
        kinds = ", ".join(f"{name} × {n}" for name, n in sorted(evidence.errors.items()))
        unreached = set(evidence.errors) <= _NEVER_ARRIVED
        code = "target_unreachable" if unreached else "no_answers"
        return _invalid(code, f"no request was answered: {kinds}")
    if evidence.truncated:
        return _invalid("all_truncated", "no request was answered before the load ended")
    return _invalid("no_answers", "no request was answered")


def _nothing_counted(evidence: Evidence) -> Reason | None:
    if evidence.ok.n or evidence.other.n or not evidence.answered_of_load:
        return None
    return _invalid("empty_window", "every answered request started during the warm-up")


def _http_errors(evidence: Evidence) -> Reason | None:
    if not evidence.other.n:
        return None
    total = evidence.ok.n + evidence.other.n
    return _invalid(
        "http_errors", f"{evidence.other.n} of {total} answers had a status outside 200 to 399"
    )


def _transport_errors(evidence: Evidence) -> Reason | None:
    errors = evidence.errors or {}
    failed = sum(errors.values())
    answered = evidence.answered_of_load
    if not answered or failed <= MAX_ERROR_SHARE * (answered + failed):
        return None
    kinds = ", ".join(f"{name} × {n}" for name, n in sorted(errors.items()))
    return _invalid("transport_errors", f"{failed} requests got no answer: {kinds}")


def _underdelivered(evidence: Evidence) -> Reason | None:
    if evidence.delivered is None or evidence.delivered >= MIN_DELIVERED:
        return None
    return _invalid(
        "underdelivered",
        f"only {evidence.delivered:.1%} of the offered {evidence.load.rate:g}/s was answered well: "
        "the server is saturated at this rate",
    )


def _tool_bound(evidence: Evidence) -> Reason | None:
    share = evidence.tool_share
    if share is None or share <= BUSY_TOOL_SHARE:
        return None
    level = Level.INVALID if share > BOUND_TOOL_SHARE else Level.SUSPECT
    message = f"the load tool used {share:.0%} of its CPUs: it may be what limits the rate"
    return Reason(code="tool_bound", level=level, message=message)


def _contaminated(evidence: Evidence) -> Reason | None:
    """Steal is told for the whole machine; the CPUs of the tool are the least it can have."""
    stolen_s = (evidence.result.get("usage") or {}).get("steal_s")
    wall_s = loading_s(evidence.result)
    if stolen_s is None or wall_s is None:
        return None
    share = stolen_s / (wall_s * evidence.load.tool_cpus)
    if share <= MAX_STEAL_SHARE:
        return None
    return _suspect("contaminated", f"the hypervisor took {share:.1%} of the CPU time away")


def _littles_law(evidence: Evidence) -> Reason | None:
    mean_s = evidence.ok.mean_s()
    if evidence.load.model != "closed" or evidence.other.n or evidence.errors:
        return None
    if mean_s is None or evidence.rate is None:
        return None
    in_flight = evidence.rate * mean_s
    expected = evidence.load.connections * evidence.load.streams
    if abs(in_flight / expected - 1) <= LITTLES_LAW_TOLERANCE:
        return None
    return _suspect(
        "littles_law",
        f"rate × latency gives {in_flight:.1f} requests in flight, but {expected} requests "
        "could be under way: part of the time is spent outside of requests",
    )


def _limits_refused(evidence: Evidence) -> Reason | None:
    """A limit that the definition gives and that did not hold on the host."""
    refused = {
        f"{process}: {limit}": why
        for process, applied in (evidence.result.get("limits") or {}).items()
        for limit, why in (applied.get("refused") or {}).items()
    }
    if not refused:
        return None
    decisive = any(name.rpartition(": ")[2] in DECISIVE_LIMITS for name in refused)
    return Reason(
        code="limits_refused",
        level=Level.INVALID if decisive else Level.SUSPECT,
        message="; ".join(f"{name}: {why}" for name, why in sorted(refused.items())),
    )


def _peer_gap(evidence: Evidence) -> Reason | None:
    """The hosts of a job ask each other once a second while a load runs."""
    gap_s = evidence.result.get("peer_gap_s")
    if gap_s is None or gap_s <= MAX_PEER_GAP_S:
        return None
    return _invalid("link_stalled", f"the link between the hosts stood still for {gap_s:.1f} s")


_CHECKS: tuple[Callable[[Evidence], Reason | None], ...] = (
    _tool_crashed,
    _hung,
    _server_died,
    _parse_mismatch,
    _no_answers,
    _nothing_counted,
    _http_errors,
    _transport_errors,
    _underdelivered,
    _tool_bound,
    _contaminated,
    _littles_law,
    _limits_refused,
    _peer_gap,
)
