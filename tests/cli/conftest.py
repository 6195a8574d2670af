"""The command line against a live server, mostly in this process: it is a client and no more."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cli.bundle import build_command
from cli.pitwall.main import main
from tests.api.conftest import alice, bob, mallory
from tests.support.programs import oldest_python
from tests.support.world import World

__all__ = ["alice", "bob", "mallory"]


class Done(NamedTuple):
    status: int
    out: str
    err: str


@pytest.fixture
def pitwall(
    alice: Any, live_server: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> Callable[..., Done]:
    """Calls the command as alice; `token` and `url` replace hers."""

    def call(*words: str, token: str | None = None, url: str | None = None) -> Done:
        monkeypatch.setenv("PITWALL_URL", url or live_server.url)
        monkeypatch.setenv("PITWALL_TOKEN", alice.secret if token is None else token)
        capsys.readouterr()
        try:
            status = main(words)
        except SystemExit as ended:
            status = ended.code
        out, err = capsys.readouterr()
        assert alice.secret not in out + err
        return Done(status, out, err)

    return call


def write_command(folder: Path) -> list[str]:
    """Write the one file into the folder; return how the oldest Python starts it."""
    program = folder / "pitwall"
    program.write_bytes(build_command())
    python = os.environ.get("PITWALL_AGENT_PYTHON") or oldest_python() or sys.executable
    return [python, "-I", str(program)]


@pytest.fixture
def start(
    world: World, alice: Any, live_server: Any, tmp_path: Path
) -> Iterator[Callable[..., Any]]:
    """Starts the one file with the oldest Python; what is left is killed in the end."""
    command, started = write_command(tmp_path), []

    def start(*words: str) -> Any:
        environment = {
            "PATH": os.environ["PATH"],
            "PITWALL_URL": live_server.url,
            "PITWALL_TOKEN": alice.secret,
        }
        process = subprocess.Popen(
            [*command, *words], env=environment, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, cwd=world.repository,
        )  # fmt: skip
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()
