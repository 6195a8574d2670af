"""Output of load tools: reduced by the agent on the host, and read by the orchestrator."""

import json
import random
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from agents.hostagent.errors import TrialFailed
from agents.hostagent.load.load_output import get_measured_files, reduce_output
from agents.hostagent.paths import build_stdout_path
from agents.hostagent.platform.program_versions import find_version
from agents.hostagent.readers.registry import READERS
from agents.hostagent.step.plan import Limits, Load, Tool
from orchestrator.loadtools.model import GrpcCall, LoadSpec, ToolOutputError
from orchestrator.loadtools.registry import TOOLS
from tests.agents.readers.test_oha_reader import database
from tests.fuzz.inputs.mutation import changed_json, changed_value
from tests.fuzz.inputs.target import Target

GOLDEN = Path(__file__).parents[2] / "loadtools" / "golden"
#: Larger recordings have no other parts, only more of them.
MOST_BYTES = 24_000
_GRPC = GrpcCall(method="helloworld.Greeter/SayHello", data={})
_SCRIPT = b"""{"type": "request", "start_s": 0.0, "latency_us": 1000, "ok": true, "status": 200}
{"type": "latencies", "value_us": [10, 20], "count": [1, 3], "ok": false, "status": "500"}
{"type": "error", "class": "timeout", "text": "late", "count": 2}
{"type": "reading", "metric": "script.upload_s", "value": 1.5}
{"type": "protocol", "spoken": "h2"}
{"type": "done", "ended_s": 1.0, "corrected": true}
"""
_RESULT: Mapping[str, Any] = {
    "rc": 0, "signal": None, "server_exit": None, "hung": False, "tool_cpus": 1,
    "load_started_at": 1000.0, "load_ended_at": 1001.0, "argv": ["tool"],
    "tool": {"name": "any", "version": "1.2.3"},
    "usage": {"server_cpu_s": 0.5, "tool_cpu_s": 0.1, "steal_s": None, "reasons": {}},
    "limits": {"tool": {"cpus": [0], "refused": {}}},
    "checks": [{"name": "load", "when": "before", "problem": None, "protocol": "h1"}],
}  # fmt: skip


class Left(NamedTuple):
    """The files that a tool left on the host; None for a file that it did not write."""

    out: bytes | None
    raw: bytes | None
    stdout: bytes


class ToolResult(NamedTuple):
    """What the orchestrator receives of one load."""

    spec: LoadSpec
    report: bytes
    rows: Any
    result: Any


def _left(tool: str) -> list[Left]:
    return [each for each in _RECORDED[tool]() if sum(len(part or b"") for part in each) < 60_000]


def _read_oha_recordings() -> list[Left]:
    with tempfile.TemporaryDirectory() as name:
        rows = [(0.1, 0.2, 200, 10), (0.5, 1.5, 200, 10), (1.0, 1.25, 404, 0)]
        raw = database(Path(name) / "rows.raw", rows).read_bytes()
    reports = [path.read_bytes() for path in sorted((GOLDEN / "oha-1.16.0").glob("*.json"))]
    return [Left(each, raw, b"") for each in reports if len(each) < MOST_BYTES]


def _read_k6_recordings() -> list[Left]:
    return [
        Left(path.with_suffix(".json").read_bytes(), path.read_bytes(), b"")
        for path in sorted((GOLDEN / "k6-1.8.1").glob("*.csv"))
        if path.stat().st_size < MOST_BYTES
    ]


def _read_ghz_recordings() -> list[Left]:
    paths = sorted((GOLDEN / "ghz-0.93.0").glob("*.json"))
    return [
        Left(None, path.read_bytes(), b"")
        for path in paths
        if path.stem != "index" and path.stat().st_size < MOST_BYTES
    ]


def _with_stdout(folder: str) -> list[Left]:
    def maybe(path: Path) -> bytes | None:
        return path.read_bytes() if path.exists() else None

    return [
        Left(maybe(path.with_suffix(".json")), maybe(path.with_suffix(".rows")), path.read_bytes())
        for path in sorted((GOLDEN / folder).glob("*.stdout"))
    ]


_RECORDED: Mapping[str, Callable[[], list[Left]]] = {
    "oha": _read_oha_recordings,
    "k6": _read_k6_recordings,
    "ghz": _read_ghz_recordings,
    "wrk": partial(_with_stdout, "wrk-4.1.0"),
    "h2load": partial(_with_stdout, "h2load-1.52.0"),
    "script": lambda: [Left(None, None, _SCRIPT)],
}


