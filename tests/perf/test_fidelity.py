"""The benchmark of fidelity still works, with one of its loads; its figures are not looked at.

The others are tried by hand (test_fidelity_by_hand.py), and through Pitwall by the engine's tests.
"""

import json
import os
import subprocess
import sys

import pytest

from devstack.places import CHECKOUT

#: It starts servers of its own, and must not find those of the tests.
OF_THE_TESTS = ("DATABASE_URL", "REDIS_URL")


@pytest.mark.engine
def test_it_ends_with_a_figure_for_everything_that_is_wanted():
    environment = {name: text for name, text in os.environ.items() if name not in OF_THE_TESTS}
    done = subprocess.run(
        [sys.executable, "-m", "perf.fidelity", "--short", "--pairs", "1", "--only", "wrk"],
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
    ratios = {key for key in measured if key.endswith("_ratio")}
    assert len(ratios) == 6
    assert all(measured[key] > 0 for key in ratios)
    assert measured["sampler_percent_of_a_core"] > 0
