"""Import millions of finished results from a file with COPY and a few set-based statements.

It writes the same rows as `record`, one batch of lines after the other. A batch is stored as a
whole or not at all. Results that exist already are not changed, so an interrupted import can be
started again from the beginning.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db import IntegrityError, connection, transaction

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.quotas import check_storage, load_quotas
from orchestrator.accounts.services import record_audit
from orchestrator.benchmarks.reported_commits import ReportedCommit, store_reported_commits
from orchestrator.core.clock import utc_now
from orchestrator.core.counting import count
from orchestrator.core.errors import InvalidRequestError
from orchestrator.measurements.age_check import find_age_errors
from orchestrator.measurements.incoming import CommitMetadata, ResultIn, estimate_stored_bytes
from orchestrator.measurements.ingest import add_stored_size, forget_cached, prepare_results
from orchestrator.measurements.names import Names, remember_commits
from orchestrator.measurements.recording import MERGE, MeasuredRow, build_newest_sql
from orchestrator.measurements.repeats import check_alike, check_repeats
from orchestrator.measurements.result_files import ANY_SIZE, Bounds, Line, read_results

#: Lines per transaction.
BATCH = 10_000
MOST_FAULTS = 100
#: `(done, total, activity)` in lines; the total is None while it is unknown.
Progress = Callable[[int, int | None, str], None]
#: Called with the number of new results of a batch, inside the transaction that stores them.
Note = Callable[[int], None]

_MAKE = """
CREATE TEMPORARY TABLE incoming (
    place int, id uuid, case_id bigint, commit_id bigint, at timestamptz, host_id uuid,
    validity text, metrics int[], "values" float8[], provenance jsonb, block bigint,
    configuration int,
    epoch smallint
) ON COMMIT DROP
"""
_COPY = """
COPY incoming (place, id, case_id, commit_id, at, host_id, validity, metrics, "values", provenance,
               block, configuration, epoch) FROM STDIN
"""
_READINGS = """
WITH added AS (
    INSERT INTO results_reading
        (id, case_id, commit_id, at, host_id, validity, metrics, "values", provenance)
    SELECT id, case_id, commit_id, at, host_id, validity, metrics, "values", provenance
    FROM incoming ORDER BY id
    ON CONFLICT (id) DO NOTHING RETURNING id
)
DELETE FROM incoming WHERE id NOT IN (SELECT id FROM added)
RETURNING id
"""
_SERIES = """
INSERT INTO results_series (benchmark_id, case_id, host_id, metric_id)
SELECT benchmark_id, case_id, host_id, metric
FROM (SELECT DISTINCT case_id, host_id, unnest(metrics) AS metric FROM incoming) wanted
JOIN benchmarks_case chosen ON chosen.id = case_id
WHERE NOT EXISTS (
    SELECT 1 FROM results_series known WHERE known.case_id = wanted.case_id
        AND known.host_id = wanted.host_id AND known.metric_id = metric
)
ORDER BY case_id, host_id, metric
ON CONFLICT (case_id, host_id, metric_id) DO NOTHING
"""
_POINTS = f"""
INSERT INTO results_point AS point
    (series_id, commit_id, epoch, configuration, position, at, trials, suspect, invalid, mean,
     run_count, mean_log, m2_log, "values", blocks, places, runs, builds)
SELECT series.id, each.commit_id, epoch, configuration, made.position, max(at),
       count(*) FILTER (WHERE counts), count(*) FILTER (WHERE validity = 'suspect'),
       count(*) FILTER (WHERE NOT counts), avg(value) FILTER (WHERE counts),
       bool_or(counts)::int,
       CASE WHEN min(value) FILTER (WHERE counts) > 0
            THEN avg(log) FILTER (WHERE counts) END,
       CASE WHEN min(value) FILTER (WHERE counts) > 0 THEN 0 END,
       coalesce({build_newest_sql("array_agg(value ORDER BY place) FILTER (WHERE counts)")},
       '{{}}'),
       coalesce({build_newest_sql("array_agg(block ORDER BY place) FILTER (WHERE counts)")},
       '{{}}'),
       coalesce({build_newest_sql("array_agg(0) FILTER (WHERE counts)")}, '{{}}'),
       coalesce({build_newest_sql("array_agg(0::bigint) FILTER (WHERE counts)")}, '{{}}'),
       coalesce({build_newest_sql("array_agg(0) FILTER (WHERE counts)")}, '{{}}')
FROM (
    SELECT place, case_id, commit_id, host_id, at, validity, epoch, configuration, block,
    metric, value,
           validity <> 'invalid' AS counts, CASE WHEN value > 0 THEN ln(value) END AS log
    FROM incoming, unnest(metrics, "values") AS pair(metric, value)
) each
JOIN results_series series ON series.case_id = each.case_id AND series.host_id = each.host_id
    AND series.metric_id = each.metric
