"""Run the install or build commands of a commit in its tree, one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Optional

from ..errors import BuildFailed
from ..files import read_tail_text
from ..paths import StepDir
from ..platform.limits import describe_exit
from ..platform.process_output import ProcessOutput
from ..platform.processes import Child, build_child_environment
from ..sandbox.directories import Sandbox
from ..sandbox.placeholders import fill_placeholders
from ..sandbox.variables import fill_variables
from ..step.plan import Build

Heartbeat = Callable[[], None]


class BuildCommands(NamedTuple):
    """The commands of one build: their folder, environment and placeholders.

    `home`: the variables for the home of a separate user. `heartbeat` is called often while one
    runs, and may raise to end everything.
    """

    step: StepDir
    build: Build
    folder: Path
    placeholders: Mapping[str, object]
    home: Mapping[str, str]
    heartbeat: Heartbeat
    sandbox: Sandbox

    @property
    def log(self) -> Path:
        return self.step.build_log(self.build.id)

    def run(self, kind: str, commands: Sequence[Sequence[str]], timeout_s: float) -> None:
        """Run all commands within `timeout_s` together; BuildFailed with the first failure."""
        deadline = time.monotonic() + timeout_s
        for command in commands:
            argv = fill_placeholders(command, self.placeholders)
            text = " ".join(argv)
            code = self._run(f"the {kind} step {text!r}", argv, deadline)
            if code is None:
                raise BuildFailed(f"{text!r} took longer than {timeout_s:g} s", self.read_tail())
            if code:
                raise BuildFailed(
                    f"the {kind} step {text!r} ended with {describe_exit(code)}", self.read_tail()
                )

    def _run(self, name: str, argv: list[str], deadline: float) -> Optional[int]:
        output = ProcessOutput(self.log, "ab", self.sandbox.secrets.redactor)
        with output.open() as file:
            file.write(f"$ {' '.join(argv)}\n".encode())
            file.flush()
            try:
                child = Child(
                    argv,
                    cwd=self.folder,
                    env=self._environment(),
                    stdout=file,
                    stderr=file,
                    account=self.sandbox.account,
                )
            except OSError as error:
                raise BuildFailed(f"{name} cannot be started: {error}") from error
        try:
            self._wait(child, deadline)
            return child.exit_code
        finally:
            child.kill()
            output.finish()

    def _environment(self) -> dict[str, str]:
        own = fill_variables(self.build.env, self.placeholders, self.sandbox.secrets)
        env = {**self.sandbox.host_env, **self.home, **own}
        return build_child_environment(self.step.path, env, self.build.path, for_build=True)

    def _wait(self, child: Child, deadline: float) -> None:
        while child.exit_code is None and time.monotonic() < deadline:
            self.heartbeat()
            time.sleep(0.02)

    def read_tail(self) -> str:
        return read_tail_text(self.log)
