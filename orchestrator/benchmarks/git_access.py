"""Access of git to repositories: a deploy key or token of the project, the server's host key.

Secrets are in files of mode 0600 in a folder that is removed after the call. The command line and
the environment contain only the names of these files.
"""

import fcntl
import os
import shlex
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from orchestrator.benchmarks.git_calls import GitOutput
from orchestrator.benchmarks.remotes import ServerAddress
from orchestrator.core.errors import HostError, InvalidRequestError
from orchestrator.transport.address import HostKey
from orchestrator.transport.ssh import scan_host_key

SCAN_TIMEOUT_S = 8.0
#: The user name that forges accept for a token if they ignore it.
TOKEN_USER = "x-access-token"
_PREFIX = "pitwall-git-"
#: Held by the process that uses the folder.
_LOCK = "lock"
#: A younger folder may not have its lock yet.
_NEW_S = 5.0
TOKEN_NEEDS_HTTPS = (
    "an access token is sent over https only: change the address of the repository to https://, or "
    "remove the token"
)
_REFUSED = b"Host key verification failed"


class HostKeyChangedError(InvalidRequestError):
    """The git server shows a key that is not pinned, and a maintainer has to accept it."""


def _ignore(*_: str) -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The credential of a project and the pinned key of its SSH server, each empty if unset.

    `on_first_key` and `on_other_key` get the line (`ssh-ed25519 AAAA…`) of the key that the server
    showed: on the first contact, and if it is not the pinned one. Without `accepts_first_key`, any
    key goes to `on_other_key` while none is pinned. `on_pinned_key` is called after a call that
    succeeded with the pinned key.
    """

    private_key: str = field(default="", repr=False)
    username: str = ""
    token: str = field(default="", repr=False)
    host_key: str = ""
    accepts_first_key: bool = True
    on_first_key: Callable[[str], None] = _ignore
    on_other_key: Callable[[str], None] = _ignore
    on_pinned_key: Callable[[], None] = _ignore

    @property
    def is_first_contact(self) -> bool:
        return not self.host_key and self.accepts_first_key


@dataclass(frozen=True, slots=True)
class PreparedAccess:
    """`config` is passed to git and `ssh_options` to ssh."""

    config: dict[str, str]
    ssh_options: tuple[str, ...]
    known_hosts: Path


@contextmanager
def prepare_access(access: Access, place: ServerAddress) -> Iterator[PreparedAccess]:
    """Provide the files that git and ssh read, within the context."""
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as name:
        folder = Path(name)
        with open(_write(folder / _LOCK, "")) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield _prepare(access, place, folder)


def _prepare(access: Access, place: ServerAddress, folder: Path) -> PreparedAccess:
    pinned = f"{place.known_hosts_name} {access.host_key}\n" if access.host_key else ""
    known_hosts = _write(folder / "known_hosts", pinned)
    key = _write(folder / "key", access.private_key) if access.private_key else "none"
    options = (
        # Without a key of the project, no file: ssh would use the keys of the account.
        f"IdentityFile={key}",
        f"UserKnownHostsFile={known_hosts}",
        f"StrictHostKeyChecking={'accept-new' if access.is_first_contact else 'yes'}",
    )
    return PreparedAccess(_build_credential_config(access, place, folder), options, known_hosts)


def remove_stale_files() -> None:
    """Remove folders of our processes that were killed: their files contain secrets."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            facts = folder.lstat()
            is_old = time.time() - facts.st_mtime > _NEW_S
            if facts.st_uid == os.getuid() and is_old and not _is_in_use(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _is_in_use(folder: Path) -> bool:
    try:
        lock = os.open(folder / _LOCK, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def record_host_key(
    access: Access, place: ServerAddress, prepared: PreparedAccess, port: int, done: GitOutput
) -> None:
    """After a call of ssh, pass on the key that the server showed.

    Raise HostKeyChangedError if ssh rejected it; `port` on loopback leads to the server.
    """
    if access.is_first_contact:
        words = prepared.known_hosts.read_text(errors="replace").splitlines()
        if words:
            access.on_first_key(HostKey.parse(words[0].partition(" ")[2]).line)
    elif _REFUSED in done.stderr:
        raise HostKeyChangedError(_describe_changed_key(access, place, port))
    elif done.returncode == 0:
        access.on_pinned_key()


def _describe_changed_key(access: Access, place: ServerAddress, port: int) -> str:
    try:
        shown = scan_host_key("127.0.0.1", port, SCAN_TIMEOUT_S, networks=["127.0.0.1"])
    except HostError:
        its_key = "another host key (it could not be read; fetch again to see it)"
    else:
        access.on_other_key(shown.line)
        its_key = f"the host key {shown.fingerprint_sha256}"
    if not access.host_key:
        return (
            f"the git server {place.host} shows {its_key}; none is pinned since a maintainer "
            "removed the pinned one; let a maintainer compare and accept the key in the project's "
            "settings, under Repository access"
        )
    pinned = HostKey.parse(access.host_key).fingerprint_sha256
    return (
        f"the git server {place.host} shows {its_key}, but {pinned} is pinned: it may be another "
        "machine; ask its operator, and let a maintainer accept the new key or keep "
        "the pinned one in the project's settings, under Repository access"
    )


def _build_credential_config(access: Access, place: ServerAddress, folder: Path) -> dict[str, str]:
    if not access.token or place.scheme == "ssh":
        return {}
    if place.scheme == "http" and not place.is_loopback:
        raise InvalidRequestError(TOKEN_NEEDS_HTTPS, field="token")
    host = f"[{place.host}]" if ":" in place.host else place.host
    user, token = quote(access.username or TOKEN_USER, safe=""), quote(access.token, safe="")
    # git compares hosts as the URL contains them: with the port only if the URL has one.
    lines = (f"{place.scheme}://{user}:{token}@{each}\n" for each in (host, f"{host}:{place.port}"))
    file = _write(folder / "credentials", "".join(lines))
    return {"credential.helper": f"store --file={shlex.quote(str(file))}"}


def _write(path: Path, text: str) -> Path:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    return path
