"""The loads: each as a definition of Pitwall, and as a command line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perf.fidelity.tool_output import (
    Figures,
    PrintedValues,
    read_ghz,
    read_h2load,
    read_oha,
    read_wrk,
)

HERE = Path(__file__).resolve().parent
LUA = HERE / "percentiles.lua"
#: Hashes per answer: the server is the bottleneck, and no tool is.
WORK = 400
CALL = "helloworld.Greeter/SayHello"
MESSAGE = {"name": "Bob"}
#: Sources of the tools that `make tools` does not install.
PACKAGES = {"wrk": "wrk", "h2load": "nghttp2-client"}

_URL = "http://127.0.0.1:{port}/hello"
_PLAIN = "accept-encoding: identity"
_OHA = (
    "{tool}", "--no-tui", "--no-color", "--output-format", "json", "-o", "{out}",
    "--db-url", "{rows}", "--worker-threads", "1", "-t", "10000ms", "--connect-timeout", "5000ms",
    "-c", "10", "-z", "{ms}ms", "-w",
)  # fmt: skip
_OHA_END = ("-m", "GET", "-H", _PLAIN, _URL)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Load:
    """One load; each is its own key in a mapping.

    `definition` is the load of the definition without its times. `typed` is the tool's command line
    with {tool} {out} {rows} {tree} {trial_dir} {port}, and {ms} or {s} for the duration; `printed`
    reads its output.
    """

    key: str
    title: str
    tool: str
    definition: Mapping[str, Any]
    typed: tuple[str, ...]
    printed: Callable[[PrintedValues], Figures]


LOADS = (
    Load(
        key="oha_closed",
        title="oha, closed loop",
        tool="oha",
        definition={"path": "/hello", "connections": 10},
        typed=(*_OHA, *_OHA_END),
        printed=read_oha,
    ),
    Load(
        key="oha_rate",
        title="oha, 2000/s",
        tool="oha",
        definition={"path": "/hello", "connections": 10, "rate": 2000},
        typed=(*_OHA, "-q", "2000", "--latency-correction", *_OHA_END),
        printed=read_oha,
    ),
    Load(
        key="ghz",
        title="ghz, closed loop",
        tool="ghz",
        definition={
            "protocol": "grpc",
            "connections": 2,
            "streams": 4,
            "grpc": {"call": CALL, "proto": "hello.proto", "data": MESSAGE},
        },
        typed=(
            "{tool}", "-O", "json", "-o", "{rows}", "--cpus", "1", "-t", "10000ms",
            "--connect-timeout", "5000ms", "--connections", "2", "-c", "8", "-z", "{ms}ms",
            "--duration-stop", "wait", "--insecure", "--proto", "hello.proto", "-i", "{tree}",
            "--call", CALL, "-D", "{trial_dir}/grpc-data.json", "127.0.0.1:{port}",
        ),
        printed=read_ghz,
    ),
    Load(
        key="wrk",
        title="wrk",
        tool="wrk",
        definition={"path": "/hello", "connections": 10},
        typed=(
            "{tool}", "-t", "1", "-c", "10", "-d", "{s}s", "--timeout", "10s", "-s", str(LUA),
            "-H", _PLAIN, _URL,
        ),
        printed=read_wrk,
    ),
    Load(
        key="h2load",
        title="h2load, h2c",
        tool="h2load",
        definition={"protocol": "h2", "path": "/hello", "connections": 4, "streams": 4},
        typed=(
            "{tool}", "-t", "1", "-c", "4", "--log-file={rows}", "-D", "{ms}ms", "-m", "4",
            "--no-tls-proto=h2c", "-H", ":method: GET", "-H", _PLAIN, _URL,
        ),
        printed=read_h2load,
    ),
)  # fmt: skip


def build_files(load: Load) -> dict[str, str]:
    """Return the files that the tool reads in {trial_dir}."""
    return {"grpc-data.json": json.dumps(MESSAGE)} if load.tool == "ghz" else {}


def find_load_program(tool: str, environment: Mapping[str, str]) -> Path | None:
    """Return the binary that Pitwall uses: from its setting, otherwise from the PATH."""
    program = environment.get(f"PITWALL_{tool.upper()}") or shutil.which(tool)
    return Path(program) if program else None
