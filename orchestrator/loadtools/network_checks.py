"""Whether the emulated network was the one that the definition asks for, as measured before."""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from cli.pitwall.units import format_percent, format_seconds
from orchestrator.loadtools.emulated_network import EmulatedNetwork, format_bit_rate
from orchestrator.loadtools.evidence import Evidence
from orchestrator.loadtools.model import Reason
from orchestrator.loadtools.thresholds import THRESHOLDS

#: The machine itself needs a part of each round trip.
LEAST_DELAY_ERROR_S = 0.0005
#: Jitter is known from a few hundred round trips: four standard errors are a quarter of it.
JITTER_ERROR, LEAST_JITTER_ERROR_S = 0.25, 0.0002
#: Lost packets are counted, and their number varies by chance: so many standard deviations.
LOSS_DEVIATIONS = 4.0


def _check_network(evidence: Evidence) -> Reason | None:
    requested = evidence.spec.network
    if requested is None:
        return None
    measured = evidence.result.get("network")
    issues = list(find_differences(requested, measured)) if measured else ["nothing was measured"]
    if not issues:
        return None
    observation = f"requested was {requested}, but {'; '.join(issues)}"
    return THRESHOLDS["network_differs"].build_reason(observation)


def find_differences(requested: EmulatedNetwork, measured: Mapping[str, Any]) -> Iterator[str]:
    """Yield how a network differs from what was requested; `measured`: NETWORK of the agent."""
    yield from _check_delay(requested, measured["round_trip_s"])
    if requested.jitter_s:
        yield from _check_jitter(requested, measured["jitter_s"])
    for direction, counts in measured["lost"].items():
        yield from _check_loss(requested, str(direction)[:20], counts["lost"], counts["sent"])
    if requested.rate_bps is not None:
        for direction, rate in (measured["rate_bps"] or {"all packets": 0.0}).items():
            yield from _check_rate(requested.rate_bps, str(direction)[:20], rate)
    if measured["changed"]:
        yield "something changed it under load"


def _check_delay(requested: EmulatedNetwork, round_trip_s: float | None) -> Iterator[str]:
    if round_trip_s is None:
        yield "no packet came back"
        return
    allowed_s = max(_get_share() * requested.delay_s, LEAST_DELAY_ERROR_S)
    if abs(round_trip_s - requested.delay_s) > allowed_s:
        yield f"a round trip took {format_seconds(round_trip_s)}"


def _check_jitter(requested: EmulatedNetwork, jitter_s: float | None) -> Iterator[str]:
    if jitter_s is None:
        yield "too few packets came back to know the jitter"
        return
    allowed_s = max(JITTER_ERROR * requested.jitter_s, LEAST_JITTER_ERROR_S)
    if abs(jitter_s - requested.jitter_s) > allowed_s:
        yield f"the jitter was {format_seconds(jitter_s)}"


def _check_loss(requested: EmulatedNetwork, direction: str, lost: int, sent: int) -> Iterator[str]:
    expected = sent * requested.loss
    chance = LOSS_DEVIATIONS * math.sqrt(expected * (1 - requested.loss))
    if abs(lost - expected) > _get_share() * expected + chance + 1:
        share = format_percent(lost / sent) if sent else "none"
        yield f"{lost:,} of {sent:,} packets of {direction} were lost ({share})"


def _check_rate(asked_bps: float, direction: str, rate_bps: float) -> Iterator[str]:
    if abs(rate_bps / asked_bps - 1) > _get_share():
        yield f"the rate of {direction} was {format_bit_rate(rate_bps)}"


def _get_share() -> float:
    value = THRESHOLDS["network_differs"].value
    assert value is not None
    return value


CHECKS: tuple[Callable[[Evidence], Reason | None], ...] = (_check_network,)
