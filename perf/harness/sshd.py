"""Files and start of an `sshd` on loopback, for benchmarks and tests."""

from __future__ import annotations

import contextlib
import re
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from devstack.programs import find_program
from orchestrator.transport.keys import KeyPair

START_TIMEOUT_S = 20.0
_STARTS = 5

# The login's home may be the developer's own: nothing is read from it or written to it. SHLVL makes
# bash believe that it is a nested shell, so that it skips ~/.bashrc. Programs in that file may hold
# locks: if one is killed, all later logins would wait for it.
_CONFIG = """\
ListenAddress {address}
Port {port}
{host_keys}
PidFile none
AuthorizedKeysFile {folder}/authorized_keys
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
PermitUserRC no
PermitTTY no
UseDNS no
PrintMotd no
MaxStartups 500
MaxSessions 50
SetEnv SHLVL=1
Subsystem sftp internal-sftp
"""


def start_sshd(
    folder: Path, host_keys: Mapping[str, KeyPair], client: KeyPair
) -> tuple[subprocess.Popen[bytes], int]:
    """Return the process and its port, once it answers.

    Raise RuntimeError, with its log, otherwise.
    """
    for _ in range(_STARTS):
        port = _free_port()
        write_sshd_files(folder, host_keys, client, address="127.0.0.1", port=port)
        process = _spawn(folder)
        if _answers(process, port):
            return process, port
        process.kill()
        process.wait()
    raise RuntimeError(f"sshd did not start: {(folder / 'log').read_text()[-1000:]}")


def restart_sshd(folder: Path, port: int) -> subprocess.Popen[bytes]:
    """Return the process of the same server again, after its end. Raise RuntimeError as above."""
    process = _spawn(folder)
    if _answers(process, port):
        return process
    process.kill()
    process.wait()
    raise RuntimeError(f"sshd did not start again: {(folder / 'log').read_text()[-1000:]}")


def _spawn(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        build_sshd_command(folder), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )


def write_sshd_files(
    folder: Path, host_keys: Mapping[str, KeyPair], client: KeyPair, *, address: str, port: int
) -> None:
    """Write all files for the command of `build_sshd_command`. `host_keys`: by the name of their
    file."""
    (folder / "authorized_keys").write_text(client.public_openssh + "\n")
    for name, key in host_keys.items():
        write_private(folder / name, key.private_openssh)
    lines = "\n".join(f"HostKey {folder / name}" for name in host_keys)
    config = _CONFIG.format(address=address, port=port, folder=folder, host_keys=lines)
    (folder / "sshd_config").write_text(config)
    _make_privilege_separation_folder(folder)


def build_sshd_command(folder: Path) -> list[str]:
    # Full paths, because sshd changes to / and calls itself again for each connection.
    files = ["-f", str(folder / "sshd_config"), "-E", str(folder / "log")]
    return [str(find_program("sshd")), "-D", *files]


def write_private(path: Path, content: str) -> None:
    path.touch(mode=0o600)
    path.write_text(content)


def _make_privilege_separation_folder(folder: Path) -> None:
    """Create a folder that root's sshd needs and that normally a service manager creates."""
    check = [str(find_program("sshd")), "-t", "-f", str(folder / "sshd_config")]
    output = subprocess.run(check, capture_output=True, text=True, check=False).stderr
    missing = re.search(r"Missing privilege separation directory: (\S+)", output)
    if missing:
        Path(missing[1]).mkdir(mode=0o755, parents=True, exist_ok=True)


def _answers(process: subprocess.Popen[bytes], port: int) -> bool:
    deadline = time.monotonic() + START_TIMEOUT_S
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as sock:
            if sock.recv(4) == b"SSH-":
                # Another program may have taken the port before sshd did.
                return process.poll() is None
        time.sleep(0.02)
    return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
