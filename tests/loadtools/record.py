"""Records what the load tools of this machine leave behind, for the golden files.

    python -m tests.loadtools.record wrk-4.1.0 h2load-1.52.0

A recording NAME is NAME.load.json (the load, argv, exit status, stderr) and what the tool left
before any reader saw it: NAME.json ({out}), NAME.rows ({rows}), NAME.stdout.
"""

import contextlib
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.hostagent.paths import build_stdout_path
from orchestrator.loadtools.model import LoadSpec

from .running import Left, run, serving, tls_files

GOLDEN = Path(__file__).parent / "golden"
TARGET, CYCLING = "target.py", "cycling.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """`server`: its program and arguments; "tls" stands for certificates, None for no server."""

    server: tuple[str, ...] | None = (TARGET,)
    load: dict[str, Any]


def _wrk(*server: str, **load: Any) -> Scenario:
    return Scenario(
        server=server or (TARGET,),
        load={"path": "/hello", "connections": 2, "duration_s": 1.0, **load},
    )


def _h2load(*server: str, **load: Any) -> Scenario:
    amount = {} if "duration_s" in load else {"requests": 300}
    return Scenario(
        server=server or (TARGET,), load={"path": "/hello", "connections": 4, **amount, **load}
    )


SCENARIOS: dict[str, dict[str, Scenario]] = {
    "wrk-4.1.0": {
        "plain": _wrk(),
        "tls": _wrk(TARGET, "tls", tls=True),
        "closing": _wrk(CYCLING, "200", keepalive=False),
        "frozen": _wrk(TARGET, "--freeze", "0.3", "0.7", duration_s=2.0, connections=1),
        "mixed": _wrk(CYCLING, "200", "200", "503"),
        "status500": _wrk(path="/status/500"),
        "dropped": _wrk(CYCLING, "200", "200", "200", "drop"),
        "late": _wrk(CYCLING, "200", "late", duration_s=3.0, request_timeout_s=1.0),
        "never": _wrk(CYCLING, "never"),
        "refused": Scenario(
            server=None, load={"path": "/hello", "connections": 2, "duration_s": 1.0}
        ),
    },
    "h2load-1.52.0": {
        "h1": _h2load(),
        "h1_tls": _h2load(TARGET, "tls", tls=True),
        "h1_closing": _h2load(CYCLING, "200", keepalive=False),
        "h1_timed": _h2load(connections=1, duration_s=0.1),
        "h2c": _h2load(protocol="h2", streams=3),
        "h2c_timed": _h2load(protocol="h2", streams=3, duration_s=0.2),
        "h2": _h2load(TARGET, "tls", protocol="h2", tls=True, streams=3),
        "h2_over_limit": _h2load(protocol="h2", streams=200, connections=2),
        "h2c_to_h1_only": _h2load(CYCLING, "200", protocol="h2", requests=20),
        "tls_to_plain": _h2load(tls=True, requests=20),
        "status404": _h2load(path="/status/404", protocol="h2"),
        "mixed": _h2load(CYCLING, "200", "200", "503"),
        "dropped": _h2load(CYCLING, "200", "200", "drop"),
        "dropped_timed": _h2load(CYCLING, *["200"] * 50, "drop", duration_s=0.3),
        "never": _h2load(CYCLING, "200", "never", request_timeout_s=0.3),
        "refused": Scenario(server=None, load={"path": "/hello", "connections": 4, "requests": 20}),
        "refused_timed": Scenario(
            server=None, load={"path": "/hello", "connections": 4, "duration_s": 0.3}
        ),
    },
}


@contextlib.contextmanager
def _server(scenario: Scenario, folder: Path) -> Iterator[int]:
    _, cert, key = tls_files(folder)
    program, *words = scenario.server or (TARGET,)
    arguments = [
        each for word in words for each in (["--tls", cert, key] if word == "tls" else [word])
    ]
    with serving(program, *arguments) as port:
        if scenario.server is not None:
            yield port
    if scenario.server is None:
        yield port


def record(tool: str, name: str, folder: Path) -> None:
    scenario = SCENARIOS[tool][name]
    with tempfile.TemporaryDirectory() as made, _server(scenario, Path(made)) as port:
        left = run(tool.partition("-")[0], LoadSpec(**scenario.load), port, Path(made))
        _keep(left, scenario, folder / name)


def _keep(left: Left, scenario: Scenario, to: Path) -> None:
    # Where it was recorded is of no interest.
    argv = [word.replace(str(left.out.parent), "/trial") for word in left.argv]
    recording = {"load": scenario.load, "argv": argv, "rc": left.rc, "stderr": left.stderr}
    to.with_suffix(".load.json").write_text(json.dumps(recording, indent=1) + "\n")
    for path, ending in (
        (left.out, ".json"),
        (left.raw, ".rows"),
        (build_stdout_path(left.out), ".stdout"),
    ):
        if path.exists():
            shutil.copyfile(path, to.with_suffix(ending))


def recorded(tool: str, name: str, folder: Path) -> tuple[LoadSpec, Left]:
    """A recording as if it had just been made in `folder`."""
    source = GOLDEN / tool / name
    recording = json.loads(source.with_suffix(".load.json").read_text())
    out, raw = folder / "tool.json", folder / "rows.raw"
    for path, ending in ((out, ".json"), (raw, ".rows"), (build_stdout_path(out), ".stdout")):
        if source.with_suffix(ending).exists():
            shutil.copyfile(source.with_suffix(ending), path)
    build_stdout_path(out).touch()
    left = Left(
        argv=recording["argv"], rc=recording["rc"], out=out, raw=raw, stderr=recording["stderr"],
        started_at=1_000.0, ended_at=1_002.0, warmup_s=0.0,
    )  # fmt: skip
    return LoadSpec(**recording["load"]), left


def main() -> None:
    for tool in sys.argv[1:]:
        (GOLDEN / tool).mkdir(exist_ok=True)
        for name in SCENARIOS[tool]:
            record(tool, name, GOLDEN / tool)


if __name__ == "__main__":
    main()
