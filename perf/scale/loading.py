"""Fill an empty database by COPY: `python -m perf.scale.loading SIZE`; indexes follow at the end.

It prints the data for clients as one JSON object. The settings name the database.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import perf.harness.django_setup  # noqa: F401

# isort: split
import psycopg
from django.core.management import call_command
from django.db import connection
from django.test import Client
from psycopg import sql

from orchestrator.comparisons.verdict_cache import store_verdicts
from orchestrator.reports.saved_reports import save_report
from orchestrator.runs.models import Run
from orchestrator.runs.states import RUN_ENDED
from perf.scale.catalog import Catalog, Part, make_catalog
from perf.scale.copy_rows import HEAD, POINT_COLUMNS, READING_COLUMNS, TAIL, Maker
from perf.scale.engine import Runs, iterate_trial_lines, list_columns, make_runs
from perf.scale.extent import FULL, METRICS, SHORT, Size

#: Pairs of this many commits are compared.
MOST_COMMITS = 400
#: More runs of a project than its pages list.
JUDGED_RUNS = 20
READINGS, POINTS, TRIALS = "results_reading", "results_point", "runs_trial"

REPORT = """\
version: 1
title: Leaderboard
benchmark: wide/wide
commit: newest
tables:
  - rows: [framework]
    columns: [{metric: requests.rate, across: [page]}]
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """`session` is the cookie of a member, `token` that of the API; `seconds` are by step.

    `series` are those along all commits, each a [number, case, metric]. `full` has the hashes of
    the commits that were measured with all cases, newest first.
    """

    token: str
    session: str
    benchmark: str
    project: str
    series: list[list[Any]]
    host: str
    full: list[str]
    trials: int
    points: int
    runs: int
    bytes: int
    seconds: dict[str, float]


def main() -> None:
    size = {**FULL.sizes, **SHORT.sizes}[sys.argv[1]]
    print(json.dumps(asdict(fill(size))))


def fill(size: Size) -> Dataset:
    seconds: dict[str, float] = {}
    with timed(seconds, "schema"):
        call_command("migrate", verbosity=0)
    with timed(seconds, "catalog"):
        catalog = make_catalog(size)
        runs = [make_runs(catalog, part) for part in catalog.parts]
        save_report(member=catalog.member, source=REPORT, slug="leaderboard")
    with psycopg.connect(superuser(), autocommit=True) as direct:
        direct.execute("SET session_replication_role = replica")
        direct.execute("SET synchronous_commit = off")
        direct.execute("SET maintenance_work_mem = '1GB'")
        with without_indexes(direct, seconds):
            for part, dataset in zip(catalog.parts, runs, strict=True):
                with timed(seconds, "rows"):
                    copy_results(direct, catalog, part, dataset)
                with timed(seconds, "trials"):
                    copy_trials(direct, part, dataset)
        with timed(seconds, "vacuum"):
            direct.execute("VACUUM ANALYZE")
            direct.execute("CHECKPOINT")
    with timed(seconds, "verdicts"):
        for part in catalog.parts:
            store_newest_verdicts(part)
    return build_dataset(catalog, seconds)


def store_newest_verdicts(part: Part) -> None:
    """Store the verdicts of the newest runs of a project, as the engine does when a run ends."""
    runs = Run.objects.filter(definition__benchmark=part.benchmark, state__in=RUN_ENDED)
    related = runs.select_related("team", "definition__benchmark__project__team")
    newest = related.prefetch_related("variants__commit").order_by("-created_at")
    for run in newest[:JUDGED_RUNS]:
        store_verdicts(run)


def superuser() -> str:
    """Return the superuser: the server of `perf.scale.benchmark` lets its owner be anybody."""
    settings = connection.settings_dict
    return psycopg.conninfo.make_conninfo(
        host=settings["HOST"], dbname=settings["NAME"], user="postgres"
    )


