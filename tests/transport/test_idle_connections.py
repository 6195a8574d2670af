"""An open connection that nobody uses needs little, and ends at once when it is closed."""

import time
from typing import Any

import pytest

from orchestrator.transport.metered import MeteredSocket
from orchestrator.transport.ssh import SshTransport

#: Less than a turn of an idle connection, and many turns of paramiko's own.
WHILE_S = 1.0
#: Less than a turn as well; the end of a thread takes some milliseconds.
END_S = 3.0


def test_an_idle_connection_rarely_wakes_its_thread(
    ssh: SshTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ssh.run(["true"], timeout_s=60).exit_status == 0
    turns = 0
    recv = MeteredSocket.recv

    def count(self: MeteredSocket, size: int) -> bytes:
        nonlocal turns
        turns += 1
        return recv(self, size)

    monkeypatch.setattr(MeteredSocket, "recv", count)
    time.sleep(WHILE_S)
    assert turns <= 2


def test_the_thread_of_a_closed_connection_ends_before_its_next_turn(ssh: SshTransport) -> None:
    connection: Any = ssh._connection
    # The thread waits for the host now.
    time.sleep(0.2)
    ssh.close()
    connection.join(END_S)
    assert not connection.is_alive()
