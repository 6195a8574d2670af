"""Pitwall's Celery application with ticks more often: tests wait for them one by one.

The engine of a test has its own queue, so the wake-up messages of the test's process miss it.
"""

from orchestrator.config.celery import app

#: Seconds between two ticks that tests wait for.
TICKS_S = {
    "pump": 4.0,
    "process-results": 8.0,
    "start-due-work": 8.0,
    "import-results": 8.0,
    "fetch-repositories": 8.0,
}

for name, seconds in TICKS_S.items():
    app.conf.beat_schedule[name]["schedule"] = seconds
