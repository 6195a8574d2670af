"""plan.json as values: the one place that reads the orchestrator's JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Optional

from .errors import AgentError, BadPlan
from .node import Node
from .paths import below, build_dir, checked_id, repository
from .plan import Build, Host, Limits, Load, Plan, Ready, Server, Service, Tool, Trial
from .protocol import SCHEMA

_SECRET = re.compile(r"[0-9a-f]{64}\Z")
_SHA = re.compile(r"[0-9a-f]{7,64}\Z")


def load_plan(path: Path, root: Path) -> Plan:
    """The plan in `path`, checked; BadPlan names the place and what was expected there."""
    try:
        node = Node(json.loads(path.read_text("utf-8")), "plan")
    except (OSError, ValueError) as error:
        raise BadPlan(f"{path} cannot be read: {error}") from error
    if node["schema"].whole() != SCHEMA:
        raise BadPlan(f"plan.schema: this agent reads {SCHEMA}; send the agent that fits the plan")
    plan = _plan(node)
    _check_hosts(plan)
    _check_names(plan, root)
    return plan


def _plan(node: Node) -> Plan:
    hosts = {label: _host(item) for label, item in node["hosts"].fields().items()}
    labels = tuple(hosts)
    return Plan(
        job=node["job"].text(),
        step=node["step"].text(),
        silence_s=node["silence_s"].number(),
        me=_label(node["self"], labels),
        lead=_label(node["lead"], labels),
        secret=node["secret"].optional(Node.text),
        hosts=hosts,
        tuning=node["tuning"].mapping(),
        builds=tuple(_build(item, labels) for item in node["builds"].items()),
        trials=tuple(_trial(item, labels) for item in node["trials"].items()),
    )


def _host(node: Node) -> Host:
    return Host(address=node["address"].text(), port=node["port"].optional(Node.whole))


def _label(node: Node, labels: tuple[str, ...]) -> str:
    label = node.text()
    if label not in labels:
        raise node.wrong(f"one of plan.hosts ({', '.join(labels)})")
    return label


def _build(node: Node, labels: tuple[str, ...]) -> Build:
    source = node["source"]
    archive, repository = (
        source[key].text() if source.has(key) else None for key in ("archive", "repository")
    )
    if (archive is None) == (repository is None):
        raise source.wrong("'archive' or 'repository'")
    return Build(
        commit=node["commit"].text(),
        archive=archive,
        repository=repository,
        tree=node["tree"].text(),
        on=tuple(_label(item, labels) for item in node["on"].items()),
        steps=tuple(item.texts() for item in node["steps"].items()),
        env=node["env"].mapping(),
        timeout_s=node["timeout_s"].number(),
    )


def _trial(node: Node, labels: tuple[str, ...]) -> Trial:
    loads = tuple(_load(item) for item in node["loads"].items())
    if [load.kind for load in loads].count("measure") != 1:
        raise BadPlan(f"trial {node['id'].text()}: expected exactly one load of kind 'measure'")
    return Trial(
        id=node["id"].text(),
        tree=node["tree"].text(),
        commit=node["commit"].text(),
        server=_server(node["server"], labels),
        ready=_ready(node["ready"], node["ready"]["path"].text()),
        services=_services(node["services"], labels),
        loads=loads,
        tool=_tool(node["tool"]),
        warmup_s=node["warmup_s"].number(),
        cooldown_s=node["cooldown_s"].number(),
        expected_s=node["expected_s"].number(),
    )


def _server(node: Node, labels: tuple[str, ...]) -> Server:
    return Server(
        on=_label(node["on"], labels),
        argv=node["argv"].texts(),
        env=node["env"].mapping(),
        limits=_limits(node["limits"]),
        port=node["port"].optional(Node.whole),
    )


def _services(node: Node, labels: tuple[str, ...]) -> tuple[Service, ...]:
    services = tuple(_service(item, labels) for item in node.items())
    if len({service.name for service in services}) != len(services):
        raise node.wrong("a name for each service that no other has")
    return services


def _service(node: Node, labels: tuple[str, ...]) -> Service:
    service = Service(
        name=node["name"].text(),
        on=_label(node["on"], labels),
        processes=node["count"].whole(),
        argv=node["argv"].texts(),
        env=node["env"].mapping(),
        limits=_limits(node["limits"]),
        port=node["port"].optional(Node.whole),
        ready=_ready(node["ready"], node["ready"]["path"].optional(Node.text)),
    )
    if service.processes < 1:
        raise node["count"].wrong("1 or more")
    if service.processes > 1 and service.port is not None:
        raise node["port"].wrong("null, as there are several processes")
    return service


def _ready(node: Node, path: Optional[str]) -> Ready:
    return Ready(
        path=path,
        status=node["status"].whole(),
        body=node["body"].optional(Node.text) if node.has("body") else None,
        timeout_s=node["timeout_s"].number(),
    )


def _load(node: Node) -> Load:
    return Load(
        argv=node["argv"].texts(),
        kind=node["kind"].text(),
        wall_limit_s=node["wall_limit_s"].number(),
    )


def _tool(node: Node) -> Tool:
    return Tool(name=node["name"].text(), path=node["path"].text(), limits=_limits(node["limits"]))


def _limits(node: Node) -> Limits:
    return Limits(
        cpus=node["cpus"].optional(Node.wholes),
        cpu_quota=node["cpu_quota"].optional(Node.number),
        memory_bytes=node["memory_bytes"].optional(Node.whole),
        open_files=node["open_files"].optional(Node.whole),
    )


def _check_hosts(plan: Plan) -> None:
    if len(plan.hosts) == 1:
        return
    if plan.secret is None or not _SECRET.match(plan.secret):
        raise BadPlan("plan.secret: expected 64 hexadecimal digits, as there are several hosts")
    if plan.is_lead:
        for label in plan.followers:
            if plan.hosts[label].port is None:
                raise BadPlan(f"plan.hosts.{label}.port: expected where that host listens")


def _check_names(plan: Plan, root: Path) -> None:
    try:
        for build in plan.builds:
            checked_id(build.commit)
            build_dir(root, build.tree)
            _check_source(build, root)
        for trial in plan.trials:
            checked_id(trial.id)
            build_dir(root, trial.tree)
            for service in trial.services:
                checked_id(service.name)
    except AgentError as error:
        raise BadPlan(f"plan: {error.message}") from error


def _check_source(build: Build, root: Path) -> None:
    if build.archive is not None:
        below(root, build.archive)
    if build.repository is not None:
        repository(root, build.repository)
        if not _SHA.match(build.commit):
            raise BadPlan(f"plan: {build.commit!r} is no commit of a repository")
