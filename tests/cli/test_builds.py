"""The script that docs/ci offers, as a CI would run it: with curl and jq against a real server."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from orchestrator.runs.models import Run
from orchestrator.runs.services import cancel_run
from tests.support.factories import finish_run

SCRIPT = Path(__file__).parents[2] / "docs" / "ci" / "compare.sh"
MISSING = [tool for tool in ("bash", "curl", "jq") if shutil.which(tool) is None]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(bool(MISSING), reason=f"the script needs {' and '.join(MISSING)}"),
]


@pytest.fixture
def start(lab, alice, live_server):
    """Starts the script for the first two commits; what is left is killed in the end."""
    started = []

    def start(**changes):
        environment = {
            "PATH": os.environ["PATH"],
            "PITWALL_URL": live_server.url,
            "PITWALL_TOKEN": alice.secret,
            "BENCHMARK": "hello",
            "HOSTS": "here",
            "BASELINE": lab.shas[0],
            "CONTENDER": lab.shas[1],
            **changes,
        }
        script = subprocess.Popen(
            ["bash", SCRIPT], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        started.append(script)
        return script

    yield start
    for script in started:
        script.kill()
        script.communicate()


def run_of(script):
    """The run that the script has asked for."""
    until = time.monotonic() + 30
    while script.poll() is None and time.monotonic() < until:
        if (run := Run.objects.first()) is not None:
            return run
        time.sleep(0.05)
    pytest.fail(f"the script asked for no run: {script.communicate()}")


@pytest.mark.parametrize(
    ("rates", "verdict", "code"),
    [((1000, 800), "regressed", 1), ((1000, 1000), "equivalent", 0), ((1000, 1300), "improved", 0)],
)
def test_it_fails_the_build_on_a_regression_only(start, lab, rates, verdict, code):
    script = start()
    finish_run(run_of(script), rates)
    table, progress = script.communicate(timeout=60)
    assert script.returncode == code, progress
    rows = [line.split("\t") for line in table.splitlines() if "\t" in line]
    assert ["here", "requests.rate", verdict] in [[row[1], row[2], row[-1]] for row in rows]
    assert "of 10 trials" in progress
    assert "finished: 10 of 10 trials" in progress


def test_a_second_try_for_the_same_commit_does_not_measure_again(start):
    first = start()
    finish_run(run_of(first), (1000, 1000))
    first.communicate(timeout=60)
    second = start()
    second.communicate(timeout=60)
    assert (first.returncode, second.returncode) == (0, 0)
    assert Run.objects.count() == 1


def test_it_says_that_a_run_was_cancelled(start, lab):
    script = start()
    cancel_run(member=lab.personas.alice, run_id=run_of(script).pk)
    script.communicate(timeout=60)
    assert script.returncode == 2


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"HOSTS": "here,nowhere"}, "no host named nowhere"),
        ({"CONTENDER": "nosuchbranch"}, "nosuchbranch"),
        ({"PITWALL_TOKEN": "pw_wrong"}, "unknown or was revoked"),
    ],
)
def test_it_says_what_was_refused(start, changes, said):
    script = start(**changes)
    _, words = script.communicate(timeout=60)
    assert script.returncode == 2
    assert said in words
    assert Run.objects.count() == 0
