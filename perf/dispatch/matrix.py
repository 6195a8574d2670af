"""A matrix on one host: Pitwall's wall time compared with a shell loop of the same commands."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.hostagent.platform.placement import Share, place
from agents.hostagent.platform.system import read_topology
from devstack.demo_client import Client
from perf.dispatch.run_client import ask, read_end_time, wait_for_end
from perf.harness.ssh_hosts import PYTHON, SshHost

#: One trial of the loop: the script that a person would write for this task.
TRIAL = """\
cd {tree}
{server} >/dev/null 2>&1 &
server=$!
until curl --silent --output /dev/null {url}; do kill -0 $server || exit 1; sleep 0.02; done
{loads}
kill $server
wait $server
sleep {cooldown_s}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixTimes:
    """Wall seconds of the same trials."""

    trials: int
    pitwall_s: float
    loop_s: float


def measure_matrix(
    client: Client, benchmark: str, shas: Sequence[str], host: SshHost, rounds: int, limit_s: float
) -> MatrixTimes:
    """Measure Pitwall first; the loop then repeats the plans of its rounds."""
    posted_run = ask(client, benchmark, shas, host.name, rounds)
    run = wait_for_end(client, posted_run, limit_s=limit_s)
    plans = read_plans(host, [job["id"] for job in run["jobs"]])
    trials = [trial for plan in plans for trial in plan["trials"]]
    return MatrixTimes(
        trials=len(trials),
        pitwall_s=read_end_time(run) - posted_run.posted_at,
        loop_s=_run_loop(build_loop(trials, host.work_dir), host.work_dir / "loop", limit_s),
    )


def read_plans(host: SshHost, jobs: Sequence[str]) -> list[dict[str, Any]]:
    """Return the plans that the host received for these jobs, in order."""
    paths = [path for job in jobs for path in (host.work_dir / "jobs" / job).glob("*/plan.json")]
    paths.sort(key=lambda path: path.stat().st_mtime)
    return [json.loads(path.read_text()) for path in paths]


def build_loop(trials: Sequence[Mapping[str, Any]], root: Path) -> str:
    """Return the shell script that runs the trials' commands one after the other."""
    return "set -u\n" + "".join(_render_trial(trial, root, root / "loop") for trial in trials)


def _render_trial(trial: Mapping[str, Any], root: Path, out: Path) -> str:
    words = {
        "python": PYTHON,
        "port": str(_free_port()),
        "address": "127.0.0.1",
        "bind": "127.0.0.1",
        "tool": str(root / trial["tool"]["path"]),
        "out": str(out / "tool.json"),
        "rows": str(out / f"{trial['id']}.sqlite"),
    }
    cpus = _place(trial)
    server = _pin(trial["server"]["argv"], cpus["server"], words)
    loads = [_pin(load["argv"], cpus["tool"], words) for load in trial["loads"]]
    return TRIAL.format(
        tree=shlex.quote(str(root / trial["tree"] / "tree")),
        server=server,
        url=f"http://127.0.0.1:{words['port']}{trial['ready']['path']}",
        loads="\n".join(f"{load} >/dev/null || exit 1" for load in loads),
        cooldown_s=trial["cooldown_s"],
    )


def _place(trial: Mapping[str, Any]) -> Mapping[str, tuple[int, ...] | None]:
    """Return the CPUs that the agent of this machine gives to server and load tool."""
    topology = read_topology()
    assert topology is not None
    shares = [Share(**share) for share in trial["shares"][trial["server"]["on"]]]
    return place(topology, shares).cpus


def _pin(argv: Sequence[str], cpus: tuple[int, ...] | None, words: Mapping[str, str]) -> str:
    filled = []
    for word in argv:
        for name, value in words.items():
            word = word.replace(f"{{{name}}}", value)
        filled.append(word)
    if cpus:
        filled = ["taskset", "-c", ",".join(map(str, cpus)), *filled]
    return shlex.join(filled)


def _run_loop(script: str, folder: Path, limit_s: float) -> float:
    folder.mkdir()
    (folder / "loop.sh").write_text(script)
    began = time.monotonic()
    with open(folder / "loop.log", "wb") as log:
        argv = ["/bin/sh", str(folder / "loop.sh")]
        loop = subprocess.Popen(argv, stdout=log, stderr=log, start_new_session=True)
    try:
        status = loop.wait(limit_s)
    finally:
        # End the server of a loop that was interrupted.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(loop.pid, signal.SIGKILL)
    elapsed_s = time.monotonic() - began
    if status != 0:
        output = (folder / "loop.log").read_text(errors="replace")[-1000:]
        raise RuntimeError(f"the shell loop ended with {status}: {output}")
    shutil.rmtree(folder)
    return elapsed_s


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