@contextmanager
def without_indexes(direct: psycopg.Connection, seconds: dict[str, float]) -> Iterator[None]:
    """Drop the indexes of the large tables for the block, and create them again afterwards."""
    indexes = direct.execute(
        "SELECT indexrelid::regclass::text, indrelid::regclass::text, pg_get_indexdef(indexrelid), "
        "conname, pg_get_constraintdef(c.oid) FROM pg_index LEFT JOIN pg_constraint c "
        "ON conindid = indexrelid AND contype IN ('p', 'u') "
        "WHERE indrelid::regclass::text = ANY(%s)",
        [[READINGS, POINTS]],
    ).fetchall()
    for index, table, _, constraint, _ in indexes:
        name = sql.Identifier(constraint or index)
        drop = sql.SQL("ALTER TABLE {} DROP CONSTRAINT {}" if constraint else "DROP INDEX {1}")
        direct.execute(drop.format(sql.Identifier(table), name))
    yield
    with timed(seconds, "indexes"):
        for _, table, definition, constraint, rule in indexes:
            again = f'ALTER TABLE {table} ADD CONSTRAINT "{constraint}" {rule}'
            direct.execute((again if constraint else definition).encode())


def copy_results(direct: psycopg.Connection, catalog: Catalog, part: Part, runs: Runs) -> None:
    maker = Maker(part, list(catalog.metrics), runs.blocks(part.trials))
    cursor = direct.cursor()
    other = psycopg.connect(superuser(), autocommit=True)
    other.execute("SET session_replication_role = replica")
    other.execute("SET synchronous_commit = off")
    with (
        other,
        cursor.copy(build_binary_copy(READINGS, READING_COLUMNS)) as readings,
        other.cursor().copy(build_binary_copy(POINTS, POINT_COLUMNS)) as points,
    ):
        readings.write(HEAD)
        points.write(HEAD)
        for some_readings, some_points in maker.batches():
            readings.write(some_readings)
            points.write(some_points)
        readings.write(TAIL)
        points.write(TAIL)


def copy_trials(direct: psycopg.Connection, part: Part, runs: Runs) -> None:
    names = sql.SQL(", ").join(map(sql.Identifier, list_columns()))
    query = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(TRIALS), names)
    with direct.cursor().copy(query) as copy:
        some: list[str] = []
        for line in iterate_trial_lines(part, runs):
            some.append(line)
            if len(some) == 5_000:
                copy.write("".join(some))
                some.clear()
        copy.write("".join(some))


def build_binary_copy(table: str, names: tuple[str, ...]) -> sql.Composed:
    listed = sql.SQL(", ").join(map(sql.Identifier, names))
    query = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT binary)")
    return query.format(sql.Identifier(table), listed)


def build_dataset(catalog: Catalog, seconds: dict[str, float]) -> Dataset:
    wide = catalog.parts[0]
    client = Client()
    client.force_login(catalog.member.user)
    commits = wide.benchmark.project.commits.order_by("-position").values_list("sha", flat=True)
    return Dataset(
        token=catalog.token,
        session=client.cookies["sessionid"].value,
        benchmark=wide.benchmark.slug,
        project=wide.benchmark.project.slug,
        series=_list_series_along(wide),
        host=wide.cells[0][1].name,
        full=list(commits[: min(wide.full, MOST_COMMITS)]),
        trials=count(READINGS),
        points=count(POINTS),
        runs=count("runs_run"),
        bytes=load_one("SELECT pg_database_size(current_database())"),
        seconds=seconds,
    )


def _list_series_along(part: Part) -> list[list[Any]]:
    """Return the series of the cases that all commits were measured with."""
    keys = dict(part.benchmark.cases.values_list("pk", "key"))
    along = part.line if part.full < len(part.commits) else len(part.cells)
    return [
        [number, keys[case], metric]
        for (case, _), numbers in zip(part.cells[:along], part.series[:along], strict=True)
        for number, metric in zip(numbers, METRICS, strict=True)
    ]


def count(table: str) -> int:
    return load_one(f"SELECT count(*) FROM {table}")


def load_one(query: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return int(cursor.fetchone()[0])


@contextmanager
def timed(seconds: dict[str, float], step: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    seconds[step] = round(seconds.get(step, 0.0) + time.monotonic() - began, 1)


if __name__ == "__main__":
    main()
