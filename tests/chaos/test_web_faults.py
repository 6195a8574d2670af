"""The web server dies under requests for runs: each is made once, and none is disturbed."""

import threading
from collections.abc import Iterator

import pytest

from orchestrator.accounts.services import create_token
from orchestrator.runs.models import Run
from tests.chaos.web import Web, running_web
from tests.support.engine import Engine
from tests.support.factories import Personas
from tests.support.faults import FULL, assert_all_finish, wait_for_a_measurement
from tests.support.netns import NamespaceHost

pytestmark = [pytest.mark.chaos, pytest.mark.slow]

REQUESTS = 12 if FULL else 4
KILLS = 4 if FULL else 2


@pytest.fixture
def web(engine: Engine) -> Iterator[Web]:
    with running_web(engine) as running:
        yield running


def test_jobs_survive_a_killed_and_restarted_web_server(
    engine: Engine, hosts: list[NamespaceHost], team: Personas, shas: list[str], web: Web
) -> None:
    token = create_token(member=team.alice, name="ci").secret
    wanted = {"benchmark": "hello", "baseline": shas[0], "contenders": [shas[1]], "rounds": 1}
    made: dict[str, str] = {}

    def ask() -> None:
        for number in range(REQUESTS):
            host = hosts[number % len(hosts)].name
            key = f"build-{number}"
            made[key] = web.ask({**wanted, "hosts": [host]}, token=token, key=key)

    asking = threading.Thread(target=ask)
    asking.start()
    for _ in range(KILLS):
        wait_for_a_measurement(engine, hosts)
        web.kill()
        web.start()
    asking.join()
    runs = list(Run.objects.all())
    assert {str(run.pk) for run in runs} == set(made.values())
    assert len(runs) == len(made) == REQUESTS
    assert_all_finish(engine, hosts, runs)
