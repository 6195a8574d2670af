"""The user of its own that measured code runs as, where a host names one: found, tried, become.

The agent is root there and stays it. Where it cannot start programs as somebody else that is said,
and nothing is started: never is anything run as another user than the one that was named.
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
    def mark(self) -> bytes:
        """What tells a tree that it made from one that somebody else has made."""
        return f"{self.name} {self.uid}\n".encode()

    def become(self) -> None:
        """In a child of ours, before its program. OSError where the kernel does not allow it.

        With its own group and no other: one of those might bring rights, such as `docker`.
        """
        os.setgroups([self.gid])
        os.setgid(self.gid)
        os.setuid(self.uid)
        if os.getresuid() != (self.uid,) * 3 or os.getresgid() != (self.gid,) * 3:
            raise PermissionError(f"the kernel did not make it {self.name}")


def account_of(name: str, root: Path) -> Account:
    """The user, who can be switched to and can get to the work directory `root`.

    AgentError says what is in the way, and what to do about it.
    """
    why = _in_the_way(name)
    if not why:
        found = pwd.getpwnam(name)
        account = Account(name, found.pw_uid, found.pw_gid)
        why = _belonging(account, root) or _tried(account, root)
        if not why:
            return account
    raise AgentError(f"what is measured is to run as {name} on this host: {why}")


def tell(root: Path, options: Namespace) -> dict[str, Any]:
    """The verb: whether measured code can run as this user."""
    return {"user": account_of(options.name, root)._asdict()}


def _in_the_way(name: str) -> str:
    if not sys.platform.startswith("linux"):
        return "only on Linux can the agent start programs as another user; name none"
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        return f"there is no such user; make one there (useradd --system {name}), or name another"
    if not found.pw_uid or not found.pw_gid:
        return "that user, or its group, is root's; name one that may do nothing else there"
    if os.geteuid():
        login = pwd.getpwuid(os.geteuid()).pw_name
        return (
            f"only root can start programs as somebody else, and Pitwall logs in as {login}; "
            "let it log in as root, or name none"
        )
    return ""


def _belonging(account: Account, root: Path) -> str:
    """What it could put something else in the place of; empty where there is nothing."""
    inside = [path for path in root.iterdir() if path.name != SCRATCH] if root.is_dir() else []
    for path in (*root.parents, root, *inside):
        if path.lstat().st_uid == account.uid:
            return (
                f"{path} belongs to it, and so the agent would not be safe from it; change the "
                "work directory to a new one in a folder of root's, such as /var/lib/pitwall"
            )
    return ""


def _tried(account: Account, root: Path) -> str:
    """What a child of ours finds that becomes this user; empty where nothing is in its way."""
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        _try(account, root, tell)
    os.close(tell)
    with open(told, "rb") as pipe:
        said = pipe.read().decode("utf-8", "replace")
    _pid, status = os.waitpid(pid, 0)
    return said or ("" if status == 0 else f"the try to become it ended with {status}")


def _try(account: Account, root: Path, tell: int) -> None:
    code = 1
    try:
        account.become()
        os.write(tell, _beyond(account, root).encode())
        code = 0
    except OSError as error:
        said = f"the agent may not become that user ({error}); does a container hold it back?"
        os.write(tell, said.encode())
    finally:
        os._exit(code)


def _beyond(account: Account, root: Path) -> str:
    """What of all that it needs the calling process cannot reach."""
    for folder in (*reversed(root.parents), root):
        if os.access(folder, os.W_OK) and not folder.stat().st_mode & stat.S_ISVTX:
            return (
                f"it may write {folder}, and so put something else in the place of what is there; "
                "change the work directory to one in a folder of root's, such as /var/lib/pitwall"
            )
        if folder != root and not os.access(folder, os.X_OK):
            return (
                f"it cannot enter {folder}, and so not the work directory {root}; change the work "
                "directory to one that it can reach, such as /var/lib/pitwall"
            )
    if not os.access(sys.executable, os.X_OK):
        return (
            f"it cannot run the agent's Python {sys.executable}; change the host's Python command "
            "to one that everybody there can run, such as /usr/bin/python3"
        )
    return ""
