"""A worker, background worker or beat whose main loop stops after a few turns.

`python -m tests.support.stuck_process KIND SCHEDULE`.
"""

import sys
import time
from itertools import count

from celery.signals import beat_init, worker_ready

from orchestrator.config import background_worker, celery_app
from orchestrator.operations import heartbeat_thread
from orchestrator.operations.leader_scheduler import LeaderScheduler

heartbeat_thread.STUCK_S = 1.0
heartbeat_thread.EVERY_S = 0.2
_turns = count()


def stand_still() -> None:
    if next(_turns) > 2:
        time.sleep(3600)


@worker_ready.connect
def _hold_up_worker(sender, **_):
    sender.hub.on_tick.add(stand_still)


@beat_init.connect
def _hold_up_beat(sender, **_):
    tick = LeaderScheduler.tick

    def tick_and_stand_still(self, *args, **kwargs):
        rest = tick(self, *args, **kwargs)
        stand_still()
        return min(rest, 0.2)

    LeaderScheduler.tick = tick_and_stand_still


if __name__ == "__main__":
    kind, schedule = sys.argv[1:]
    if kind == "background":
        background_worker.main()
    elif kind == "beat":
        celery_app.start(["beat", "--loglevel", "warning", "--pidfile=", "-s", schedule])
    else:
        celery_app.worker_main(["worker", "--loglevel", "warning"])
