"""The benchmark of the API still works, in its shortest form; its figures are not looked at."""

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
        [sys.executable, "-m", "perf.api", "--short"],
        cwd=CHECKOUT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["name"] == "api"
    assert answer["measured"].keys() == answer["wanted"].keys()
    assert all(value > 0 for value in answer["measured"].values())
