"""How many objects wait to be freed that refer to themselves."""

import os
import subprocess
import sys

from django.conf import settings

from orchestrator.core.ids import new_id

#: Prints how many objects existed at most at a time. 2,000 of them are in use, so that they outlive
#: the first searches for garbage, as objects of tasks do.
PROGRAM = """
import os, sys
from collections import deque

os.environ["DJANGO_SETTINGS_MODULE"] = "orchestrator.config.settings"
import django
django.setup()
import orchestrator.config.celery, orchestrator.dispatch.tasks
from orchestrator.operations.process_life import begin_process

class Node:
    existing = most = 0

    def __init__(self):
        self.me = self
        Node.existing += 1
        Node.most = max(Node.most, Node.existing)

    def __del__(self):
        Node.existing -= 1

if sys.argv[1] == "begun":
    begin_process("beat")
in_use = deque(maxlen=2000)
for _ in range(200_000):
    in_use.append(Node())
print(Node.most)
"""


def most_objects(state: str) -> int:
    env = {**os.environ, "REDIS_URL": settings.CELERY_BROKER_URL, "PITWALL_QUEUE": f"t-{new_id()}"}
    argv = [sys.executable, "-c", PROGRAM, state]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=True, timeout=120)
    return int(done.stdout)


def test_garbage_collection_does_not_wait_for_a_quarter_of_all_objects() -> None:
    assert 2 * most_objects("begun") < most_objects("loaded only")
