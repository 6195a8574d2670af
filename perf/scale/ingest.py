"""Ingest through the API: one client and four, many results per request and single ones.

Accepted results are counted in the answers, and afterwards in the tables.
"""

from __future__ import annotations

import hashlib
import json
import random
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, LiteralString

import psycopg

from perf.harness.processes import sum_tree_cpu_s
from perf.harness.web_servers import Server
from perf.scale.databases import Postgres
from perf.scale.extent import METRICS
from perf.scale.http_clients import Connection, Request, run_in_parallel
from perf.scale.loading import Dataset

#: A new commit after this many results of a client.
RESULTS_A_COMMIT = 500
CASES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """`metrics` of each result.

    If `commits` is false, all are of one commit that is new to all clients.
    """

    clients: int
    results_a_post: int
    metrics: int = 1
    commits: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SentBatches:
    """`accepted` according to the answers; `lost` and `doubled` are differences in the tables."""

    accepted: int
    repeated: int
    elapsed_s: float
    server_cpu_s: float
    postgres_cpu_s: float
    lost: int
    doubled: int

    @property
    def rate(self) -> float:
        return (self.accepted + self.repeated) / self.elapsed_s

    @property
    def cpu_ms(self) -> float:
        """CPU time of server and PostgreSQL per result."""
        used = self.server_cpu_s + self.postgres_cpu_s
        return 1000 * used / max(1, self.accepted + self.repeated)


class _Start:
    """The common start of all clients, with the CPU time used until then."""

    def __init__(self, clients: int, read_cpu_s: Callable[[], tuple[float, float]]) -> None:
        self._read_cpu_s = read_cpu_s
        self._barrier = threading.Barrier(clients, action=self._record)
        self.server_cpu_s = self.postgres_cpu_s = self.at = 0.0

    def wait(self) -> None:
        """Return when all clients wait here."""
        self._barrier.wait()

    def _record(self) -> None:
        self.server_cpu_s, self.postgres_cpu_s = self._read_cpu_s()
        self.at = time.perf_counter()


class _Client:
    """Sends its bodies one after the other, and counts the results in the answers."""

    def __init__(self, bodies: Sequence[bytes], headers: Mapping[str, str]) -> None:
        self._requests = [
            Request(path="/api/v1/results", headers=headers, body=each) for each in bodies
        ]
        self.accepted = self.repeated = 0
        self.ended_at = 0.0

    def send(self, connection: Connection, *, start: _Start, seconds: float) -> None:
        """Send until `seconds` after the start, at least one body."""
        start.wait()
        for request in self._requests:
            answer = json.loads(connection.ask(request))
            self.accepted += answer["accepted"]
            self.repeated += answer["repeated"]
            if time.perf_counter() - start.at > seconds:
                break
        self.ended_at = time.perf_counter()


class Sender:
    """Sends generated results to one server."""

    def __init__(self, dataset: Dataset, server: Server, postgres: Postgres, database: str) -> None:
        self._made = dataset
        self._server = server
        self._postgres = postgres
        self._database = database
        with psycopg.connect(database) as connection:
            newest = _load_value(connection, "SELECT max(id) FROM benchmarks_commit", [])
        # A reading's id starts with the number of its commit.
        self._first = uuid.UUID(int=(newest + 1) << 80)
        self._headers = {
            "Authorization": f"Bearer {dataset.token}",
            "Content-Type": "application/json",
        }

    def send(self, load: Load, seconds: float) -> SentBatches:
        """Send new results for `seconds`; every client has its own host."""
        name = uuid.uuid4().hex[:8]
        return self._measure(
            load, seconds, lambda client, number: self._body(load, name, client, number)
        )

    def repeat(self, load: Load, seconds: float) -> SentBatches:
        """Send one request again and again."""
        name = uuid.uuid4().hex[:8]
        body = self._body(load, name, 0, 0)
        self._measure(load, 0.0, lambda client, number: body)
        return self._measure(load, seconds, lambda client, number: body)

    def _measure(
        self, load: Load, seconds: float, build_body: Callable[[int, int], bytes]
    ) -> SentBatches:
        before = self._count_rows()
        # Bodies are created in advance, so that the client's cost is not measured.
        most = max(1, int(seconds * (1_000 if load.results_a_post == 1 else 250) / load.clients))
        clients = [
            _Client([build_body(client, number) for number in range(most)], self._headers)
            for client in range(load.clients)
        ]
        start = _Start(load.clients, self._cpu_s)
        run_in_parallel(
            self._server.port,
            [partial(each.send, start=start, seconds=seconds) for each in clients],
        )
        server_cpu_s, postgres_cpu_s = self._cpu_s()
        accepted = sum(each.accepted for each in clients)
        difference = self._count_rows() - before - accepted
        return SentBatches(
            accepted=accepted,
            repeated=sum(each.repeated for each in clients),
            elapsed_s=max(each.ended_at for each in clients) - start.at,
            server_cpu_s=server_cpu_s - start.server_cpu_s,
            postgres_cpu_s=postgres_cpu_s - start.postgres_cpu_s,
            lost=max(0, -difference),
            doubled=max(0, difference),
        )

    def _body(self, load: Load, name: str, client: int, number: int) -> bytes:
        part = number * load.results_a_post // RESULTS_A_COMMIT if load.commits else 0
        whose = client if load.commits else 0
        commit = hashlib.sha1(f"{name} {whose} {part}".encode()).hexdigest()
        metrics = list(METRICS.items())[: load.metrics]
        results = []
        for place in range(load.results_a_post):
            case = (number * load.results_a_post + place) % CASES
            results.append(
                {
                    "project": self._made.project,
                    "benchmark": self._made.benchmark,
                    "host": f"ci-{client}",
                    "commit": commit,
                    "parameters": {
                        "framework": f"framework-{case % 10}",
                        "page": f"page-{case // 10 % 4}",
                        "connections": 2 ** (case // 40),
                    },
                    "metrics": {key: level * random.uniform(0.9, 1.1) for key, level in metrics},
                    "at": "2026-11-20T08:00:00Z",
                    "id": f"{name}-{client}-{number}-{place}",
                }
            )
        return json.dumps({"results": results}).encode()

    def _cpu_s(self) -> tuple[float, float]:
        return sum_tree_cpu_s(self._server.pid), self._postgres.cpu_s()

    def _count_rows(self) -> int:
        """Return the number of sent readings, which must equal the trials of their points."""
        with psycopg.connect(self._database) as connection:
            readings = _load_value(
                connection, "SELECT count(*) FROM results_reading WHERE id >= %s", [self._first]
            )
            series = """
                SELECT array_agg(s.id) FROM results_series s JOIN fleet_host h ON h.id = s.host_id
                JOIN results_metric m ON m.id = s.metric_id
                WHERE h.transport = 'external' AND m.key = %s"""
            sums = (
                "SELECT coalesce(sum(trials + invalid), 0) "
                "FROM results_point WHERE series_id = ANY(%s)"
            )
            trials = _load_value(
                connection, sums, [_load_value(connection, series, [next(iter(METRICS))])]
            )
        if readings != trials:
            raise AssertionError(f"{readings} readings, {trials} trials in points")
        return int(readings)


def _load_value(
    connection: psycopg.Connection, query: LiteralString, values: Sequence[object]
) -> Any:
    row = connection.execute(query, values).fetchone()
    return row[0] if row else None
