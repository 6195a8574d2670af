"""The commands that install or build something for a commit: one after the other, in its tree."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Optional

from ..errors import BuildFailed
from ..files import tail_text
from ..paths import StepDir
from ..platform.limits import ended_with
from ..platform.processes import Child, child_environment
from ..sandbox.directories import Grounds
from ..sandbox.placeholders import replace
from ..step.plan import Build

Beat = Callable[[], None]


class Commands(NamedTuple):
    """Where the commands of one build run, and what they know.

    `beat` is called often while one runs, and may raise to end everything.
    """

    step: StepDir
    build: Build
    tree: Path
    words: Mapping[str, object]
    beat: Beat
    grounds: Grounds

    @property
    def log(self) -> Path:
        return self.step.build_log(self.build.id)

    def run(self, kind: str, commands: Sequence[Sequence[str]], timeout_s: float) -> None:
        """All of them within `timeout_s` together; BuildFailed says which went wrong, and how."""
        deadline = time.monotonic() + timeout_s
        for command in commands:
            argv = replace(command, self.words)
            shown = " ".join(argv)
            code = self._run(f"the {kind} step {shown!r}", argv, deadline)
            if code is None:
                raise BuildFailed(f"{shown!r} took longer than {timeout_s:g} s", self._tail())
            if code:
                raise BuildFailed(
                    f"the {kind} step {shown!r} ended with {ended_with(code)}", self._tail()
                )

    def _run(self, name: str, argv: list[str], deadline: float) -> Optional[int]:
        with open(self.log, "ab") as output:
            output.write(f"$ {' '.join(argv)}\n".encode())
            output.flush()
            try:
                child = Child(
                    argv,
                    cwd=self.tree,
                    env=self._environment(),
                    stdout=output,
                    stderr=output,
                    account=self.grounds.account,
                )
            except OSError as error:
                raise BuildFailed(f"{name} cannot be started: {error}") from error
            try:
                self._wait(child, deadline)
                return child.exit_code
            finally:
                child.kill()

    def _environment(self) -> dict[str, str]:
        own = {key: replace([value], self.words)[0] for key, value in self.build.env.items()}
        home = self.grounds.environment(self.build.tree)
        return child_environment(self.step.path, {**home, **own}, self.build.path)

    def _wait(self, child: Child, deadline: float) -> None:
        while child.exit_code is None and time.monotonic() < deadline:
            self.beat()
            time.sleep(0.02)

    def _tail(self) -> str:
        return tail_text(self.log)
