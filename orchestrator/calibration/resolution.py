"""The number of rounds that a run needs to detect a change of a given size."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from cli.pitwall.units import format_percent
from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Benchmark
from orchestrator.benchmarks.selectors import get_stored_spec
from orchestrator.benchmarks.spec import MAX_ROUNDS
from orchestrator.calibration.earlier_runs import load_earlier_noise
from orchestrator.calibration.sensitivity import (
    count_needed_rounds,
    load_newest_calibration,
    read_noise,
)
from orchestrator.core.errors import InvalidRequestError
from orchestrator.fleet.models import Host
from orchestrator.loadtools.metrics import Metric, find_metrics
from orchestrator.results.models import Calibration
from orchestrator.runs.models import HostRole
from orchestrator.runs.plans import RunPlan, RunRequest, plan_run
from orchestrator.stats.noise import Noise
from orchestrator.stats.paired import FEWEST_BLOCKS
from orchestrator.stats.power import build_claim_rule, compute_smallest_change

FIELD = "resolution"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostNoise:
    """The noise of the first primary metric on a host, by case key; empty if unknown.

    `source` names its basis, for people.
    """

    host: Host
    metric: Metric
    cases: Mapping[str, Noise]
    source: str

    def noisiest(self, keys: set[str]) -> Noise | None:
        """Return the largest noise of these cases, or of all known cases; None if none is known."""
        mine = [noise for key, noise in self.cases.items() if key in keys]
        return max(mine or self.cases.values(), key=lambda noise: noise.upper, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """The rounds that suffice on every host with known noise; `texts` explain the number."""

    rounds: int
    texts: tuple[str, ...]


def with_rounds(*, member: Member, request: RunRequest, change: float) -> RunRequest:
    """Return the request with the rounds that are needed to detect `change` (0.02: 2 %)."""
    # One round: the rest of the plan does not depend on the number.
    plan = plan_run(member=member, request=replace(request, rounds=1, until="rounds"))
    if len(plan.commits) == 1:
        raise InvalidRequestError(
            "a change needs two commits: name a contender, or set a number of rounds",
            field=FIELD,
        )
    return replace(request, rounds=estimate_resolution(plan, change).rounds, until="rounds")


def estimate_resolution(plan: RunPlan, change: float) -> Resolution:
    """Return the rounds that detect `change` on every host with known noise.

    Raise InvalidRequestError if the change is within the margin, if no noise is known, or if no run
    has enough rounds.
    """
    hosts, family = list_targets(plan), count_primary_metrics(plan)
    benchmark = plan.definition.benchmark
    groups = group_by_first_metric(plan)
    _check_margins(groups, change)
    noises = [
        (load_host_noise(host, benchmark, metric), cases)
        for metric, cases in groups.items()
        for host in hosts
    ]
    known = [(each, worst) for each, cases in noises if (worst := each.noisiest(cases)) is not None]
    if not known:
        raise _build_unknown_error(hosts)
    needed = [_count_rounds(each, worst, change, family) for each, worst in known]
    texts = [
        _describe_resolution(each, rounds, change)
        for (each, _), rounds in zip(known, needed, strict=True)
    ]
    unknown = dict.fromkeys(each.host.name for each, _ in noises if not each.cases)
    if unknown:
        names = " and ".join(unknown)
        texts.append(f"The changes that {names} can detect are unknown: nothing was measured there")
    return Resolution(rounds=max(needed), texts=tuple(texts))


def _check_margins(metrics: Iterable[Metric], change: float) -> None:
    """Raise InvalidRequestError for a change that no verdict would report."""
    widest = max(metrics, key=lambda metric: metric.margin)
    if change > widest.margin:
        return
    margin = format_percent(widest.margin)
    raise InvalidRequestError(
        f"a change of {format_percent(change)} is not beyond the margin of {widest.title}, "
        f"{margin}, so it would never be reported as a regression or an improvement. Enter a "
        f"change above {margin}, or set a number of rounds",
        field=FIELD,
    )


def count_primary_metrics(plan: RunPlan) -> int:
    """Return how many primary metrics of all cases and hosts are tested together."""
    spec = get_stored_spec(plan.definition)
    cells = sum(len(spec.list_case_metrics(case.parameters)) for case in plan.cases)
    return len(plan.placements) * cells


def group_by_first_metric(plan: RunPlan) -> dict[Metric, set[str]]:
    """Return the keys of the selected cases by their first primary metric."""
    spec = get_stored_spec(plan.definition)
    groups: dict[Metric, set[str]] = {}
    for case in plan.cases:
        (metric,) = find_metrics(spec.list_case_metrics(case.parameters)[:1])
        groups.setdefault(metric, set()).add(case.key)
    return groups


def list_targets(plan: RunPlan) -> list[Host]:
    """Return the hosts that may be targets, each once."""
    wanted = [roles[HostRole.TARGET] for roles in plan.placements]
    return list(dict.fromkeys(host for one in wanted for host in one.candidates))


def load_host_noise(host: Host, benchmark: Benchmark, metric: Metric) -> HostNoise:
    """Return the noise by the host's calibration with the benchmark.

    If there is none: by earlier comparisons with the benchmark, then by its calibration with
    another benchmark.
    """
    calibration = load_newest_calibration(host, benchmark)
    if calibration is not None and calibration.benchmark == benchmark:
        return _read_calibrated_noise(host, calibration, metric)
    earlier = load_earlier_noise(host, benchmark, metric.key)
    if earlier:
        return HostNoise(host=host, metric=metric, cases=earlier, source="by earlier runs there")
    if calibration is not None:
        return _read_calibrated_noise(host, calibration, metric)
    return HostNoise(host=host, metric=metric, cases={}, source="")


def _read_calibrated_noise(host: Host, calibration: Calibration, metric: Metric) -> HostNoise:
    by_case = {case: read_noise(calibration, case, metric.key) for case in calibration.readings}
    return HostNoise(
        host=host,
        metric=metric,
        cases={case: noise for case, noise in by_case.items() if noise is not None},
        source=f"by its calibration with {calibration.benchmark.title}",
    )


def _count_rounds(noise: HostNoise, worst: Noise, change: float, family: int) -> int:
    rule = build_claim_rule(noise.metric.margin, family=family)
    rounds = count_needed_rounds(worst, change, rule)
    if rounds is not None:
        return rounds
    blocks = max(FEWEST_BLOCKS, worst.count_usable(MAX_ROUNDS))
    reach = compute_smallest_change(worst.upper, blocks, rule)
    raise InvalidRequestError(
        f"not even {MAX_ROUNDS} rounds detect a change of {format_percent(change)} on "
        f"{noise.host.name}, {noise.source}: they detect about {format_percent(reach)}. Enter a "
        "larger change, use longer loads or a quieter host",
        field=FIELD,
    )


def _describe_resolution(noise: HostNoise, rounds: int, change: float) -> str:
    of = noise.metric.title[0].lower() + noise.metric.title[1:]
    return (
        f"{rounds} rounds detect changes of {format_percent(change)} in {of} on {noise.host.name} "
        f"four times in five, {noise.source}"
    )


def _build_unknown_error(hosts: list[Host]) -> InvalidRequestError:
    names = " and ".join(host.name for host in hosts)
    return InvalidRequestError(
        f"the noise of {names} with this benchmark is unknown, so no number of rounds can be "
        "computed: calibrate the host on its page, or set a number of rounds for this first run",
        field=FIELD,
    )
