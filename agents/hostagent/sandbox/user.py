"""The separate user for measured code, if a host names one: check it, and switch to it.

The agent is root on such a host. If it cannot start programs as that user, it reports an error and
starts nothing: no measured code ever runs as another user than the named one.
"""

from __future__ import annotations

import os
import stat
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import AgentError
from ..paths import SCRATCH

try:
    import pwd
except ImportError:  # Windows
    pwd = None  # type: ignore[assignment]


class Account(NamedTuple):
    name: str
    uid: int
    gid: int

    @property
    def owner_note(self) -> bytes:
        """The content of the `.done` files of trees that this user made."""
        return f"{self.name} {self.uid}\n".encode()

    def become(self) -> None:
        """Switch to the user, in a child process before its program; OSError if not permitted.

        It has its own group and no other: another group might grant rights, such as `docker`.
        """
        os.setgroups([self.gid])
        os.setgid(self.gid)
        os.setuid(self.uid)
        if os.getresuid() != (self.uid,) * 3 or os.getresgid() != (self.gid,) * 3:
            raise PermissionError(f"the kernel did not switch to {self.name}")


def find_account(name: str, root: Path) -> Account:
    """Return the user, after the check that it can run programs and reach the work directory
    `root`.

    AgentError states the obstacle and its fix.
    """
    why = _find_obstacle(name)
    if not why:
        status = pwd.getpwnam(name)
        account = Account(name, status.pw_uid, status.pw_gid)
        why = _find_owned_path(account, root) or _find_child_obstacle(account, root)
        if not why:
            return account
    raise AgentError(f"measured code cannot run as {name} on this host: {why}")


def check_user(root: Path, options: Namespace) -> dict[str, Any]:
    """The command `user`: check that measured code can run as this user."""
    return {"user": find_account(options.name, root)._asdict()}


def _find_obstacle(name: str) -> str:
    if not sys.platform.startswith("linux"):
        return "the agent can start programs as another user only on Linux; name no user"
    try:
        status = pwd.getpwnam(name)
    except KeyError:
        return f"there is no such user; create it (useradd --system {name}), or name another"
    if not status.pw_uid or not status.pw_gid:
        return "that user or its group is root; name a user without other rights on the host"
    if os.geteuid():
        login = pwd.getpwuid(os.geteuid()).pw_name
        return (
            f"only root can start programs as another user, and Pitwall logs in as {login}; "
            "let it log in as root, or name no user"
        )
    return ""


def _find_owned_path(account: Account, root: Path) -> str:
    """Return the first folder of the agent that the user owns and could replace, or ""."""
    inside = [path for path in root.iterdir() if path.name != SCRATCH] if root.is_dir() else []
    for path in (*root.parents, root, *inside):
        if path.lstat().st_uid == account.uid:
            return (
                f"it owns {path} and could replace the agent's files; change the work directory "
                "to a new one in a folder of root, such as /var/lib/pitwall"
            )
    return ""


def _find_child_obstacle(account: Account, root: Path) -> str:
    """Return the obstacle that a child process finds after it switched to the user, or ""."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        _check_as(account, root, write_end)
    os.close(write_end)
    with open(read_end, "rb") as pipe:
        obstacle = pipe.read().decode("utf-8", "replace")
    _pid, status = os.waitpid(pid, 0)
    return obstacle or ("" if status == 0 else f"the switch to it ended with status {status}")


def _check_as(account: Account, root: Path, write_end: int) -> None:
    code = 1
    try:
        account.become()
        os.write(write_end, _find_access_obstacle(root).encode())
        code = 0
    except OSError as error:
        obstacle = f"the agent may not switch to that user ({error}); is it in a container?"
        os.write(write_end, obstacle.encode())
    finally:
        os._exit(code)


def _find_access_obstacle(root: Path) -> str:
    """Return the first folder or program that the calling process cannot use as it must, or ""."""
    for folder in (*reversed(root.parents), root):
        if os.access(folder, os.W_OK) and not folder.stat().st_mode & stat.S_ISVTX:
            return (
                f"it may write {folder}, and so could replace the agent's files; change the work "
                "directory to one in a folder of root, such as /var/lib/pitwall"
            )
        if folder != root and not os.access(folder, os.X_OK):
            return (
                f"it cannot enter {folder}, and so cannot reach the work directory {root}; change "
                "the work directory to one that it can reach, such as /var/lib/pitwall"
            )
    if not os.access(sys.executable, os.X_OK):
        return (
            f"it cannot run the agent's Python {sys.executable}; change the host's Python command "
            "to one that all users can run, such as /usr/bin/python3"
        )
    return ""
