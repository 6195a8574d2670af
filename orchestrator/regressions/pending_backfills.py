"""Commits that the unfinished runs of backfills will measure.

A change between two commits is only as narrow as the points around it. While a backfill adds points
there, the change is not measured again. Afterwards one confirmation run of the narrowest pair of
commits is enough. No bisection measures commits that the backfill measures.
"""

from collections.abc import Iterable

from django.db.models import Exists, OuterRef, Q, QuerySet

from orchestrator.benchmarks.models import Commit
from orchestrator.fleet.models import Host
from orchestrator.results.models import Series
from orchestrator.runs.models import HostRole, Placement, Trial, Variant
from orchestrator.runs.states import RUN_ENDED


def load_pending_positions(benchmark: int, host: Host, cases: Iterable[int]) -> set[int]:
    """Return the positions of commits that backfills will measure in these cases on the host.

    A run on any host of a profile or tag counts for each of these hosts, until it has one.
    """
    variants = Variant.objects.filter(
        run__backfill__benchmark=benchmark, commit__mainline=True
    ).exclude(run__state__in=RUN_ENDED)
    trials = Trial.objects.filter(job__run=OuterRef("run"), case__in=list(cases))
    here = Exists(_load_target_placements(host).filter(job=OuterRef("job")))
    wanted = variants.filter(Exists(trials.filter(here))).values_list("commit__position", flat=True)
    return {position for position in wanted if position is not None}


def is_backfilled(series: Iterable[Series], before: Commit, commit: Commit) -> bool:
    """Return whether a backfill will measure one of the commits from `before` to `commit`.

    The series share the benchmark and the host.
    """
    rows = list(series)
    if before.position is None or commit.position is None:
        return False
    cases = {each.case_id for each in rows}
    pending = load_pending_positions(rows[0].benchmark_id, rows[0].host, cases)
    return any(before.position <= position <= commit.position for position in pending)


def _load_target_placements(host: Host) -> QuerySet[Placement]:
    selected = Q(wanted_host=host) | Q(wanted_profile=host.profile_id) | Q(wanted_tag__in=host.tags)
    unplaced = Q(job__host=None) & selected
    return Placement.objects.filter(Q(job__host=host) | unplaced, role=HostRole.TARGET)
