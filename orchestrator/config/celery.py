"""The Celery application, and the ticks that beat sends.

Every task lasts seconds, is idempotent and may run twice or late; a tick that was not taken up
before the next one is due expires instead of piling up.
"""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "orchestrator.config.settings")

app = Celery("pitwall")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["orchestrator.dispatch"])


def _every(seconds: float, task: str) -> dict[str, object]:
    return {"task": task, "schedule": seconds, "options": {"expires": 2 * seconds}}


app.conf.beat_schedule = {
    "pump": _every(1.0, "orchestrator.dispatch.tasks.pump"),
    "sweep": _every(5.0, "orchestrator.dispatch.tasks.sweep"),
    "claim-schedules": _every(10.0, "orchestrator.dispatch.tasks.claim_schedules"),
    "check-hosts": _every(30.0, "orchestrator.dispatch.tasks.check_hosts"),
}
