"""A host over SSH, for the tests that use the engine in their own process."""

from collections.abc import Iterator

import pytest

from orchestrator.dispatch.connections import CONNECTIONS
from tests.support.sshd import SshServer, start_sshd


@pytest.fixture
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    with start_sshd(tmp_path_factory.mktemp("ssh")) as running:
        yield running
    CONNECTIONS.close_all()
