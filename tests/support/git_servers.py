"""Real servers of git repositories over http on loopback."""

import base64
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.http_servers import Got, serving

TOKEN = "s3cret-token"


def read_password(got: Got) -> str:
    """Return the password of a request; empty if it has none."""
    given = got.headers.get("authorization", "").partition(" ")[2]
    return base64.b64decode(given).decode().partition(":")[2]


class SmartServer:
    """Serves the repositories in a folder over git's protocol, those in `team` with a token."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        #: The paths that were requested with a credential.
        self.trusted: set[str] = set()

    def __call__(self, got: Got) -> tuple[int, bytes, dict[str, str]]:
        path, _, query = got.path.partition("?")
        password = read_password(got)
        if password:
            self.trusted.add(path.split("/")[1])
        if path.startswith("/team/") and password != TOKEN:
            return 401, b"", {"WWW-Authenticate": 'Basic realm="git"'}
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self._folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REQUEST_METHOD": got.method,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": got.headers.get("content-type", ""),
            "CONTENT_LENGTH": str(len(got.body)),
            "HTTP_CONTENT_ENCODING": got.headers.get("content-encoding", ""),
            "GIT_PROTOCOL": got.headers.get("git-protocol", ""),
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
        }
        done = subprocess.run(
            ["git", "http-backend"],
            input=got.body,
            env=environment,
            capture_output=True,
            check=True,
        )
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        status = int(headers.pop("Status", "200").split()[0])
        return status, body, headers


@contextmanager
def serving_git(folder: Path) -> Iterator[tuple[str, SmartServer]]:
    server = SmartServer(folder)
    with serving(server) as url:
        yield url, server
