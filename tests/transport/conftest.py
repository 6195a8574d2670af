"""Every SSH server that can be started here, and every way to a machine."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.transport.base import Transport
from orchestrator.transport.local import LocalTransport
from orchestrator.transport.ssh import SshTransport
from tests.support.sshd import SshServer, server_kinds, start_sshd


@pytest.fixture(scope="session", params=server_kinds())
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SshServer]:
    with start_sshd(tmp_path_factory.mktemp("ssh"), kind=request.param) as started:
        yield started


@pytest.fixture
def ssh(server: SshServer, tmp_path: Path) -> Iterator[SshTransport]:
    with SshTransport(server.address(work_dir=str(tmp_path / "work"))) as transport:
        yield transport


@pytest.fixture(params=["local", *server_kinds()], scope="session")
def way(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SshServer | None]:
    """A server, or None for this machine."""
    if request.param == "local":
        yield None
        return
    with start_sshd(tmp_path_factory.mktemp("ssh"), kind=request.param) as started:
        yield started


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return tmp_path / "work"


@pytest.fixture
def transport(way: SshServer | None, work: Path) -> Iterator[Transport]:
    """An open way to a machine whose work directory is `work`."""
    if way is None:
        opened: Transport = LocalTransport(work)
    else:
        opened = SshTransport(way.address(work_dir=str(work)))
    with opened:
        yield opened
