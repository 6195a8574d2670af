"""Check that a running server comes from the build of its commit."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Optional

from ..paths import build_dir, get_tree_dir, install_dir, read_install_name
from ..platform.process_files import ProcessFiles
from .build_records import read_all_periods, read_period

#: Folders that only the package manager of the system writes to, and one below them that others do.
_OF_SYSTEM = ("/usr/", "/lib", "/bin/", "/sbin/", "/snap/", "/nix/store/")
_NOT_OF_SYSTEM = "/usr/local/"
#: Folders below the work directory that contain measured code.
_KINDS = ("builds", "installs")
_MAX_ARGUMENTS = 1_000


class ServerOrigin:
    """Where the server of one tree may come from."""

    def __init__(self, root: Path, tree: str) -> None:
        installed = read_install_name(root, tree)
        # The kernel reports paths without links.
        self._root = Path(os.path.realpath(root))
        self._tree = get_tree_dir(self._root, tree)
        self._own = [build_dir(self._root, tree)]
        if installed is not None:
            self._own.append(install_dir(self._root, installed))
        self._period = read_period(root, tree)

    def find_problem(self, files: ProcessFiles) -> Optional[str]:
        """Return why a process of the server is not of this build; None if it is.

        Its executable, its working directory or a file among its arguments must be in the build or
        its install. None of them, and no mapped file, may be in those of another commit, or in a
        place that all commits share and written by a later build.
        """
        named = [files.program, *self._list_argument_files(files)]
        used = [*named, *sorted(files.mapped)]
        other = next((path for path in (*used, files.folder) if self._is_of_other(path)), None)
        if other is not None:
            return f"it uses {other}, which belongs to another build"
        replaced = self._find_replaced(used)
        if replaced is not None:
            return (
                f"it uses {replaced}, which the build of another commit has written since. Let "
                "build steps write below {tree}, and install steps below {installed}"
            )
        if any(self._is_own(path) for path in (*named, files.folder)):
            return None
        return (
            f"it runs {files.program} in {files.folder}, and neither they nor a file in its "
            "command belong to the build. Start it from {tree}"
        )

    def _list_argument_files(self, files: ProcessFiles) -> Iterator[str]:
        """Yield the existing files and folders among the arguments.

        The last part of a path is not resolved: `python` of a virtual environment is a link.
        """
        for argument in files.arguments[:_MAX_ARGUMENTS]:
            for folder in (files.folder, str(self._tree)):
                path = os.path.normpath(os.path.join(folder, argument))
                if argument and os.path.exists(path):
                    yield os.path.join(
                        os.path.realpath(os.path.dirname(path)), os.path.basename(path)
                    )
                    break

    def _is_own(self, path: str) -> bool:
        return any(_is_below(path, folder) for folder in self._own)

    def _is_of_other(self, path: str) -> bool:
        measured = any(_is_below(path, self._root / kind) for kind in _KINDS)
        return measured and not self._is_own(path)

    def _find_replaced(self, paths: Iterable[str]) -> Optional[str]:
        """Return a file outside of the work directory that a later build changed.

        A compiler or runtime that any build downloaded is there as well, but stays as it is.
        """
        if self._period is None:
            return None
        later = {
            path: changed
            for path, changed in self._read_changes(paths)
            if changed > self._period.ended
        }
        periods = list(read_all_periods(self._root)) if later else []
        for path, changed in later.items():
            if any(period.began <= changed <= period.ended for period in periods):
                return path
        return None

    def _read_changes(self, paths: Iterable[str]) -> Iterator[tuple[str, float]]:
        """Yield the times of the last changes of files that build steps could have written."""
        for path in dict.fromkeys(paths):
            system = path.startswith(_OF_SYSTEM) and not path.startswith(_NOT_OF_SYSTEM)
            if system or _is_below(path, self._root):
                continue
            try:
                status = os.stat(path)
            except (OSError, ValueError):  # removed since
                continue
            if stat.S_ISREG(status.st_mode):
                yield path, status.st_ctime


def find_problem_of_any(origin: ServerOrigin, files: Sequence[ProcessFiles]) -> Optional[str]:
    """Return the problem of the first process that has one."""
    return next(filter(None, map(origin.find_problem, files)), None)


def _is_below(path: str, folder: Path) -> bool:
    return path == str(folder) or path.startswith(f"{folder}{os.sep}")
