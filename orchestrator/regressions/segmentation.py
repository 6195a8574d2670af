"""Detect change points in series with new points.

A writer of points adds a note in the same transaction (`ChangedSeries`). A task takes notes and
analyses their series in one transaction: if a worker dies, the next one finds the notes.
"""

import logging
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import timedelta
from statistics import median

from django.db import OperationalError, transaction
from django.db.models import Count, F, Q, QuerySet

from orchestrator.benchmarks.models import Benchmark
from orchestrator.benchmarks.selectors import StoredSpec, load_stored_spec
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import InvalidRequestError
from orchestrator.loadtools.metrics import (
    choose_deciding_metrics,
    find_metric,
    is_judged_custom_metric,
)
from orchestrator.regressions.change_points import load_series_baselines
from orchestrator.regressions.main_line import LinePoint, load_main_line
from orchestrator.regressions.pending_backfills import load_pending_positions
from orchestrator.regressions.revision import store_changes
from orchestrator.regressions.trial_noise import load_trial_noise
from orchestrator.results.models import IMPORT_ENDED, ChangedSeries, Point, Series, SeriesDetection
from orchestrator.results.models.series import MOST_VALUES
from orchestrator.stats.changes import Changes, find_changes
from orchestrator.stats.confirmation import SEARCHED_SHARE
from orchestrator.stats.precision import estimate_errors

logger = logging.getLogger(__name__)

#: The most notes taken at once. No more are taken once this many series are to be analysed.
NOTES_AT_ONCE, SERIES_AT_ONCE = 200, 100
#: After a failed detection, this many notes are taken one by one.
NOTES_AT_ONCE_AFTER_A_FAILURE = 20
#: A note whose detection failed waits this long, and twice as long each further time.
FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=10), timedelta(days=1)
#: The most points of the first detection, and of later ones (the latest points).
POINTS_AT_FIRST, POINTS_THEN = 2_000, 250
#: The first of these have too few points before them for a result.
EDGE = 20
#: A change needs three points on each side.
LEAST_POINTS = 6
#: The least noise between the points of a series, as a share.
LEAST_NOISE = 0.005
#: The smallest change that is searched for, if the metric is not known any more.
LEAST_CHANGE = 0.02


def detect_next_series() -> int:
    """Analyse series that were written since their last detection. Return the number of notes.

    It may run concurrently with another: each takes other notes. A note whose detection fails is
    put back and does not stop others.
    """
    try:
        return _detect(NOTES_AT_ONCE)
    except OperationalError:
        raise
    except Exception:
        logger.exception("a detection in changed series failed; each is now analysed separately")
    return sum(_detect(1) for _ in range(NOTES_AT_ONCE_AFTER_A_FAILURE))


def _detect(most: int) -> int:
    """Take at most `most` notes in one transaction; a single one that fails is put back."""
    taken: list[int] = []
    try:
        with transaction.atomic():
            series: set[int] = set()
            imported: set[int] = set()
            for note in _load_due_series()[:most]:
                if len(series) >= SERIES_AT_ONCE:
                    break
                taken.append(note.pk)
                series.update(note.series)
                imported.update(note.series if note.history_import_id else ())
            if taken:
                detect_changes(series, imported)
                ChangedSeries.objects.filter(pk__in=taken).delete()
    except OperationalError:
        raise
    except Exception:
        if most > 1:
            raise
        logger.exception("the note %s of changed series is put back", taken)
        _requeue_series(taken)
    return len(taken)


def _load_due_series() -> QuerySet[ChangedSeries]:
    ready = Q(not_before=None) | Q(not_before__lte=utc_now())
    # A history is analysed when all of it is stored.
    whole = Q(history_import=None) | Q(history_import__state__in=IMPORT_ENDED)
    notes = ChangedSeries.objects.filter(ready, whole)
    return notes.select_for_update(skip_locked=True, of=("self",)).order_by("pk")


def _requeue_series(notes: Iterable[int]) -> None:
    for note in ChangedSeries.objects.filter(pk__in=list(notes)):
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(note.failures, 12))
        ChangedSeries.objects.filter(pk=note.pk).update(
            failures=F("failures") + 1, not_before=utc_now() + pause
        )


