"""Loads at fixed shares of a known capacity, in place of another search. No Django.

Two searches are no comparison of two commits: each result is an estimate, and a commit whose
latency varies more has another slope. So once the capacity of the baseline is known, all variants
are measured at the same rates, one after the other on one server.
"""

from collections.abc import Sequence

from agents.hostagent.protocol import MOST_PASSES
from orchestrator.benchmarks.load import Load, Search
from orchestrator.benchmarks.objective import count_needed_requests
from orchestrator.benchmarks.objective import parse as parse_objective
from orchestrator.benchmarks.spec import Spec
from orchestrator.loadtools.metrics import CAPACITY_SHARES, METRICS, build_share_key

#: The metric that decides if an objective has no latency that is compared.
_USUAL_METRIC = "latency.p50"
#: The longest duration of a load in a definition.
_LONGEST_LOAD_S = 3600.0


def list_share_metrics(search: Search) -> tuple[str, ...]:
    """Return the metrics that decide: the latencies of the objective, at each share."""
    metrics = [term.metric for term in parse_objective(search.objective)]
    share = CAPACITY_SHARES[0]
    known = [key for key in metrics if build_share_key(share, key) in METRICS] or [_USUAL_METRIC]
    return tuple(build_share_key(share, key) for share in CAPACITY_SHARES for key in known)


def compute_share_rates(capacity: float) -> tuple[float, ...]:
    """Return the requests per second at each of `CAPACITY_SHARES`.

    They are whole numbers from 100 on, because some load tools accept no other.
    """
    rates = (share * capacity for share in CAPACITY_SHARES)
    return tuple(float(round(rate)) if rate >= 100 else float(f"{rate:.3g}") for rate in rates)


def replace_search(spec: Spec, rates: Sequence[float]) -> Spec:
    """Return the definition of a case (see `resolve`) with loads at these rates, without a search.

    Each load has the requests that the percentiles of the objective need. Raise ValueError for
    rates that are not those of `compute_share_rates`.
    """
    search = spec.load.search
    if search is None or len(rates) != len(CAPACITY_SHARES):
        raise ValueError(f"expected a search and {len(CAPACITY_SHARES)} rates, got {len(rates)}")
    steps = [
        {
            "rate": rate,
            "duration_s": _compute_duration_s(search, rate),
            "warmup_s": spec.load.warmup_s,
        }
        for rate in rates
    ]
    data = {**spec.load.model_dump(), "search": None, "steps": steps}
    return spec.model_copy(update={"load": Load.model_validate(data)})


def _compute_duration_s(search: Search, rate: float) -> float:
    """Return the seconds of a load, which a probe at the lowest rate of the search bounds."""
    needed_s = count_needed_requests(parse_objective(search.objective)) / rate
    longest_s = MOST_PASSES * search.probe_s / min(CAPACITY_SHARES)
    return min(_LONGEST_LOAD_S, longest_s, max(search.probe_s, needed_s))
