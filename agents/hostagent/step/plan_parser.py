"""Parse and check plan.json; trial_parser.py parses its trials."""

from __future__ import annotations

import json
import re
from pathlib import Path

from ..errors import AgentError, BadPlan
from ..paths import build_dir, check_id, get_repository, resolve_below
from ..protocol import FILES, SCHEMA, WHOLE_COMMIT
from .json_node import Node
from .plan import Build, DiskRule, Host, Install, Plan, QuietRule, Source, Submodule, Tls, Trial
from .trial_parser import (
    parse_environment,
    parse_folders,
    parse_label,
    parse_trial,
    parse_working_dir,
)

_SECRET = re.compile(r"[0-9a-f]{64}\Z")
#: The files that agent and load tool write into the folder of a trial.
_RESERVED = re.compile(
    r"result\.json\Z|(tool|rows|unmeasured|check)(-\d+)?\.(json|raw|stdout|stderr)\Z|.*\.log\Z"
)
_SHA = re.compile(r"[0-9a-f]{7,64}\Z")


def load_plan(path: Path, root: Path) -> Plan:
    """Return the checked plan of the file; BadPlan contains the path and the expectation."""
    try:
        node = Node(json.loads(path.read_text("utf-8")), "plan")
    except (OSError, ValueError, RecursionError) as error:
        raise BadPlan(f"{path} cannot be read: {error}") from error
    if node["schema"].whole() != SCHEMA:
        raise BadPlan(f"plan.schema: this agent reads {SCHEMA}; send the agent that fits the plan")
    plan = _plan(node)
    _check_hosts(plan)
    _check_names(plan, root)
    return plan


def _plan(node: Node) -> Plan:
    hosts = {label: _parse_host(item) for label, item in node["hosts"].fields().items()}
    texts = node["texts"].mapping()
    labels = tuple(hosts)
    return Plan(
        job=node["job"].text(),
        step=node["step"].text(),
        silence_s=node["silence_s"].number(),
        me=parse_label(node["self"], labels),
        lead=parse_label(node["lead"], labels),
        secret=node["secret"].optional(Node.text),
        hosts=hosts,
        tuning=node["tuning"].mapping(),
        run_as=node["run_as"].optional(Node.text),
        tls=node["tls"].optional(_parse_tls),
        quiet=_parse_quiet_rule(node["quiet"]),
        disk=_parse_disk_rule(node["disk"]),
        builds=tuple(_build(item, labels) for item in node["builds"].items()),
        trials=tuple(parse_trial(item, labels, texts) for item in node["trials"].items()),
        machine_lock=node.has("machine_lock") and node["machine_lock"].truth(),
        env=node["env"].mapping() if node.has("env") else {},
    )


def _parse_quiet_rule(node: Node) -> QuietRule:
    return QuietRule(busy_share=node["busy_share"].number(), wait_s=node["wait_s"].number())


def _parse_disk_rule(node: Node) -> DiskRule:
    return DiskRule(limit_bytes=node["limit_bytes"].whole(), keep_days=node["keep_days"].number())


def _parse_host(node: Node) -> Host:
    return Host(address=node["address"].text(), port=node["port"].optional(Node.whole))


def _build(node: Node, labels: tuple[str, ...]) -> Build:
    commit = node["commit"].text()
    others = node["repositories"].fields() if node.has("repositories") else {}
    return Build(
        id=node["id"].text(),
        label=node["label"].text(),
        commit=commit,
        source=_parse_source(node["source"], commit),
        repositories={
            name: _parse_source(item["source"], item["commit"].text())
            for name, item in others.items()
        },
        tree=node["tree"].text(),
        on=tuple(parse_label(item, labels) for item in node["on"].items()),
        path=parse_folders(node["path"]),
        install=node["install"].optional(_install),
        working_dir=parse_working_dir(node["working_dir"]),
        steps=tuple(item.texts() for item in node["steps"].items()),
        env=parse_environment(node["env"]),
        timeout_s=node["timeout_s"].number(),
    )


def _parse_source(node: Node, commit: str) -> Source:
    archive, repository, problem = (
        node[key].text() if node.has(key) else None for key in ("archive", "repository", "problem")
    )
    if [archive, repository, problem].count(None) != 2:
        raise node.wrong("'archive', 'repository' or 'problem'")
    submodules = node["submodules"].items() if node.has("submodules") else ()
    return Source(
        commit=commit,
        archive=archive,
        repository=repository,
        problem=problem,
        submodules=tuple(
            Submodule(item["path"].text(), item["archive"].text()) for item in submodules
        ),
        lfs_files=node["lfs_files"].text() if node.has("lfs_files") else None,
    )


def _install(node: Node) -> Install:
    return Install(
        key=node["key"].text(),
        files=node["files"].texts(),
        repositories=node["repositories"].texts() if node.has("repositories") else (),
        steps=tuple(item.texts() for item in node["steps"].items()),
        timeout_s=node["timeout_s"].number(),
    )


def _parse_tls(node: Node) -> Tls:
    return Tls(
        ca=node["ca"].text(),
        cert=node["cert"].optional(Node.text),
        key=node["key"].optional(Node.text),
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
            _check_build(build, root)
        _check_ids(plan)
        for trial in plan.trials:
            _check_trial(trial, root)
    except AgentError as error:
        raise BadPlan(f"plan: {error.message}") from error


def _check_build(build: Build, root: Path) -> None:
    check_id(build.id)
    check_id(build.commit)
    build_dir(root, build.tree)
    _check_source(build.source, root)
    for name, source in build.repositories.items():
        check_id(name)
        check_id(source.commit)
        _check_source(source, root)
    if build.install is not None:
        _check_install(build.install, build, root)


def _check_install(install: Install, build: Build, root: Path) -> None:
    for name in install.files:
        if name != WHOLE_COMMIT:
            resolve_below(root, name)
    for name in install.repositories:
        if name not in build.repositories:
            raise BadPlan(f"plan: the install uses {name!r}, which the build has no source of")


def _check_ids(plan: Plan) -> None:
    for label in plan.hosts:
        ids = [build.id for build in plan.builds if label in build.on]
        for name in ids:
            if ids.count(name) > 1:
                raise BadPlan(f"plan.builds: host {label} has two builds that are called {name}")


def _check_source(source: Source, root: Path) -> None:
    if source.archive is not None:
        resolve_below(root, source.archive)
    if source.repository is not None:
        get_repository(root, source.repository)
        if not _SHA.match(source.commit):
            raise BadPlan(f"plan: {source.commit!r} is not a commit of a repository")
    for submodule in source.submodules:
        resolve_below(root, submodule.path)
        resolve_below(root, submodule.archive)
    if source.lfs_files is not None:
        resolve_below(root, source.lfs_files)


def _check_trial(trial: Trial, root: Path) -> None:
    check_id(trial.id)
    build_dir(root, trial.tree)
    for service in trial.services:
        check_id(service.name)
    for path in trial.files:
        resolve_below(root, path)
        if not path.startswith(f"{FILES}/") and _RESERVED.match(check_id(path)):
            raise BadPlan(f"{trial.id}: a file cannot be called {path!r}, as the agent writes that")
