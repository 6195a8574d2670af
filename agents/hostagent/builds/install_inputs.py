"""The files of a commit that its install may read, and their copy for the install steps.

An install is shared by all commits with the same inputs. So its steps run in a folder with these
files and no others. A step that reads more of the commit fails; otherwise it would install one
commit for all of them.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..errors import BuildFailed
from ..paths import resolve_below
from ..protocol import WHOLE_COMMIT
from .build_steps import Heartbeat
from .tree_files import Entry, describe_entry, iterate_files

_HINTED = 5
_WORD = re.compile(r"[\w.+@/-]+")


class InstallInputs:
    """The files that `names` select in `tree`: files, folders with all they contain, or `.`."""

    def __init__(self, tree: Path, names: Sequence[str]) -> None:
        self._tree = tree
        self._names = names

    def compute_digest(self, heartbeat: Heartbeat) -> str:
        """Return the digest of names and contents; BuildFailed if the commit lacks one of them."""
        digest = hashlib.sha256()
        for name in self._names:
            digest.update(b"%s\0" % os.fsencode(name))
            try:
                for entry in self._iterate(name):
                    digest.update(describe_entry(entry, heartbeat))
            except OSError as error:
                raise _build_error(name, error) from error
        return digest.hexdigest()

    def copy(self, target: Path) -> None:
        """Copy them into the new folder `target`, each at its place in the commit."""
        target.mkdir(parents=True)
        for name in self._names:
            try:
                for entry in self._iterate(name):
                    _copy(entry, target / entry.name)
            except OSError as error:
                raise _build_error(name, error) from error

    def find_absent(self, text: str) -> list[str]:
        """Return files and folders of the commit that `text` names and the inputs lack, sorted.

        At most _HINTED: they are a hint in a message.
        """
        found = set()
        for word in set(_WORD.findall(text)):
            name = os.path.normpath(word.rstrip(".:,"))
            if name.startswith((".." + os.sep, os.sep)) or name in ("", ".", ".."):
                continue
            if os.path.lexists(self._tree / name) and not self._covers(name):
                found.add(name)
        return sorted(found)[:_HINTED]

    def _covers(self, name: str) -> bool:
        """Return whether `name` is an input, in a folder of inputs, or a folder with inputs."""
        return any(
            item in (WHOLE_COMMIT, name)
            or name.startswith(item + "/")
            or item.startswith(name + "/")
            for item in self._names
        )

    def _iterate(self, name: str) -> Iterator[Entry]:
        """Yield the files that one name selects; their names are relative to the tree."""
        if name == WHOLE_COMMIT:
            yield from iterate_files(self._tree)
            return
        # A link of a checkout can lead anywhere, and the agent may be root.
        path = Path(os.path.realpath(resolve_below(self._tree, name)))
        if Path(os.path.realpath(self._tree)) not in path.parents:
            raise OSError("it leads outside of the commit")
        if path.is_dir():
            for entry in iterate_files(path):
                yield entry._replace(name=os.path.join(name, entry.name))
        else:
            yield Entry(str(path), name, os.lstat(path))


def _copy(entry: Entry, target: Path) -> None:
    if os.path.lexists(target):  # it is also in a folder that was copied
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if entry.is_link:
        os.symlink(os.readlink(entry.path), target)
        return
    shutil.copyfile(entry.path, target, follow_symlinks=False)
    target.chmod(0o755 if entry.is_executable else 0o644)


def _build_error(name: str, error: OSError) -> BuildFailed:
    missing = isinstance(error, FileNotFoundError)
    problem = "the commit has no such file" if missing else f"it cannot be read: {error}"
    return BuildFailed(f"install.files: {name}: {problem}")
