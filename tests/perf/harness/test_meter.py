"""What a alternative's work costs is counted, also where it goes on in the background."""

import os
import subprocess
import sys
import time

import pytest

from perf.harness.meter import WorkFailedError, measure_child

# Other tests may have left a thread behind, which the fork does not need.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

# Burns CPU time until it has used so much of it, so that a busy machine changes nothing.
BURN = "import time\nwhile time.process_time() < 0.3: pass\n"


def test_meter_returns_the_value_and_counts_the_children():
    def work():
        return subprocess.run([sys.executable, "-c", BURN]).returncode

    done = measure_child(work, limit_s=60)
    assert done.value == 0
    assert done.cpu_s >= 0.3


def test_meter_counts_and_ends_remaining_processes(tmp_path):
    program = BURN + f"open({str(tmp_path / 'burnt')!r}, 'w').close()\ntime.sleep(600)\n"
    script = f'{sys.executable} -c "$0" & echo $! >{tmp_path / "pid"}'

    def work():
        subprocess.run(["/bin/sh", "-c", script, program], check=True, start_new_session=True)
        while not (tmp_path / "burnt").exists():
            time.sleep(0.01)

    done = measure_child(work, limit_s=60)
    assert done.cpu_s >= 0.3
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_meter_reports_an_error_of_the_work():
    def work():
        raise ValueError("a broken alternative")

    with pytest.raises(WorkFailedError, match="a broken alternative"):
        measure_child(work, limit_s=60)


def test_meter_ends_work_that_takes_too_long():
    with pytest.raises(WorkFailedError, match="longer than it may"):
        measure_child(lambda: time.sleep(600), limit_s=0.1)
