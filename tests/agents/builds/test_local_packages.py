"""Installs of a commit's own source by cargo, go and npm: by itself, or not at all."""

import shlex
from typing import Any

import pytest

from tests.agents.support import SERVER, AgentHost, Step, a_build, a_plan, a_server, a_trial
from tests.support.programs import program

CARGO_TOML = """\
[package]
name = "greeter"
version = "1.0.0"
edition = "2021"
"""
CARGO_LOCK = 'version = 3\n\n[[package]]\nname = "greeter"\nversion = "1.0.0"\n'
PACKAGE = '{"name": "app", "version": "1.0.0", "dependencies": {"greeter": "file:greeter"}}'
PACKAGE_LOCK = """\
{"name": "app", "version": "1.0.0", "lockfileVersion": 3, "requires": true, "packages": {
  "": {"name": "app", "version": "1.0.0", "dependencies": {"greeter": "file:greeter"}},
  "greeter": {"version": "1.0.0"},
  "node_modules/greeter": {"resolved": "greeter", "link": true}}}
"""


class Tool:
    """A build tool: its lock files, its source with a name in it, its steps, and what it makes."""

    def __init__(
        self,
        name: str,
        locks: dict[str, str],
        source: dict[str, str],
        steps: list[list[str]],
        greet: list[str],
    ) -> None:
        self.name = name
        self.locks = locks
        self.source = source
        self.steps = steps
        self.greet = greet

    def files(self, who: str) -> dict[str, str]:
        source = {path: text.replace("WHO", who) for path, text in self.source.items()}
        return {**self.locks, **source}

    @property
    def source_names(self) -> list[str]:
        return sorted({path.partition("/")[0] for path in self.source})


TOOLS = [
    Tool(
        "cargo",
        {"Cargo.toml": CARGO_TOML, "Cargo.lock": CARGO_LOCK},
        {"src/main.rs": 'fn main() { println!("WHO"); }\n'},
        [["cargo", "install", "--offline", "--locked", "--root", "{installed}", "--path", "."]],
        ["{installed}/bin/greeter"],
    ),
    Tool(
        "go",
        {"go.mod": "module greeter\n"},
        {"main.go": 'package main\n\nfunc main() { println("WHO") }\n'},
        [["go", "build", "-o", "{installed}/greeter", "."]],
        ["{installed}/greeter"],
    ),
    Tool(
        "npm",
        {"package.json": PACKAGE, "package-lock.json": PACKAGE_LOCK},
        {
            "greeter/package.json": '{"name": "greeter", "version": "1.0.0"}',
            "greeter/index.js": "module.exports = 'WHO'\n",
        },
        [
            ["sh", "-c", 'cp -r * "$0"', "{installed}"],
            ["npm", "ci", "--offline", "--no-audit", "--no-fund", "--prefix", "{installed}"],
        ],
        ["node", "-e", "console.log(require('{installed}/node_modules/greeter'))"],
    ),
]
each_tool = pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)


def measure(host: AgentHost, tool: Tool, files: list[str]) -> tuple[Step, list[str]]:
    """Measure two commits of Ada and Bob; return who the installed packages greet as."""
    program(tool.name)
    builds, trials = [], []
    for number, who in enumerate(("Ada", "Bob"), 1):
        server = SERVER.format(extra="print(subprocess.getoutput(sys.argv[2]), flush=True)")
        host.send_source({**tool.files(who), "server.py": server}, who)
        install: dict[str, Any] = {"key": "k", "files": files, "steps": tool.steps}
        build = a_build(
            id=f"{who}-r",
            commit=who,
            source={"archive": f"sources/{who}.tar.gz"},
            tree=f"builds/{who}-r",
            install={**install, "timeout_s": 120},
        )
        argv = ["{python}", "server.py", "{port}", shlex.join(tool.greet)]
        trials.append(
            a_trial(
                host.send_tool(),
                id=f"t{number}",
                tree=build["tree"],
                commit=who,
                server=a_server(argv=argv),
            )
        )
        builds.append(build)
    step = host.run_round(a_plan(*trials, builds=builds))
    logs = [step.folder / f"trials/t{number}/server.log" for number in (1, 2)]
    return step, [log.read_text().strip() for log in logs if log.exists()]


@each_tool
def test_named_source_is_installed_for_each_content(tool: Tool, host: AgentHost) -> None:
    step, greeted = measure(host, tool, [*tool.locks, *tool.source_names])
    assert greeted == ["Ada", "Bob"], step.events


@each_tool
def test_unnamed_source_is_never_installed(tool: Tool, host: AgentHost) -> None:
    step, greeted = measure(host, tool, [*tool.locks])
    messages = [event["message"] for event in step.named("build_failed")]
    assert (len(messages), greeted) == (2, []), step.events
    # npm installs a link to the package that it does not see.
    own = "leads to greeter of the commit" if tool.name == "npm" else "Install steps see only"
    for message in messages:
        assert own in message
        assert "subject.install.files" in message
