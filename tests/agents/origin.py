"""A git repository whose commits are sent to a host as bundles."""

import os
import subprocess
from pathlib import Path
from typing import Any

from tests.agents.support import AgentHost, a_build

PROJECT = "p1"
AUTHOR = {
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


class Origin:
    """A project's repository on the orchestrator's side."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *words: str) -> str:
        return subprocess.run(
            ["git", *words],
            cwd=self.folder,
            env={**os.environ, **AUTHOR},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()

    def commit(self, **files: str) -> str:
        for name, text in files.items():
            (self.folder / name.replace("_", ".")).write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "Change")
        sha = self.git("rev-parse", "HEAD")
        self.git("update-ref", f"refs/pitwall/{sha}", sha)
        return sha

    def send(self, host: AgentHost, commit: str, *known: str, name: str = "b1") -> None:
        """A bundle with `commit` and what it needs, but for what is `known`."""
        (host.root / "bundles").mkdir(exist_ok=True)
        path = host.root / f"bundles/{name}.bundle"
        without = [f"^{sha}" for sha in known]
        self.git("bundle", "create", "--quiet", str(path), f"refs/pitwall/{commit}", *without)


def git_build(commit: str, **changes: Any) -> dict[str, Any]:
    source = {"repository": PROJECT}
    name = f"{commit}-x"
    plain = {"id": name, "commit": commit, "source": source, "tree": f"builds/{name}"}
    return a_build(**{**plain, **changes})