JOIN benchmarks_commit made ON made.id = each.commit_id
GROUP BY series.id, each.commit_id, epoch, configuration, made.position
ORDER BY series.id, each.commit_id, epoch, configuration
{MERGE}"""
_CHANGED = """
INSERT INTO results_changedseries (series, history_import_id)
SELECT found, %s FROM (
    SELECT array_agg(DISTINCT series.id) AS found
    FROM (SELECT DISTINCT case_id, host_id, unnest(metrics) AS metric FROM incoming) wanted
    JOIN results_series series ON series.case_id = wanted.case_id
        AND series.host_id = wanted.host_id AND series.metric_id = wanted.metric
) whole WHERE found IS NOT NULL
"""
#: One note per hundred series instead of one per batch, so that each series is analysed once.
_JOIN_CHANGED = """
WITH notes AS (
    DELETE FROM results_changedseries WHERE history_import_id = %s RETURNING series
), changed AS (
    SELECT id, row_number() OVER (ORDER BY id) / 100 AS part
    FROM (SELECT DISTINCT unnest(series) AS id FROM notes) each
)
INSERT INTO results_changedseries (series, history_import_id)
SELECT array_agg(id ORDER BY id), %s FROM changed GROUP BY part ORDER BY part
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedFile:
    """A file without faults: the number of its results, and their approximate size as rows."""

    results: int
    stored_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkImportResult:
    """The counts of an import: results in the file, new ones (`accepted`), known ones
    (`repeated`)."""

    results: int
    accepted: int

    @property
    def repeated(self) -> int:
        return self.results - self.accepted


def check_file(
    member: Member,
    path: Path,
    project: str | None = None,
    *,
    bounds: Bounds = ANY_SIZE,
    progress: Progress = lambda done, total, note: None,
) -> CheckedFile:
    """Check a file without storing anything. InvalidRequestError lists every fault with its
    line."""
    faults: list[tuple[str, str]] = []
    names: dict[tuple[str | None, str], tuple[int, ResultIn]] = {}
    count = size = 0
    for line in read_results(path, bounds):
        count += 1
        if not count % BATCH:
            progress(count, None, "checked")
        if line.result is None:
            faults.append((f"line {line.number}", line.fault))
        else:
            result = _set_project(line.result, project)
            size += estimate_stored_bytes(result)
            _keep_oldest(names, line.number, result)
        if len(faults) >= MOST_FAULTS:
            break
    faults += _find_name_faults(member, names)
    if faults:
        raise InvalidRequestError.from_faults(faults[:MOST_FAULTS])
    if not count:
        raise InvalidRequestError("there is no result in this file", field="file")
    return CheckedFile(results=count, stored_bytes=size)


def import_file(
    *,
    member: Member,
    path: Path,
    project: str | None = None,
    name: str = "",
    bounds: Bounds = ANY_SIZE,
    progress: Progress = lambda done, total, note: None,
) -> BulkImportResult:
    """Store the results of a file.

    `project` is used for results that name none. `name` is the name of the file if it is stored
    here under a different one.

    Raise InvalidRequestError with every fault and its line before anything is stored. Raise
    QuotaExceededError if the storage quota of the team is too small for the whole file. Raise
    ResultConflictError if other results have the same ids: nothing of that batch is stored.
    """
    member.require(Role.MEMBER, to="send results")
    checked = check_file(member, path, project, bounds=bounds, progress=progress)
    check_room(member, checked)
    name = name or path.name
    done = accepted = 0
    for lines in iterate_batches(path, bounds):
        accepted += store_batch(member, lines, project, name)
        done += len(lines)
        progress(done, checked.results, "stored")
    record_import_done(member, name, accepted)
    return BulkImportResult(results=done, accepted=accepted)


def check_room(member: Member, checked: CheckedFile) -> None:
    quotas = load_quotas(member.team)
    check_storage(team=member.team, quotas=quotas, added=checked.stored_bytes)


def iterate_batches(path: Path, bounds: Bounds = ANY_SIZE, skip: int = 0) -> Iterator[list[Line]]:
    """Yield the results of a file in the batches that are stored, without the first `skip` results.

    `skip` is a multiple of the batch size.
    """
    lines = read_results(path, bounds, skip=skip)
    while batch := list(islice(lines, BATCH)):
        yield batch


def store_batch(
    member: Member,
    lines: Sequence[Line],
    project: str | None,
    name: str,
    note: Note = lambda new: None,
    *,
    history: UUID | None = None,
) -> int:
    """Store the results of these lines in one transaction and return the number of new ones.

    `history`: the import that they belong to if they are a history; its changes are searched after
    `join_changed_series`.
    """
    results = [_set_project(_check_line(line), project) for line in lines]
    places = [f"line {line.number}" for line in lines]
    try:
        new = _store_batch(member, results, places, f"file {name}", note, history)
    except IntegrityError:
        # A remembered row was deleted in the meantime.
        forget_cached()
        new = _store_batch(member, results, places, f"file {name}", note, history)
    if load_quotas(member.team).storage_bytes is not None:
        add_stored_size(member, results, new)
    return new


