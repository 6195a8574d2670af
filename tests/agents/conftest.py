import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.support import SERVER, AgentHost


@pytest.fixture
def host(tmp_path: Path) -> Iterator[AgentHost]:
    """A work directory with a plain server's source; nothing that a test started outlives it."""
    host = AgentHost(tmp_path / "work")
    host.send_source({"server.py": SERVER.format(extra="")})
    yield host
    host.run("stop-all")


@pytest.fixture(scope="session")
def oha() -> str:
    found = os.environ.get("PITWALL_OHA") or shutil.which("oha")
    if not found:
        pytest.fail("no oha: set PITWALL_OHA to oha 1.14 or newer, or put it on the PATH")
    return found
