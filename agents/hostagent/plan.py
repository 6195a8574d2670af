"""plan.json as values: the one place that reads the orchestrator's JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from .errors import AgentError, BadPlan
from .paths import below, build_dir, checked_id
from .protocol import SCHEMA


@dataclass(frozen=True)
class Build:
    commit: str
    source: str
    tree: str
    steps: tuple[tuple[str, ...], ...]
    env: Mapping[str, str]
    timeout_s: float


@dataclass(frozen=True)
class Server:
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cpus: Optional[tuple[int, ...]]
    port: Optional[int]


@dataclass(frozen=True)
class Ready:
    path: str
    status: int
    body: Optional[str]
    timeout_s: float


@dataclass(frozen=True)
class Load:
    argv: tuple[str, ...]
    kind: str
    wall_limit_s: float


@dataclass(frozen=True)
class Tool:
    name: str
    path: str
    cpus: Optional[tuple[int, ...]]


@dataclass(frozen=True)
class Trial:
    id: str
    tree: str
    commit: str
    server: Server
    ready: Ready
    loads: tuple[Load, ...]
    tool: Tool
    warmup_s: float
    cooldown_s: float
    expected_s: float

    @property
    def measure(self) -> Load:
        return next(load for load in self.loads if load.kind == "measure")

    @property
    def warmups(self) -> tuple[Load, ...]:
        return tuple(load for load in self.loads if load.kind == "warmup")


@dataclass(frozen=True)
class Plan:
    job: str
    step: str
    silence_s: float
    builds: tuple[Build, ...]
    trials: tuple[Trial, ...]


class Node:
    """A value of the plan together with the path to it, so that each complaint names its place."""

    def __init__(self, value: Any, path: str) -> None:
        self._value = value
        self._path = path

    def __getitem__(self, key: str) -> Node:
        if not isinstance(self._value, dict) or key not in self._value:
            raise BadPlan(f"{self._path}.{key} is missing from the plan")
        return Node(self._value[key], f"{self._path}.{key}")

    def items(self) -> tuple[Node, ...]:
        values = self._typed(list, "a list")
        return tuple(Node(value, f"{self._path}[{at}]") for at, value in enumerate(values))

    def text(self) -> str:
        return self._typed(str, "a string")

    def number(self) -> float:
        if isinstance(self._value, bool):
            raise BadPlan(f"{self._path}: expected a number")
        return float(self._typed((int, float), "a number"))

    def whole(self) -> int:
        return self._typed(int, "a whole number")

    def texts(self) -> tuple[str, ...]:
        return tuple(item.text() for item in self.items())

    def mapping(self) -> dict[str, str]:
        return {key: self[key].text() for key in self._typed(dict, "an object")}

    def cpus(self) -> Optional[tuple[int, ...]]:
        return None if self.is_null() else tuple(item.whole() for item in self.items())

    def is_null(self) -> bool:
        return self._value is None

    def _typed(self, kind: Any, name: str) -> Any:
        if not isinstance(self._value, kind):
            raise BadPlan(f"{self._path}: expected {name}, found {self._value!r}")
        return self._value


def load_plan(path: Path, root: Path) -> Plan:
    """The plan in `path`, checked; BadPlan names the place and what was expected there."""
    try:
        node = Node(json.loads(path.read_text("utf-8")), "plan")
    except (OSError, ValueError) as error:
        raise BadPlan(f"{path} cannot be read: {error}") from error
    if node["schema"].whole() != SCHEMA:
        raise BadPlan(f"plan.schema: this agent reads {SCHEMA}; send the agent that fits the plan")
    plan = _plan(node)
    _check_names(plan, root)
    return plan


def _plan(node: Node) -> Plan:
    return Plan(
        job=node["job"].text(),
        step=node["step"].text(),
        silence_s=node["silence_s"].number(),
        builds=tuple(_build(item) for item in node["builds"].items()),
        trials=tuple(_trial(item) for item in node["trials"].items()),
    )


def _build(node: Node) -> Build:
    return Build(
        commit=node["commit"].text(),
        source=node["source"].text(),
        tree=node["tree"].text(),
        steps=tuple(item.texts() for item in node["steps"].items()),
        env=node["env"].mapping(),
        timeout_s=node["timeout_s"].number(),
    )


def _trial(node: Node) -> Trial:
    loads = tuple(_load(item) for item in node["loads"].items())
    if [load.kind for load in loads].count("measure") != 1:
        raise BadPlan(f"trial {node['id'].text()}: expected exactly one load of kind 'measure'")
    return Trial(
        id=node["id"].text(),
        tree=node["tree"].text(),
        commit=node["commit"].text(),
        server=_server(node["server"]),
        ready=_ready(node["ready"]),
        loads=loads,
        tool=_tool(node["tool"]),
        warmup_s=node["warmup_s"].number(),
        cooldown_s=node["cooldown_s"].number(),
        expected_s=node["expected_s"].number(),
    )


def _server(node: Node) -> Server:
    return Server(
        argv=node["argv"].texts(),
        env=node["env"].mapping(),
        cpus=node["cpus"].cpus(),
        port=None if node["port"].is_null() else node["port"].whole(),
    )


def _ready(node: Node) -> Ready:
    return Ready(
        path=node["path"].text(),
        status=node["status"].whole(),
        body=None if node["body"].is_null() else node["body"].text(),
        timeout_s=node["timeout_s"].number(),
    )


def _load(node: Node) -> Load:
    return Load(
        argv=node["argv"].texts(),
        kind=node["kind"].text(),
        wall_limit_s=node["wall_limit_s"].number(),
    )


def _tool(node: Node) -> Tool:
    return Tool(name=node["name"].text(), path=node["path"].text(), cpus=node["cpus"].cpus())


def _check_names(plan: Plan, root: Path) -> None:
    try:
        for build in plan.builds:
            checked_id(build.commit)
            below(root, build.source)
            build_dir(root, build.tree)
        for trial in plan.trials:
            checked_id(trial.id)
            build_dir(root, trial.tree)
    except AgentError as error:
        raise BadPlan(f"plan: {error.message}") from error
