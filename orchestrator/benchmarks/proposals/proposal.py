"""A proposed definition for a repository, with the reason for each part of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from orchestrator.benchmarks.models import Commit, Project
from orchestrator.benchmarks.proposals.commands import (
    StartCommand,
    find_exposed_port,
    find_start_command,
)
from orchestrator.benchmarks.proposals.languages import (
    Toolchain,
    find_toolchain,
    use_installation,
)
from orchestrator.benchmarks.proposals.network import (
    choose_paths,
    find_listening_port,
    find_routes,
    reads_port_variable,
)
from orchestrator.benchmarks.proposals.source_files import SourceFiles, read_source_files
from orchestrator.benchmarks.refs import open_repository, resolve_ref

_LINE_WIDTH = 96
#: Short, so that a trial of the proposal takes seconds.
_LOAD = {"connections": "{connections}", "duration_s": 5, "warmup_s": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """A field of the definition, and why it has its value; `doubtful`: check it."""

    field: str
    reason: str
    doubtful: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """`source`: the definition as YAML."""

    source: str
    guesses: tuple[Guess, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectProposal:
    commit: Commit
    proposal: Proposal | None


def propose_for_project(project: Project, ref: str = "") -> ProjectProposal:
    """Return a proposal for the commit of a branch, tag or hash; None if no server was found.

    The default is the default branch. It reads the local mirror. Raise FetchRunningError while the
    first fetch is running, and InvalidRequestError if there is no such commit.
    """
    commit = resolve_ref(project=project, ref=ref or project.default_branch)
    files = read_source_files(open_repository(project), commit.sha)
    return ProjectProposal(commit=commit, proposal=build_proposal(project.name, files))


def build_proposal(title: str, files: SourceFiles) -> Proposal | None:
    """Return a definition for a server with these files; None without a start command."""
    toolchain = find_toolchain(files)
    command = find_start_command(files) or (toolchain.start if toolchain else None)
    if command is None:
        return None
    network, port_guess = _choose_port(files, command)
    routes = find_routes(files)
    ready, load = choose_paths(routes)
    subject = {
        **_build_steps(toolchain),
        "start": list(use_installation(toolchain, command.argv)),
        **_join_env(command, network),
        "ready": {"path": ready, "status": 200, "timeout_s": 30},
    }
    data = {
        "version": 1,
        "title": title or "Server",
        **({"requires": {toolchain.program: "*"}} if toolchain else {}),
        "subject": subject,
        "load": {"tool": "oha", "path": load, **_LOAD},
        "matrix": {"connections": [10]},
        "rounds": 7,
    }
    guesses = (
        *_explain_steps(toolchain),
        Guess(field="subject.start", reason=f"from {command.origin}"),
        port_guess,
        *_explain_paths(routes, ready, load),
    )
    return Proposal(source=_dump(data), guesses=guesses)


def _build_steps(toolchain: Toolchain | None) -> dict[str, Any]:
    if toolchain is None:
        return {}
    install = {
        "files": list(toolchain.install_files),
        "steps": [list(each) for each in toolchain.install],
    }
    return {
        **({"install": install} if toolchain.install else {}),
        **({"build": [list(each) for each in toolchain.build]} if toolchain.build else {}),
    }


def _explain_steps(toolchain: Toolchain | None) -> Iterator[Guess]:
    if toolchain is None:
        yield Guess(
            field="subject.build",
            reason="no package file of Python, Node.js, Go, Rust or Java was found: add the steps",
            doubtful=True,
        )
        return
    for field, origin in toolchain.origins:
        yield Guess(field=field, reason=f"{toolchain.language}, from {origin}")


def _choose_port(files: SourceFiles, command: StartCommand) -> tuple[dict[str, Any], Guess]:
    """Return fields of the subject that give the server its port, and the reason."""
    if command.has_port:
        return {}, Guess(field="{port}", reason=f"the start command names it ({command.origin})")
    if path := reads_port_variable(files):
        return {"env": {"PORT": "{port}"}}, Guess(
            field="subject.env.PORT", reason=f"{path} reads this variable"
        )
    known = find_listening_port(files)
    exposed = find_exposed_port(files)
    if known is None and exposed is not None and exposed >= 1024:
        known = exposed, "EXPOSE of Dockerfile"
    if known is not None:
        return {"port": known[0]}, Guess(
            field="subject.port", reason=f"it always listens on {known[0]}, from {known[1]}"
        )
    return {"env": {"PORT": "{port}"}}, Guess(
        field="subject.env.PORT",
        reason="nothing shows how the server gets its port; many servers read PORT",
        doubtful=True,
    )


def _join_env(command: StartCommand, network: dict[str, Any]) -> dict[str, Any]:
    env = {**command.env, **network.get("env", {})}
    return {**network, **({"env": env} if env else {})}


def _explain_paths(routes: list[str], ready: str, load: str) -> Iterator[Guess]:
    for field, path in (("subject.ready.path", ready), ("load.path", load)):
        if path in routes:
            yield Guess(field=field, reason=f"the code answers {path}")
        else:
            reason = f"no path was found in the code, so {path} is a guess"
            yield Guess(field=field, reason=reason, doubtful=True)


def _dump(data: dict[str, Any]) -> str:
    text: str = yaml.safe_dump(
        data, sort_keys=False, allow_unicode=True, width=_LINE_WIDTH, default_flow_style=None
    )
    return text