def detect_changes(series: Iterable[int], imported: Collection[int] = ()) -> None:
    """Detect the change points of these series again and reconcile them with the stored ones.

    `imported`: series that got the history of another tool. They are analysed as a whole, and new
    change points in them are no news.

    Only metrics that decide verdicts and custom metrics are analysed. Call it within a transaction:
    the rows of the series are locked against a second detection; writers of points do not wait.
    """
    rows = (
        Series.objects.select_for_update(no_key=True, of=("self",))
        .filter(pk__in=list(series))
        .select_related("benchmark__project", "host", "metric", "case")
        .order_by("pk")
    )
    wanted = _select_long(_select_judged(rows))
    begins = load_series_baselines(wanted)
    detected = set(SeriesDetection.objects.filter(series__in=wanted).values_list("pk", flat=True))
    for row in wanted:
        baseline = begins.get(row.pk)
        is_old = row.pk in imported
        most = POINTS_THEN if row.pk in detected and not is_old else POINTS_AT_FIRST
        since = baseline.commit.position if baseline else None
        _detect_in_series(row, most, since=since, is_old=is_old)


def _select_long(series: Sequence[Series]) -> list[Series]:
    """Return the series with enough points for a change, and those that had enough before."""
    counts = Point.objects.filter(series__in=series).values("series").annotate(n=Count("*"))
    long = {pk for pk, n in counts.values_list("series", "n") if n >= LEAST_POINTS}
    before = SeriesDetection.objects.filter(series__in=series)
    long.update(before.values_list("pk", flat=True))
    return [each for each in series if each.pk in long]


def _detect_in_series(series: Series, most: int, *, since: int | None, is_old: bool) -> None:
    line = load_main_line(series.pk, most=most, since=since)
    sure_from = line[EDGE].position if len(line) >= most else None
    info = find_metric(series.metric.key)
    # A point keeps the latest values, and its own value is that of them.
    trials = [min(point.trials, MOST_VALUES) for point in line]
    least_trial_noise = load_trial_noise(series)
    scan = find_changes(
        [point.value for point in line],
        errors=estimate_errors(trials, [point.squares for point in line], least=least_trial_noise),
        lower_is_better=info is None or info.better == "lower",
        floor=max(LEAST_NOISE, least_trial_noise / math.sqrt(median(trials) if trials else 1)),
        least=info.margin * SEARCHED_SHARE if info is not None else LEAST_CHANGE,
        breaks=find_breaks(line),
    )
    pending = load_pending_positions(series.benchmark_id, series.host, [series.case_id])
    store_changes(series, line, scan, sure_from=sure_from, is_old=is_old, pending=pending)
    _record_detection(series, line, scan)


def find_breaks(line: list[LinePoint]) -> tuple[int, ...]:
    """Return where the host or the configuration changed: that is no change of the code."""
    return tuple(
        place
        for place in range(1, len(line))
        if (line[place].epoch, line[place].configuration)
        != (line[place - 1].epoch, line[place - 1].configuration)
    )


def _record_detection(series: Series, line: list[LinePoint], scan: Changes) -> None:
    SeriesDetection.objects.update_or_create(
        series=series,
        defaults={
            "at": utc_now(),
            "points": len(line),
            "noise": scan.noise,
            "unstable": scan.unstable,
            "outliers": [line[place].commit for place in scan.outliers],
        },
    )


def _select_judged(rows: Iterable[Series]) -> list[Series]:
    """Return the series of metrics that decide the verdict of their case, and of custom metrics.

    A custom metric has a direction only if its author wants changes of it to be noticed. Without a
    definition all metrics decide that can be judged.
    """
    series = list(rows)
    measured: dict[int, set[str]] = defaultdict(set)
    keys = Series.objects.filter(case__in={row.case_id for row in series})
    for case, key in keys.values_list("case_id", "metric__key").distinct():
        measured[case].add(key)
    benchmarks = {row.benchmark_id: row.benchmark for row in series}
    specs = {pk: _load_newest_spec(benchmark) for pk, benchmark in benchmarks.items()}
    judged = []
    for row in series:
        spec = specs[row.benchmark_id]
        primary = spec.list_case_metrics(row.case.parameters) if spec else ()
        deciding = choose_deciding_metrics(primary, measured[row.case_id])
        if row.metric.key in deciding or is_judged_custom_metric(row.metric.key):
            judged.append(row)
    return judged


def _load_newest_spec(benchmark: Benchmark) -> StoredSpec | None:
    """Return None if there is no definition, or if it is unreadable."""
    newest = benchmark.definitions.order_by("-version").values_list("pk", "digest").first()
    try:
        return None if newest is None else load_stored_spec(*newest)
    except InvalidRequestError:
        return None
