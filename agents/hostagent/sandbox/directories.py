"""The directories that measured code may access if it runs as a separate user.

It may access one build with its install, and a scratch folder that is new for each build and
trial. It may not access the agent, plans, results, repositories, and builds of other commits,
which the same user has made. Without a separate user no permission is changed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Optional

from ..files import remove_tree
from ..paths import DATA, SCRATCH, StepDir, build_dir, install_dir, read_install_name
from ..protocol import FILES
from ..step.plan import Plan
from .tls_files import list_tls_placeholders
from .user import Account, find_account

#: Next to a tree: the home of all commands and processes of the tree.
HOME = "home"
_KINDS = ("builds", "installs", DATA)
#: The mode of a folder that the user may traverse but not list; and of all others.
_TRAVERSABLE, _CLOSED = 0o710, 0o700


class Sandbox:
    """`account` is None if measured code runs as the agent's login. `secrets`: what it may get.

    `host_env`: the variables of all measured processes on this host.
    """

    def __init__(self, step: StepDir, plan: Plan) -> None:
        """AgentError if measured code cannot run as the user of the plan."""
        self.account: Optional[Account] = None
        self.secrets = plan.secrets
        self.host_env = plan.env
        if plan.run_as is not None:
            self.account = find_account(plan.run_as, step.root)
        self._root, self._tls = step.root, list_tls_placeholders(step, plan)
        self._scratch = step.root / SCRATCH
        self._open: list[Path] = []

    def close_all(self) -> None:
        """Close all directories, including those that a killed or older agent left open."""
        if self.account is None:
            return
        self.close()
        for path in self._root.iterdir():
            if not path.is_symlink():
                path.chmod(path.stat().st_mode & _CLOSED)
        self._make_traversable(self._root)
        for place in (self._root / kind for kind in _KINDS):
            place.mkdir(exist_ok=True)
            self._make_traversable(place)
            for path in place.iterdir():
                os.chown(path, os.geteuid(), -1)
                path.chmod(_CLOSED)

    def close(self) -> None:
        """Close the open directories, and remove the scratch folder."""
        while self._open:
            with contextlib.suppress(FileNotFoundError):  # the data of a trial are removed with it
                self._open.pop().chmod(_CLOSED)
        if self.account is not None:
            remove_tree(self._scratch)

    def open(self, tree: str, *folders: Path) -> None:
        """Open the build of this tree, its install and these folders only; create a new scratch
        folder.
        """
        installed = read_install_name(self._root, tree)
        install = [] if installed is None else [install_dir(self._root, installed)]
        self._open_only(build_dir(self._root, tree), *install, *folders)

    def open_install(self, name: str) -> None:
        """Open this install only, for its steps; create a new scratch folder."""
        self._open_only(install_dir(self._root, name))

    def _open_only(self, *places: Path) -> None:
        if self.account is None:
            return
        self.close()
        for place in filter(Path.is_dir, places):
            self._make_traversable(place)
            self._open.append(place)
        self._scratch.mkdir(mode=_CLOSED)
        for name, path in self._tls.items():
            shutil.copyfile(path, self._scratch / f"{name}.pem")
        self.give(self._scratch)

    def copy_files(self, folder: Path) -> None:
        """Copy the files of a definition to where the user may read them."""
        if self.account is not None and folder.is_dir():
            shutil.copytree(folder, self._scratch / FILES)
            self.give(self._scratch / FILES)

    def give_checkout(self, tree: Path) -> None:
        """Give a new checkout to the user, with a home next to it."""
        if self.account is None:
            return
        self.give_source(tree)
        home = tree.parent / HOME
        home.mkdir(mode=_CLOSED)
        self.give(home)

    def give_source(self, tree: Path) -> None:
        """Give the new checkout of a commit to the user, without its link to the repository."""
        if self.account is None:
            return
        # That user may not access the repository: git would only fail.
        (tree / ".git").unlink(missing_ok=True)
        self.give(tree)

    def give(self, folder: Path) -> None:
        """Give the folder and its content to the user.

        Only for a folder that measured code could not write yet: a name in it could be a hard link
        to another file.
        """
        if self.account is None:
            return
        for name in _iterate_below(folder):
            os.chown(name, self.account.uid, self.account.gid, follow_symlinks=False)

    def take_back(self, folder: Path) -> None:
        """Make the agent the owner of the user's files in it; the user may still read them."""
        if self.account is None:
            return
        self._take_back_entry(str(folder), None)
        for _, folders, files, folder_fd in os.fwalk(folder, follow_symlinks=False):
            for name in (*folders, *files):
                self._take_back_entry(name, folder_fd)

    def _take_back_entry(self, name: str, folder: Optional[int]) -> None:
        """Take back one name in an open folder; never follow a link, even a new one."""
        assert self.account is not None
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if status.st_uid != self.account.uid:  # a hard link to a file of another user
            return
        os.chown(name, os.geteuid(), self.account.gid, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
            return
        mode = status.st_mode & 0o755
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        try:
            os.fchmod(fd, mode | (mode & 0o500) >> 3)
        finally:
            os.close(fd)

    @property
    def owner_note(self) -> bytes:
        """The content of the `.done` file of a complete folder: the user who made it."""
        return self.account.owner_note if self.account else b""

    def is_complete(self, done: Path) -> bool:
        """Return whether the `.done` file exists and names the current user."""
        return done.exists() and done.read_bytes() == self.owner_note

    def placeholders(self) -> dict[str, str]:
        """Return the placeholders with other values than for the agent."""
        if self.account is None:
            return {}
        tls = {name: str(self._scratch / f"{name}.pem") for name in self._tls}
        return {"trial_dir": str(self._scratch), "files": str(self._scratch / FILES), **tls}

    def environment(self, tree: Optional[str]) -> dict[str, str]:
        """Return HOME and TMPDIR: the home next to the tree, or the scratch folder without one."""
        if self.account is None:
            return {}
        home = None if tree is None else build_dir(self._root, tree) / HOME
        where = home if home is not None and home.is_dir() else self._scratch
        return {"HOME": str(where), "TMPDIR": str(self._scratch)}

    def cwd(self, folder: Path) -> Path:
        """Return the working directory of a process of the trial with this folder."""
        return self._scratch if self.account else folder

    def _make_traversable(self, folder: Path) -> None:
        """Let the user traverse the folder without listing it."""
        assert self.account is not None
        os.chown(folder, -1, self.account.gid)
        folder.chmod(_TRAVERSABLE)


def _iterate_below(folder: Path) -> Iterator[str]:
    """The folder and all its content; links are not followed."""
    left = [str(folder)]
    while left:
        path = left.pop()
        yield path
        if not os.path.islink(path) and os.path.isdir(path):
            left += [entry.path for entry in os.scandir(path)]
