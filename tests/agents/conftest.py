from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.support import SERVER, AgentHost
from tests.support.programs import tool


@pytest.fixture
def host(tmp_path: Path) -> Iterator[AgentHost]:
    """A work directory with a plain server's source; nothing that a test started outlives it."""
    host = AgentHost(tmp_path / "work")
    host.send_source({"server.py": SERVER.format(extra="")})
    yield host
    host.stop_all()


@pytest.fixture(scope="session")
def oha() -> str:
    return str(tool("oha"))
