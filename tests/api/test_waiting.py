"""The long poll, on a clock of its own."""

import pytest

from orchestrator.api.waiting import wait_for_change

ENDED = frozenset({"finished"})


class Clock:
    def __init__(self):
        self.now = 0.0

    def time(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.mark.parametrize(
    ("states", "waited"),
    [
        (["finished"], 0),
        (["queued", "queued", "running", "finished"], 1.0),
        (["running", "finished"], 0.5),
        (["running"] * 100, 3.2),
    ],
)
def test_it_waits_until_something_is_new(states, waited):
    clock, looks = Clock(), iter(states)
    wait_for_change(
        lambda: next(looks), wait_s=3.2, ended=ENDED, clock=clock.time, sleep=clock.sleep
    )
    assert clock.now == pytest.approx(waited)
