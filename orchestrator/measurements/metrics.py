"""Map metric keys to row ids. Teams share the keys of the registry and have custom ones.

The number of custom metrics of a team is limited. The check runs before any insert, with the row of
the team locked. Only new keys are inserted, so neither a refused nor a repeated post uses up ids.
At the limit, metrics without stored values are removed.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now

from orchestrator.accounts.models import Team
from orchestrator.accounts.quotas import QuotaExceededError
from orchestrator.loadtools.metrics import METRICS, find_metric
from orchestrator.results.models import (
    Annotation,
    Baseline,
    ChangePoint,
    Metric,
    Point,
    Series,
)

#: The limit of custom metrics of a trial; results that are sent have a separate limit.
MOST_OF_A_TRIAL = 100
#: A metric without results is kept this long: its first results may be about to be stored.
UNUSED_FOR = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialMetrics:
    """The ids of the metrics of a trial that are stored, and the sorted keys that are not."""

    ids: Mapping[str, int]
    dropped: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        """Return one sentence for the trial; empty if every metric is stored."""
        if not self.dropped:
            return ""
        count = len(self.dropped)
        names = ", ".join(key[:60] for key in self.dropped[:5])
        more = f" and {count - 5} more" if count > 5 else ""
        return (
            f"metrics_dropped: {count} custom metric{'' if count == 1 else 's'} not stored: "
            f"{names}{more}; a team has at most {settings.MAX_CUSTOM_METRICS} custom metrics and "
            f"a trial at most {MOST_OF_A_TRIAL}, with names such as script.upload_s"
        )


def store_metrics(team: int, keys: Iterable[str]) -> dict[str, int]:
    """Map keys to ids for a team; create new metrics.

    Raise QuotaExceededError if the team would exceed its limit of custom metrics; then none is
    created.
    """
    wanted = set(keys)
    own = _list_custom(wanted)
    if len(own) > settings.MAX_CUSTOM_METRICS:
        raise _build_quota_error(len(own), room=None)
    known = _load_stored_metrics(team, wanted)
    if missing := wanted - known.keys():
        known |= _create_metrics(team, missing)
    return known


def store_trial_metrics(team: int, keys: Iterable[str]) -> TrialMetrics:
    """Map the keys that a host reports to ids; omit invalid keys and those beyond a limit."""
    wanted = set(keys)
    good = sorted(key for key in _list_custom(wanted) if find_metric(key) is not None)
    few = {*good[:MOST_OF_A_TRIAL], *(wanted & METRICS.keys())}
    known = _load_stored_metrics(team, few)
    if missing := few - known.keys():
        known |= _create_metrics(team, missing, fit=True)
    return TrialMetrics(ids=known, dropped=tuple(sorted(wanted - known.keys())))


def _list_custom(keys: Collection[str]) -> list[str]:
    return [key for key in keys if key not in METRICS]


def _load_stored_metrics(team: int, keys: Collection[str]) -> dict[str, int]:
    rows = Metric.objects.filter(Q(team=None) | Q(team=team), key__in=list(keys))
    return dict(rows.order_by("pk").values_list("key", "pk"))


@transaction.atomic
def _create_metrics(team: int, keys: Collection[str], *, fit: bool = False) -> dict[str, int]:
    """Create the new ones of these keys and return all ids. With `fit`, create no more than the
    limit allows."""
    if own := _list_custom(keys):
        # Other requests that add custom metrics to the team wait here, and count these.
        Team.objects.select_for_update(no_key=True).get(pk=team)
    known = _load_stored_metrics(team, keys)
    new = sorted(set(own) - known.keys())
    room = max(0, settings.MAX_CUSTOM_METRICS - Metric.objects.filter(team=team).count())
    if len(new) > room:
        room += _remove_unused(team)
    if len(new) > room and not fit:
        raise _build_quota_error(len(new), room)
    rows = [Metric(team_id=team, key=key) for key in new[:room]]
    rows += [Metric(key=key) for key in sorted(keys) if key in METRICS and key not in known]
    # A registry key is created once per installation: a conflict is possible only then.
    Metric.objects.bulk_create(rows, ignore_conflicts=True)
    return _load_stored_metrics(team, keys)


def _remove_unused(team: int) -> int:
    """Remove custom metrics without stored values and return their number.

    A metric that another request uses at this moment stays. If a request commits results of a
    removed metric later, its foreign key fails and it is repeated.
    """
    custom = Metric.objects.filter(team=team, created_at__lt=Now() - UNUSED_FOR)
    candidates = _select_without_results(set(custom.values_list("pk", flat=True)))
    # No results can be committed while the rows are locked, so the second check is final.
    rows = Metric.objects.filter(pk__in=candidates).select_for_update(skip_locked=True)
    unused = _select_without_results(_lock_idle_series(set(rows.values_list("pk", flat=True))))
    Series.objects.filter(metric__in=unused).delete()
    Metric.objects.filter(pk__in=unused).delete()
    return len(unused)


def _select_without_results(metrics: set[int]) -> set[int]:
    in_use = Q()
    for kind in (Point, ChangePoint, Baseline, Annotation):
        in_use |= Q(Exists(kind.objects.filter(series=OuterRef("pk"))))
    series = Series.objects.filter(in_use, metric__in=metrics)
    return metrics - set(series.values_list("metric", flat=True))


def _lock_idle_series(metrics: set[int]) -> set[int]:
    """Lock the series of these metrics and return those without series locked by others."""
    series = Series.objects.filter(metric__in=metrics)
    locked = set(series.select_for_update(skip_locked=True).values_list("pk", flat=True))
    return metrics - {
        metric for pk, metric in series.values_list("pk", "metric") if pk not in locked
    }


def _build_quota_error(new: int, room: int | None) -> QuotaExceededError:
    left = "" if room is None else f", of which {room} are left"
    return QuotaExceededError(
        f"this would add {new} custom metrics; a team may have {settings.MAX_CUSTOM_METRICS}{left}"
        ". Use existing names, put varying parts into the parameters of the case, or ask "
        "your administrator for a higher PITWALL_MAX_CUSTOM_METRICS"
    )
