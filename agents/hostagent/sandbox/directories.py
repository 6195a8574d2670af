"""What of the work directory measured code may reach, where it runs as a user of its own.

One build with what is installed for it, and a scratch folder that is new for each build and trial.
All else is closed to it: the agent, plans, results, repositories, and the builds of other commits,
which the same user has made. Without such a user nothing is changed, and nothing is in its way.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Optional

from ..files import remove_tree
from ..paths import SCRATCH, StepDir, build_dir, install_dir, installed_for
from ..step.plan import Plan
from .tls_files import tls_words
from .user import Account, account_of

#: Beside a tree: the home of whatever is built and run from it.
HOME = "home"
_KINDS = ("builds", "installs")
#: Of a folder that leads to what is open, whose names nobody else sees; and of all others.
_LEADS, _CLOSED = 0o710, 0o700


class Grounds:
    """`account` is None where measured code runs as the agent's login."""

    def __init__(self, step: StepDir, plan: Plan) -> None:
        """AgentError where the plan names a user that measured code cannot run as."""
        self.account: Optional[Account] = None
        if plan.run_as is not None:
            self.account = account_of(plan.run_as, step.root)
        self._root, self._tls = step.root, tls_words(step, plan)
        self._scratch = step.root / SCRATCH
        self._open: list[Path] = []

    def claim(self) -> None:
        """Close all, also what an agent that was killed or knew no such user has left open."""
        if self.account is None:
            return
        self.close()
        for path in self._root.iterdir():
            if not path.is_symlink():
                path.chmod(path.stat().st_mode & _CLOSED)
        self._lead(self._root)
        for place in (self._root / kind for kind in _KINDS):
            place.mkdir(exist_ok=True)
            self._lead(place)
            for path in place.iterdir():
                os.chown(path, os.geteuid(), -1)
                path.chmod(_CLOSED)

    def close(self) -> None:
        """Nothing is open any more, and what is in the scratch folder goes."""
        while self._open:
            self._open.pop().chmod(_CLOSED)
        if self.account is not None:
            remove_tree(self._scratch)

    def open(self, tree: str) -> None:
        """The build that a plan names so, and nothing else; the scratch folder is new."""
        if self.account is None:
            return
        self.close()
        installed = installed_for(self._root, tree)
        places = [build_dir(self._root, tree)]
        if installed is not None:
            places.append(install_dir(self._root, installed))
        for place in filter(Path.is_dir, places):
            self._lead(place)
            self._open.append(place)
        self._scratch.mkdir(mode=_CLOSED)
        for word, path in self._tls.items():
            shutil.copyfile(path, self._scratch / f"{word}.pem")
        self.give(self._scratch)

    def settle(self, tree: Path) -> None:
        """A tree that was checked out just now is the user's, with a home beside it."""
        if self.account is None:
            return
        # The way to the repository, which is closed to that user: git would only fail there.
        (tree / ".git").unlink(missing_ok=True)
        home = tree.parent / HOME
        home.mkdir(mode=_CLOSED)
        self.give(tree)
        self.give(home)

    def give(self, folder: Path) -> None:
        """The folder and all in it are the user's from now on.

        Only of what no measured code could write yet: a name in it may be another one's file.
        """
        if self.account is None:
            return
        for name in _below(folder):
            os.chown(name, self.account.uid, self.account.gid, follow_symlinks=False)

    def keep(self, folder: Path) -> None:
        """What the user has made in it is the agent's from now on, and the user's to read."""
        if self.account is None:
            return
        self._keep_entry(str(folder), None)
        for _, folders, files, here in os.fwalk(folder, follow_symlinks=False):
            for name in (*folders, *files):
                self._keep_entry(name, here)

    def _keep_entry(self, name: str, folder: Optional[int]) -> None:
        """One name in an open folder; never what a link leads to, whoever puts one there now."""
        assert self.account is not None
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if found.st_uid != self.account.uid:  # a second name of somebody else's file
            return
        os.chown(name, os.geteuid(), self.account.gid, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
            return
        mode = found.st_mode & 0o755
        kept = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        try:
            os.fchmod(kept, mode | (mode & 0o500) >> 3)
        finally:
            os.close(kept)

    @property
    def mark(self) -> bytes:
        """What stands in the mark of what is complete: who made it."""
        return self.account.mark if self.account else b""

    def made(self, done: Path) -> bool:
        """Whether that mark is there, and says that who runs now has made it."""
        return done.exists() and done.read_bytes() == self.mark

    def words(self) -> dict[str, str]:
        """Words that stand for something else than for the agent."""
        if self.account is None:
            return {}
        tls = {word: str(self._scratch / f"{word}.pem") for word in self._tls}
        return {"trial_dir": str(self._scratch), **tls}

    def environment(self, tree: str) -> dict[str, str]:
        """Not the agent's home: one beside the tree, or the scratch folder where nothing is."""
        if self.account is None:
            return {}
        home = build_dir(self._root, tree) / HOME
        where = home if home.is_dir() else self._scratch
        return {"HOME": str(where), "TMPDIR": str(self._scratch)}

    def cwd(self, folder: Path) -> Path:
        """Where something runs that would run in this folder of a trial."""
        return self._scratch if self.account else folder

    def _lead(self, folder: Path) -> None:
        """The user can go through it, and see none of its names."""
        assert self.account is not None
        os.chown(folder, -1, self.account.gid)
        folder.chmod(_LEADS)


def _below(folder: Path) -> Iterator[str]:
    """The folder and all that is in it; links are not followed."""
    left = [str(folder)]
    while left:
        path = left.pop()
        yield path
        if not os.path.islink(path) and os.path.isdir(path):
            left += [entry.path for entry in os.scandir(path)]