def join_changed_series(history: UUID) -> None:
    """Prepare the search for changes in an imported history, at its end."""
    with connection.cursor() as cursor:
        cursor.execute(_JOIN_CHANGED, [history, history])


def record_import_done(member: Member, name: str, accepted: int) -> None:
    record_audit(member=member, action="results.imported", subject=f"{name}: {accepted} new")


def _keep_oldest(
    names: dict[tuple[str | None, str], tuple[int, ResultIn]], number: int, result: ResultIn
) -> None:
    """Remember, for each benchmark that a file names, the line with its oldest result."""
    name = (result.project, result.benchmark)
    known = names.get(name)
    if known is None or (result.at and (known[1].at is None or result.at < known[1].at)):
        names[name] = number, result


def _find_name_faults(
    member: Member, names: Mapping[tuple[str | None, str], tuple[int, ResultIn]]
) -> Iterator[tuple[str, str]]:
    """List benchmarks that do not exist, and results of known benchmarks that are too old."""
    for number, result in names.values():
        looked_up = Names(member)
        benchmarks = [each for each in looked_up.benchmarks([result]) if each is not None]
        faults = [fault for _, fault in looked_up.faults]
        if benchmarks:
            faults += find_age_errors(benchmarks, [result], utc_now()).values()
        yield from ((f"line {number}", fault) for fault in faults)


def _set_project(result: ResultIn, project: str | None) -> ResultIn:
    if project is None or result.project is not None:
        return result
    return result.model_copy(update={"project": project})


def _check_line(line: Line) -> ResultIn:
    if line.result is None:
        raise InvalidRequestError(f"line {line.number}: {line.fault}; the file was changed")
    return line.result


def _store_batch(
    member: Member,
    results: Sequence[ResultIn],
    places: Sequence[str],
    source: str,
    note: Note,
    history: UUID | None,
) -> int:
    """Store a batch and return the number of new results; create new names first."""
    _make_commits(member, results)
    ready = prepare_results(member, results, source, places)
    check_alike(ready.sent)
    once = {each.row.id: each.row for each in ready.sent}
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_MAKE)
        with cursor.copy(_COPY) as copy:
            lines = (_format_copy_row(n, row, ready.metrics) for n, row in enumerate(once.values()))
            copy.write("".join(lines))
        cursor.execute("ANALYZE incoming")
        cursor.execute(_READINGS)
        repeated = {key for (key,) in cursor.fetchall()}
        check_repeats(ready.sent, once.keys() - repeated)
        new = len(once) - len(repeated)
        if new:
            for statement in (_SERIES, _POINTS):
                cursor.execute(statement)
            cursor.execute(_CHANGED, [history])
        cursor.execute("DROP TABLE incoming")
        note(new)
    count("pitwall_results_total", new, way="file")
    return new


def _make_commits(member: Member, results: Sequence[ResultIn]) -> None:
    """Create all commits of a batch at once, in the order of their first appearance."""
    benchmarks = Names(member).benchmarks(results)
    projects = {each.project_id: each.project for each in benchmarks if each is not None}
    by_project: dict[int, dict[str, ResultIn]] = {pk: {} for pk in projects}
    for benchmark, result in zip(benchmarks, results, strict=True):
        if benchmark is not None:
            by_project[benchmark.project_id].setdefault(result.commit, result)
    for pk, by_sha in by_project.items():
        rows = [_build_reported_commit(result) for result in by_sha.values()]
        remember_commits(pk, store_reported_commits(project=projects[pk], batch=rows))


def _build_reported_commit(result: ResultIn) -> ReportedCommit:
    return ReportedCommit(sha=result.commit, **dict(result.commit_facts or CommitMetadata()))


def _format_copy_row(place: int, row: MeasuredRow, metrics: Mapping[str, int]) -> str:
    """Return a row in the text format of COPY."""
    # No other field of a row can contain a backslash, a tab or a line end.
    provenance = json.dumps(row.provenance).replace("\\", "\\\\")
    cells: tuple[Any, ...] = (
        place,
        row.id,
        row.case,
        row.commit,
        row.at.isoformat(),
        row.host,
        row.validity,
        _format_array(metrics[key] for key in row.readings),
        _format_array(row.readings.values()),
        provenance,
        row.block,
        row.configuration,
        row.epoch,
    )
    return "\t".join(map(str, cells)) + "\n"


def _format_array(values: Iterable[float]) -> str:
    return "{" + ",".join(map(repr, values)) + "}"