def _change_left(chance: random.Random, sample: Left, others: Sequence[Left]) -> Left:
    """Change one of its files, or, occasionally, remove one."""
    names = [name for name in Left._fields if getattr(sample, name)]
    if not names:
        return sample
    name = chance.choice(names)
    if chance.random() < 0.02:
        return sample._replace(**{name: b"" if name == "stdout" else None})
    pieces = [getattr(other, name) for other in others[:20] if getattr(other, name)]
    return sample._replace(**{name: changed_json(chance, getattr(sample, name), pieces)})


def _lay(left: Left, folder: Path) -> None:
    files = get_measured_files(folder, 0)
    build_stdout_path(files.out).write_bytes(left.stdout)
    for path, content in ((files.out, left.out), (files.raw, left.raw)):
        if content is not None:
            path.write_bytes(content)


def _tool(name: str) -> Tool:
    return Tool(name=name, path=name, limits=Limits(), reader=TOOLS[name].reader, cpus=1)


def _reduce(tool: str, left: Left, folder: Path) -> None:
    """Reduce as the agent does after each load; the result is sent as JSON."""
    _lay(left, folder)
    load = Load(
        argv=(), env={}, kind="measure", wall_limit_s=1.0, warmup_s=0.0, good_statuses=(200,)
    )
    rows = reduce_output(get_measured_files(folder, 0), _tool(tool), load)
    json.dumps(rows)


@lru_cache(maxsize=8)
def _build_results(tool: str) -> tuple[ToolResult, ...]:
    """Return what the agent makes of the recordings, as the orchestrator receives it."""
    results = []
    for left in _left(tool):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            _lay(left, folder)
            files = get_measured_files(folder, 0)
            try:
                rows = READERS[TOOLS[tool].reader](folder, files.out, files.raw, 0.0)
            except Exception:
                continue  # A recording of a tool that failed.
            results.append(
                ToolResult(_spec(tool), files.out.read_bytes(), _plain(rows), dict(_RESULT))
            )
    return tuple(results)


def _plain(rows: Any) -> Any:
    return json.loads(json.dumps(rows))


def _spec(tool: str) -> LoadSpec:
    if tool == "ghz":
        return LoadSpec(path="/", connections=2, requests=60, protocol="grpc", grpc=_GRPC)
    if tool == "script":
        return LoadSpec(path="/", connections=1, duration_s=1.0, command=("x",))
    return LoadSpec(path="/", connections=2, model="open", rate=20.0, duration_s=1.0)


def _change_result(
    chance: random.Random, sample: ToolResult, others: Sequence[ToolResult]
) -> ToolResult:
    part = chance.choice(("report", "rows", "rows", "result"))
    if part == "report":
        pieces = [each.report for each in others[:20]]
        return sample._replace(report=changed_json(chance, sample.report, pieces))
    return sample._replace(**{part: changed_value(chance, getattr(sample, part))})


def _parse(tool: str, sample: ToolResult, _: Path) -> None:
    reading = TOOLS[tool].parse(sample.spec, sample.report, sample.rows, sample.result)
    assert reading.validity.level in {"valid", "suspect", "invalid"}


def _read_version(given: bytes, _: Path) -> None:
    find_version(given.decode("utf-8", "replace"))


def _versions() -> list[bytes]:
    return [b"oha 1.16.0\n", b"nginx version: nginx/1.22.1 (Debian)", b"k6 v1.8.1 (go1.24, x)"]


_SHARE = {"oha": 1, "k6": 1, "ghz": 2, "wrk": 3, "h2load": 2, "script": 3}
TARGETS = (
    *(
        Target(name=f"reader-{name}", samples=partial(_left, name), change=_change_left,
               read=partial(_reduce, name), errors=(TrialFailed,), share=_SHARE[name])
        for name in _RECORDED
    ),
    *(
        Target(name=f"parser-{name}", samples=partial(_build_results, name), change=_change_result,
               read=partial(_parse, name), errors=(ToolOutputError,), share=5)
        for name in _RECORDED
    ),
    Target(name="version", samples=_versions, change=changed_json, read=_read_version, errors=(),
           share=2),
)  # fmt: skip
