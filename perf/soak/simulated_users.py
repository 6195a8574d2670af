"""Simulated users: a CI that requests runs, and people who open pages."""

from __future__ import annotations

import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from itertools import count
from uuid import UUID

from django.db import OperationalError, connection

from devstack.demo_client import ApiError, Client
from orchestrator.runs.models import Run
from orchestrator.runs.states import RUN_ENDED
from perf.harness.ssh_hosts import Fleet

NOBODY = 0
#: Statuses that a page may return during a fault: 503 means that the database is away.
RIGHT = frozenset({200, 503, NOBODY})
#: The number of waiting or running runs per host.
AHEAD = 2
LOOK_EVERY_S = 0.2


class Usage:
    """Keeps all hosts busy and opens pages, each in a separate thread, during the block.

    `asked` are the runs; `answers` counts pages by their status, NOBODY if there was no answer.
    """

    def __init__(self, client: Client, fleet: Fleet, shas: tuple[str, str], pages: str) -> None:
        self.requested: list[UUID] = []
        self.answers: Counter[int] = Counter()
        self._client, self._fleet, self._shas, self._pages = client, fleet, shas, pages
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=work, daemon=True) for work in (self._ask, self._open_pages)
        ]

    @property
    def wrong_answers(self) -> int:
        return sum(number for status, number in self.answers.items() if status not in RIGHT)

    def __enter__(self) -> Usage:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _ask(self) -> None:
        """A key makes each request safe to repeat: an interrupted one is sent again."""
        for number in count():
            host = self._fleet.hosts[number % len(self._fleet.hosts)].name
            wanted = {
                "benchmark": "soak",
                "baseline": self._shas[0],
                "contenders": [self._shas[1]],
                "hosts": [host],
                "rounds": 1,
                "wait_for_quiet": False,
            }
            while not self._over.wait(0.1):
                if self._waiting() >= AHEAD * len(self._fleet.hosts):
                    continue
                try:
                    made = self._client.post("/api/v1/runs", wanted, key=f"soak-{number}")
                    self.requested.append(UUID(made["id"]))
                    break
                except ApiError:
                    continue
            if self._over.is_set():
                connection.close()
                return

    def _waiting(self) -> int:
        return len(self.requested[-100:]) - len(self._ended())

    def _ended(self) -> list[UUID]:
        """Return those of the last hundred runs that have ended, in no order.

        Faults also end our database session: then the list is empty.
        """
        try:
            ended = Run.objects.filter(pk__in=self.requested[-100:], state__in=RUN_ENDED)
            return list(ended.values_list("pk", flat=True))
        except OperationalError:
            connection.close()
            return []

    def _open_pages(self) -> None:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        while not self._over.wait(LOOK_EVERY_S):
            if ended := self._ended():
                for page in self._list_pages(max(ended)):
                    self.answers[_answer(opener, page)] += 1
                    if self._over.wait(LOOK_EVERY_S):
                        break
        connection.close()

    def _list_pages(self, run: UUID) -> list[str]:
        """Return pages that do not get longer during the soak: their growth would be legitimate."""
        first, second = self._shas
        compared = f"benchmark=soak/soak&baseline={first}&contender={second}&run={run}"
        return [
            f"{self._pages}runs/",
            f"{self._pages}runs/{run}/",
            f"{self._pages}compare/?{compared}",
            f"{self._pages}history/?benchmark=soak/soak",
        ]


def _answer(opener: urllib.request.OpenerDirector, page: str) -> int:
    """Return the status, NOBODY if there is no answer."""
    try:
        with opener.open(page, timeout=30) as answer:
            answer.read()
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return NOBODY


def wait_for_the_end(requested: list[UUID], *, limit_s: float) -> None:
    """Wait until all runs have ended. Raise TimeoutError if they do not."""
    # Faults have ended the database sessions, including that of this thread.
    connection.close()
    give_up = time.monotonic() + limit_s
    while left := Run.objects.filter(pk__in=requested).exclude(state__in=RUN_ENDED).count():
        if time.monotonic() > give_up:
            raise TimeoutError(f"{left} runs do not end")
        time.sleep(0.5)
