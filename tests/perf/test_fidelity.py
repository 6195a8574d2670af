"""The benchmark of fidelity still works, in its shortest form; its figures are not looked at."""

import json
import os
import subprocess
import sys

import pytest

from devstack.places import CHECKOUT
from perf.faithful.loads import LOADS

#: It starts servers of its own, and must not find those of the tests.
OF_THE_TESTS = ("DATABASE_URL", "REDIS_URL")


@pytest.mark.engine
def test_it_ends_with_a_figure_for_every_load_and_tool():
    environment = {name: text for name, text in os.environ.items() if name not in OF_THE_TESTS}
    done = subprocess.run(
        [sys.executable, "-m", "perf.fidelity", "--short", "--pairs", "1"],
        cwd=CHECKOUT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["name"] == "fidelity"
    measured = answer["measured"]
    assert measured.keys() == answer["wanted"].keys()
    expected = {f"{load.key}_{each}_ratio" for load in LOADS for each in ("rate", "p50", "p99")}
    assert expected <= measured.keys()
    assert all(measured[key] > 0 for key in expected)
    assert measured["sampler_percent_of_a_core"] > 0
