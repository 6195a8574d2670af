"""An SSH server as a separate process, for machines without sshd.

It reads one JSON object from stdin (host_keys, client_key: OpenSSH text; user), prints the port,
serves until it is terminated, and drops all connections on SIGUSR1. The login's home is the folder
in which it was started.
"""

import asyncio
import contextlib
import json
import signal
import sys
from typing import Any

import asyncssh


class Server(asyncssh.SSHServer):
    connections: set[asyncssh.SSHServerConnection] = set()

    def __init__(self, user: str, client_key: asyncssh.SSHKey) -> None:
        self._user = user
        self._client_key = client_key

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn
        self.connections.add(conn)

    def connection_lost(self, exc: Exception | None) -> None:
        self.connections.discard(self._connection)

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return username == self._user and key == self._client_key


async def run_command(process: asyncssh.SSHServerProcess[bytes]) -> None:
    child = await asyncio.create_subprocess_exec(
        *("/bin/sh", "-c", process.command or "exit 1"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    given = asyncio.create_task(pass_in(process.stdin, child.stdin))
    await asyncio.gather(
        pass_on(child.stdout, process.stdout), pass_on(child.stderr, process.stderr)
    )
    given.cancel()
    status = await child.wait()
    if status < 0:
        process.exit_with_signal(signal.Signals(-status).name.removeprefix("SIG"))
    else:
        process.exit(status)


async def pass_on(source: asyncio.StreamReader, sink: asyncssh.SSHWriter[bytes]) -> None:
    # Keep reading after a client hung up: as with sshd, its command lives on.
    while data := await source.read(65536):
        with contextlib.suppress(OSError, asyncssh.Error):
            sink.write(data)
            await sink.drain()


async def pass_in(source: asyncssh.SSHReader[bytes], sink: asyncio.StreamWriter) -> None:
    """Pass on the input of a command, which may end without reading it."""
    with contextlib.suppress(OSError, asyncssh.Error):
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
    sink.close()


def drop_all() -> None:
    for connection in list(Server.connections):
        connection.abort()


async def serve(config: dict[str, Any]) -> None:
    client_key = asyncssh.import_public_key(config["client_key"])
    server = await asyncssh.create_server(
        lambda: Server(config["user"], client_key),
        "127.0.0.1",
        0,
        server_host_keys=[asyncssh.import_private_key(key) for key in config["host_keys"]],
        process_factory=run_command,
        sftp_factory=True,
        allow_pty=False,
        encoding=None,
    )
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, drop_all)
    print(server.get_port(), flush=True)
    await server.wait_closed()


if __name__ == "__main__":
    asyncio.run(serve(json.load(sys.stdin)))
