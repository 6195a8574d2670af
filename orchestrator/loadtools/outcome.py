"""Reasons against a trial from the end of its load and the results of its requests."""

from collections.abc import Callable, Mapping

from cli.pitwall.units import format_percent
from orchestrator.loadtools.evidence import Evidence
from orchestrator.loadtools.model import Reason
from orchestrator.loadtools.thresholds import THRESHOLDS, format_quantity

#: Without these limits, the host is not the machine of the definition.
DECISIVE_LIMITS = frozenset({"cpu_quota"})
_NEVER_ARRIVED = {"connect", "dns", "refused", "timeout", "tls", "unsent"}


def _build_reason(code: str, observation: str) -> Reason:
    return THRESHOLDS[code].build_reason(observation)


def _check_tool_crash(evidence: Evidence) -> Reason | None:
    code, signal = evidence.result.get("rc"), evidence.result.get("signal")
    if evidence.result.get("hung") or (code == 0 and signal is None):
        return None
    return _build_reason("tool_crashed", f"the load tool ended with status {code}, signal {signal}")


def _check_hang(evidence: Evidence) -> Reason | None:
    if not evidence.result.get("hung"):
        return None
    return _build_reason("hung", "the load did not end within its limit and was interrupted")


def _check_server_death(evidence: Evidence) -> Reason | None:
    status = evidence.result.get("server_exit")
    if status is None:
        return None
    return _build_reason(
        "server_died", f"the server ended by itself under load, with status {status}"
    )


def _check_ended_workers(evidence: Evidence) -> Reason | None:
    count = (evidence.result.get("usage") or {}).get("ended_workers")
    if not THRESHOLDS["workers_ended"].is_broken_by(count):
        return None
    return _build_reason("workers_ended", f"{count} processes of the server ended")


def _parse_mismatch(evidence: Evidence) -> Reason | None:
    if evidence.rows_match:
        return None
    return _build_reason(
        "parse_mismatch", "the tool's rows and its summary describe different requests"
    )


def _check_no_answers(evidence: Evidence) -> Reason | None:
    if evidence.answered_of_load:
        return None
    if evidence.errors:
        unreached = set(evidence.errors) <= _NEVER_ARRIVED
        code = "target_unreachable" if unreached else "no_answers"
        return _build_reason(code, f"no request was answered: {_format_kinds(evidence.errors)}")
    if evidence.truncated:
        return _build_reason("all_truncated", "no request was answered before the load ended")
    return _build_reason("no_answers", "no request was answered")


def _find_empty_window(evidence: Evidence) -> Reason | None:
    if evidence.ok.n or evidence.other.n or not evidence.answered_of_load:
        return None
    return _build_reason("empty_window", "every answered request started during the warm-up")


def _check_http_errors(evidence: Evidence) -> Reason | None:
    if not THRESHOLDS["http_errors"].is_broken_by(evidence.other.n):
        return None
    total = evidence.ok.n + evidence.other.n
    good = " or ".join(map(str, evidence.spec.good_statuses))
    return _build_reason(
        "http_errors", f"{evidence.other.n} of {total} answers had a status other than {good}"
    )


def _check_transport_errors(evidence: Evidence) -> Reason | None:
    errors = evidence.errors or {}
    failed, answered = sum(errors.values()), evidence.answered_of_load
    if not answered:
        return None
    share = failed / (answered + failed)
    if not THRESHOLDS["transport_errors"].is_broken_by(share):
        return None
    observation = (
        f"{failed} requests, {format_quantity(share, 'share')}, got no answer, "
        f"{_format_kinds(errors)}"
    )
    return _build_reason("transport_errors", observation)


def _format_kinds(errors: Mapping[str, int]) -> str:
    return ", ".join(f"{name} × {n}" for name, n in sorted(errors.items()))


def _check_delivery(evidence: Evidence) -> Reason | None:
    if not THRESHOLDS["underdelivered"].is_broken_by(evidence.delivered):
        return None
    return _build_reason(
        "underdelivered",
        f"only {format_percent(evidence.delivered or 0.0)} of the offered "
        f"{evidence.load.rate or 0:g}/s was answered correctly, {_explain_shortfall(evidence)}",
    )


def _explain_shortfall(evidence: Evidence) -> str:
    """Return why the offered rate was not reached.

    A server is saturated only if it was slow: it ran to the end, failures do not explain the
    missing answers, and the tool is known to have had CPU left.
    """
    if evidence.result.get("server_exit") is not None:
        return "the server ended"
    if _check_tool_crash(evidence) or evidence.result.get("hung"):
        return "the load tool did not end properly"
    if THRESHOLDS["tool_bound"].is_broken_by(evidence.tool_share):
        return "the load tool did not keep up"
    if not THRESHOLDS["underdelivered"].is_broken_by(_compute_share_with_failures(evidence)):
        return "the other requests failed"
    if evidence.tool_share is None:
        return "the load tool or the server did not keep up"
    return "the server is saturated"


def _compute_share_with_failures(evidence: Evidence) -> float:
    """Return the share of the offered rate that was answered, correctly or not, or failed."""
    failed = evidence.other.n + sum((evidence.errors or {}).values())
    attempted = evidence.ok.n + failed
    if not attempted or not evidence.ok.n:
        return 1.0 if failed else 0.0
    return (evidence.delivered or 0.0) * attempted / evidence.ok.n


def _check_failed(evidence: Evidence) -> Reason | None:
    failed = [each for each in evidence.result.get("checks") or () if each.get("problem")]
    if not failed:
        return None
    failures = [f"{each['name']} {each['when']} the load: {each['problem']}" for each in failed]
    return _build_reason("check_failed", "; ".join(failures))


def _link_stalled(evidence: Evidence) -> Reason | None:
    """The hosts of a job poll each other once a second during a load."""
    gap_s = evidence.result.get("peer_gap_s")
    if gap_s is None or not THRESHOLDS["link_stalled"].is_broken_by(gap_s):
        return None
    return _build_reason(
        "link_stalled",
        f"the link between the hosts was interrupted for {format_quantity(gap_s, 's')}",
    )


def _check_limits(evidence: Evidence) -> Reason | None:
    """Limits of the definition that the host did not apply."""
    refused = {
        f"{process}: {limit}": why
        for process, applied in (evidence.result.get("limits") or {}).items()
        for limit, why in ((applied or {}).get("refused") or {}).items()
    }
    if not refused:
        return None
    decisive = any(name.rpartition(": ")[2] in DECISIVE_LIMITS for name in refused)
    refusals = (f"{name.replace('_', ' ')}: {why}" for name, why in sorted(refused.items()))
    observation = "; ".join(refusals)
    return _build_reason("quota_refused" if decisive else "limits_refused", observation)


def _check_changed_limits(evidence: Evidence) -> Reason | None:
    """Limits that something changed between the start of the processes and the end of the load."""
    changes = [
        f"{process}: {limit.replace('_', ' ')}: {values}"
        for process, applied in sorted((evidence.result.get("limits") or {}).items())
        for limit, values in sorted(((applied or {}).get("changed") or {}).items())
    ]
    return _build_reason("limits_changed", "; ".join(changes)) if changes else None


CHECKS: tuple[Callable[[Evidence], Reason | None], ...] = (
    _check_tool_crash,
    _check_hang,
    _check_server_death,
    _check_ended_workers,
    _parse_mismatch,
    _check_no_answers,
    _find_empty_window,
    _check_http_errors,
    _check_transport_errors,
    _check_delivery,
    _check_failed,
    _link_stalled,
    _check_limits,
    _check_changed_limits,
)
