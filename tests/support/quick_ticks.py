"""Pitwall's Celery application with ticks more often: tests wait for them one by one.

The engine of a test has its own queue, so the wake-up messages of the test's process miss it.
"""

from orchestrator.config.celery import app

TIMES_AS_OFTEN = 7.5

for entry in app.conf.beat_schedule.values():
    entry["schedule"] /= TIMES_AS_OFTEN
