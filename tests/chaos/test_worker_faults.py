"""The worker and beat die as in a crash of their machine, and come back."""

import pytest

from tests.support.engine import Engine
from tests.support.factories import Personas
from tests.support.faults import FULL, ask_for_several, assert_all_finish, wait_for_a_measurement
from tests.support.netns import NamespaceHost

pytestmark = [pytest.mark.chaos, pytest.mark.slow]

KILLS = 3 if FULL else 1


def test_jobs_survive_killed_workers(
    engine: Engine, hosts: list[NamespaceHost], team: Personas, shas: list[str]
) -> None:
    runs = ask_for_several(team, shas)
    for _ in range(KILLS):
        wait_for_a_measurement(engine, hosts)
        engine.kill_worker()
        engine.start("-c", "2", "--prefetch-multiplier", "1")
    assert_all_finish(engine, hosts, runs)
