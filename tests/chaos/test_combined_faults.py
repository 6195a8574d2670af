"""Web processes and workers of several machines die at random: the answer is complete, and once.

They share the data folder with the mirrors of repositories, as a deployment on several machines
does, and no other disk. Each worker has a beat, of which one sends the ticks.
"""

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pytest
import redis as redis_client

from orchestrator.accounts.services import create_token
from orchestrator.database.redis_server import build_key_name
from orchestrator.database.shared_redis import connect_redis
from orchestrator.runs.models import Run
from orchestrator.runs.states import RUN_ENDED
from tests.chaos.web import Web, running_web
from tests.support.engine import Engine
from tests.support.factories import Personas
from tests.support.faults import FULL, assert_all_finish, is_measuring
from tests.support.netns import NamespaceHost

pytestmark = [pytest.mark.chaos, pytest.mark.slow]

SEED = 20260711
#: How often one of each kind is killed, and for how long it is away at most.
KILLS = {"worker": 12, "web": 8} if FULL else {"worker": 1, "web": 1}
AWAY_S = 8.0 if FULL else 2.0
REQUESTS = 12 if FULL else 2
#: Enough for all kills: rounds after the first share a plan, which goes on while a worker is away.
ROUNDS = 6 if FULL else 2


@dataclass(slots=True, kw_only=True)
class Crowd:
    """Three workers with their beats, and two web processes."""

    workers: list[Engine]
    webs: list[Web]

    def kill(self, kind: str, at: int, away_s: float) -> None:
        if kind == "worker":
            self.workers[at].kill_worker()
            threading.Event().wait(away_s)
            self.workers[at].start("-c", "4")
        else:
            self.webs[at].kill()
            threading.Event().wait(away_s)
            self.webs[at].start()


@pytest.fixture
def crowd(engine: Engine) -> Iterator[Crowd]:
    with ExitStack() as stack:
        others = [replace(engine, worker=None) for _ in range(2)]
        for other in others:
            other.start("-c", "4")
            stack.callback(other.stop)
        webs = [stack.enter_context(running_web(replace(engine, worker=None))) for _ in range(2)]
        yield Crowd(workers=[engine, *others], webs=webs)
        for other in others:
            # All at once: each lets its tasks end.
            if other.worker is not None:
                other.worker.terminate()


def test_jobs_survive_kills_of_workers_beats_and_web_servers(
    crowd: Crowd, engine: Engine, hosts: list[NamespaceHost], team: Personas, shas: list[str]
) -> None:
    random = Random(SEED)
    made: dict[str, str] = {}
    token = create_token(member=team.alice, name="ci").secret
    asking = threading.Thread(target=_ask, args=(crowd, hosts, token, shas, made))
    asking.start()
    kinds = [kind for kind, times in KILLS.items() for _ in range(times)]
    random.shuffle(kinds)
    for kind in kinds:
        engine.wait_for(lambda: any(is_measuring(host) for host in hosts) or _all_ended(made))
        assert not _all_ended(made), "killed nothing while something was measured"
        at = random.randrange(3 if kind == "worker" else 2)
        crowd.kill(kind, at, random.uniform(0, AWAY_S))
    asking.join()
    runs = list(Run.objects.all())
    assert {str(run.pk) for run in runs} == set(made.values())
    assert len(runs) == len(made) == REQUESTS
    assert_all_finish(engine, hosts, runs)
    _assert_one_beat(engine)


def _ask(
    crowd: Crowd, hosts: list[NamespaceHost], token: str, shas: list[str], made: dict[str, str]
) -> None:
    """Each request goes to another web process, again and again until it is answered."""
    wanted: dict[str, Any] = {"benchmark": "hello", "baseline": shas[0], "contenders": [shas[1]]}
    for number in range(REQUESTS):
        body = {**wanted, "rounds": ROUNDS, "hosts": [hosts[number % len(hosts)].name]}
        web = crowd.webs[number % len(crowd.webs)]
        made[f"build-{number}"] = web.ask(body, token=token, key=f"build-{number}")


def _all_ended(made: dict[str, str]) -> bool:
    ended = Run.objects.filter(state__in=RUN_ENDED).count()
    return len(made) == REQUESTS and ended == REQUESTS


def _assert_one_beat(engine: Engine) -> None:
    """Of three beats one holds the ticks, and it is one that runs."""
    redis: redis_client.Redis = connect_redis()
    queue = engine.environment["PITWALL_QUEUE"]
    holder: Any = redis.get(build_key_name(queue, "beat"))
    alive: Any = redis.zrange(build_key_name(queue, "heartbeats"), 0, -1)
    assert holder is not None
    assert b"beat " + holder in alive
