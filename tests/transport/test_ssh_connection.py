import os
import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.core.errors import (
    HostKeyMismatchError,
    HostSetupError,
    InvalidRequestError,
    LoginRefusedError,
    UnreachableError,
)
from orchestrator.transport.address import HostKey, SshAddress
from orchestrator.transport.keys import generate_key
from orchestrator.transport.ssh import SshTransport, scan_host_key
from tests.support.sshd import LOOPBACK, SshServer
from tests.support.waiting import wait_until


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_the_work_directory_is_created(server: SshServer, tmp_path: Path) -> None:
    with SshTransport(server.address(work_dir=str(tmp_path / "a/b/work"))):
        assert (tmp_path / "a/b/work").is_dir()


def test_a_relative_work_directory_is_below_the_home_of_the_login(
    server: SshServer, tmp_path: Path
) -> None:
    if server.kind == "sshd":
        pytest.skip("its home is the developer's own and is not to be littered")
    with SshTransport(server.address(work_dir=f"{tmp_path.name}/work")) as transport:
        transport.put(b"here", "file")
        assert transport.run(["cat", "file"], timeout_s=60).stdout == b"here"
    assert (server.home / tmp_path.name / "work/file").read_bytes() == b"here"


@pytest.mark.parametrize("work_dir", ["", "/", "../up", "a b", "~/x", "a/", "$HOME"])
def test_an_invalid_work_directory_is_refused(work_dir: str) -> None:
    with pytest.raises(InvalidRequestError, match="not plain"):
        SshAddress(host="h", user="u", host_key="", private_key="", work_dir=work_dir)


def test_a_work_directory_that_cannot_be_created_is_reported(
    server: SshServer, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(HostSetupError, match=r"Could not make the folder .*/file/work"):
        SshTransport(server.address(work_dir=str(tmp_path / "file/work")))


def test_the_host_key_is_scanned_without_a_login(server: SshServer) -> None:
    scanned = scan_host_key(server.host, server.port, 20, networks=LOOPBACK)
    assert scanned == HostKey.parse(server.host_key)


def test_either_of_two_host_keys_is_accepted(server: SshServer) -> None:
    for pinned in (server.host_key, server.other_host_key):
        with SshTransport(server.address(host_key=pinned)) as transport:
            assert transport.run(["echo", "in"], timeout_s=60).stdout == b"in\n"


def test_a_changed_host_key_is_reported_with_both_fingerprints(server: SshServer) -> None:
    pinned = generate_key()
    with pytest.raises(HostKeyMismatchError) as caught:
        SshTransport(server.address(host_key=pinned.public_openssh))
    shown = HostKey.parse(server.host_key).fingerprint_sha256
    assert set(re.findall(r"SHA256:[\w+/]{43}", str(caught.value))) == {shown, pinned.fingerprint}
    assert not caught.value.transient


def test_an_invalid_pinned_key_is_refused(server: SshServer) -> None:
    with pytest.raises(InvalidRequestError, match="one line such as") as caught:
        SshTransport(server.address(host_key="ssh-ed25519 AAAA"))
    assert caught.value.field == "host_key"


def test_a_refused_login_shows_the_line_to_authorize(server: SshServer) -> None:
    stranger = generate_key()
    with pytest.raises(LoginRefusedError) as caught:
        SshTransport(server.address(private_key=stranger.private_openssh))
    assert stranger.public_openssh in str(caught.value)
    assert repr(server.user) in str(caught.value)
    assert not caught.value.transient


def test_an_unknown_user_is_refused(server: SshServer) -> None:
    with pytest.raises(LoginRefusedError, match="'no-such-user'"):
        SshTransport(server.address(user="no-such-user"))


def test_a_closed_port_is_reported(server: SshServer) -> None:
    with socket.socket() as bound_only:
        bound_only.bind(("127.0.0.1", 0))
        port = bound_only.getsockname()[1]
        with pytest.raises(UnreachableError, match=f"127.0.0.1:{port} .*refused") as caught:
            SshTransport(server.address(port=port))
        with pytest.raises(UnreachableError, match=f"127.0.0.1:{port} .*refused"):
            scan_host_key("127.0.0.1", port, 5, networks=LOOPBACK)
    assert caught.value.transient


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a..b", "x" * 70])
def test_an_unknown_name_is_reported(server: SshServer, host: str) -> None:
    with pytest.raises(UnreachableError, match=f"{re.escape(host)}:22 cannot be reached"):
        SshTransport(server.address(host=host, port=22))


def test_a_silent_port_times_out(server: SshServer, silent_port: int) -> None:
    with pytest.raises(UnreachableError, match="did not complete the SSH handshake"):
        SshTransport(server.address(port=silent_port), connect_timeout_s=0.5)
    with pytest.raises(UnreachableError, match="did not complete the SSH handshake"):
        scan_host_key("127.0.0.1", silent_port, 0.5, networks=LOOPBACK)


def test_a_connection_cut_during_a_command_is_detected(
    server: SshServer, ssh: SshTransport, tmp_path: Path
) -> None:
    cutter = threading.Thread(target=cut_when_started, args=(server, tmp_path / "work/started"))
    cutter.start()
    try:
        with pytest.raises(UnreachableError, match="was lost: in the middle of sh") as caught:
            ssh.run(["sh", "-c", "touch started; sleep 3; touch ended"], timeout_s=60)
    finally:
        cutter.join()
    assert caught.value.transient
    wait_until((tmp_path / "work/ended").exists)


def test_every_call_after_a_lost_connection_reports_it(
    server: SshServer, ssh: SshTransport
) -> None:
    ssh.put(b"x", "file")
    server.drop_connections()
    with pytest.raises(UnreachableError, match="was lost"):
        ssh.get("file", limit=10)
    with pytest.raises(UnreachableError, match="was lost"):
        ssh.put(b"y", "file")
    with pytest.raises(UnreachableError, match="was lost"):
        ssh.run(["echo"], timeout_s=60)


def test_a_connection_can_be_closed_twice(server: SshServer) -> None:
    transport = SshTransport(server.address())
    transport.close()
    transport.close()
    with pytest.raises(UnreachableError):
        transport.run(["echo"], timeout_s=60)


def test_a_closed_connection_keeps_no_file_descriptors(
    server: SshServer, ssh: SshTransport
) -> None:
    def run_and_count() -> int:
        ssh.run(["true"], timeout_s=60)
        return len(os.listdir("/dev/fd"))

    before = run_and_count()
    assert [run_and_count() for _ in range(10)] == [before] * 10


def test_the_private_key_is_not_in_the_repr(server: SshServer) -> None:
    secret = server.client_private_key.splitlines()[1]
    assert secret not in repr(server.address())
    assert secret not in repr(server)


def cut_when_started(server: SshServer, started: Path) -> None:
    wait_until(started.exists)
    server.drop_connections()


def wait_for(path: Path) -> None:
    give_up = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < give_up
        time.sleep(0.02)
