"""The files of Git LFS of the commits of a project and of their submodules.

Their objects are in the mirror of the project, so they count for its limits, and a new clone of the
mirror fetches them again.
"""

import contextlib
import tarfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple

from cli.pitwall.units import format_bytes
from orchestrator.benchmarks.lfs_pointers import LfsFile, LfsPointer
from orchestrator.benchmarks.lfs_server import OBJECTS_A_REQUEST, Download, LfsServer, find_server
from orchestrator.benchmarks.lfs_store import CHUNK_BYTES, IncompleteObject, LfsStore
from orchestrator.benchmarks.mirror_limits import check_free
from orchestrator.benchmarks.mirrors import lock_mirror
from orchestrator.benchmarks.remote_calls import Remote
from orchestrator.benchmarks.submodules import FetchedSubmodule, Submodules, SubmoduleTree
from orchestrator.benchmarks.tree_entries import inspect_commit, name_files
from orchestrator.core.errors import InvalidRequestError, PitwallError
from orchestrator.transport.http import DeliveryError

#: The most files of Git LFS of a commit, with those of its submodules.
MOST_FILES = 20_000
#: Attempts for an object whose connection ends early; each continues the one before.
TRIES = 3
_PROGRESS_S = 1.0


class Origin(NamedTuple):
    """Files and the place that has their objects. `lfs_url`: as in `CommitContents`."""

    remote: Remote
    lfs_url: str
    files: Sequence[LfsFile]


@dataclass(frozen=True, slots=True)
class LfsFiles:
    """Fetches and reads the files of Git LFS of commits in the mirror of `submodules`.

    Its limits apply: `packed_bytes` to all files of a commit together, and `timeout_s` to their
    fetch.
    """

    submodules: Submodules

    @property
    def store(self) -> LfsStore:
        return LfsStore(self.submodules.mirror)

    def fetch(
        self,
        sha: str,
        fetched: Sequence[FetchedSubmodule],
        *,
        on_progress: Callable[[str], None] | None = None,
    ) -> bool:
        """Fetch the objects of a commit and of its submodules; return whether it has any.

        Raise InvalidRequestError that names the file if one cannot be fetched, or if there are too
        many.
        """
        origins = [each for each in self._find_origins(sha, fetched) if each.files]
        files = [file for each in origins for file in each.files]
        if files:
            self._check_bounds(files)
            with lock_mirror(self.submodules.mirror):
                self.store.remove_old_parts()
                if missing := select_missing(self.store, files):
                    self._check_room(missing)
                    _Fetch(self, missing, on_progress).run(origins)
        return bool(files)

    def has_all(self, sha: str, trees: Sequence[SubmoduleTree]) -> bool:
        """Return whether all objects of a commit were fetched, and the mirror was not lost."""
        try:
            return not select_missing(self.store, self._list_files(sha, trees))
        except InvalidRequestError:  # The mirror was lost.
            return False

    def archive(self, sha: str, trees: Sequence[SubmoduleTree], target: BinaryIO) -> None:
        """Write the files as a tar archive, with their paths in the tree of the commit."""
        check = partial(
            check_free, self.submodules.mirror.parent, self.submodules.limits.free_bytes
        )
        write_lfs_archive(self.store, self._list_files(sha, trees), target, check=check)

    def _find_origins(self, sha: str, fetched: Sequence[FetchedSubmodule]) -> Iterator[Origin]:
        places = [(self.submodules.mirror, "", sha, self.submodules.remote)]
        for tree, remote in fetched:
            places.append((self.submodules.folder, f"{tree.path}/", tree.sha, remote))
        for folder, around, commit, remote in places:
            contents = inspect_commit(folder, commit)
            yield Origin(remote, contents.lfs_url, _move(contents.lfs_files, around))

    def _list_files(self, sha: str, trees: Sequence[SubmoduleTree]) -> list[LfsFile]:
        files = inspect_commit(self.submodules.mirror, sha).lfs_files
        for tree in trees:
            inner = inspect_commit(self.submodules.folder, tree.sha).lfs_files
            files += _move(inner, f"{tree.path}/")
        return files

    def _check_bounds(self, files: Sequence[LfsFile]) -> None:
        if len(files) > MOST_FILES:
            raise InvalidRequestError(
                f"the commit has {len(files):,} files of Git LFS, counting those of submodules, "
                f"and at most {MOST_FILES:,} are fetched; remove some of them"
            )
        total = sum(file.pointer.size for file in files)
        if total > self.submodules.packed_bytes:
            largest = max(files, key=lambda file: file.pointer.size)
            raise InvalidRequestError(
                f"the files of Git LFS of the commit have {format_bytes(total)}, and at most "
                f"{format_bytes(self.submodules.packed_bytes)} are sent to a host; the largest is "
                f"{name_files([largest.path])} ({format_bytes(largest.pointer.size)}). Remove "
                "large files, or ask your administrator to raise PITWALL_GIT_PACKED_LIMIT_MIB"
            )

    def _check_room(self, missing: dict[LfsPointer, str]) -> None:
        """Raise the error of a limit that the objects would exceed, before one is fetched."""
        self.submodules.limits.check(more_bytes=sum(map(self.store.measure_missing, missing)))


class _Fetch:
    """One fetch of the objects that a commit lacks. `missing`: a path of each."""

    def __init__(
        self,
        files: LfsFiles,
        missing: dict[LfsPointer, str],
        on_progress: Callable[[str], None] | None,
    ) -> None:
        self._store, self._paths = files.store, missing
        self._deadline = time.monotonic() + files.submodules.timeout_s
        self._check_limits = files.submodules.limits.repeated_check()
        self._on_progress, self._next_report = on_progress, 0.0
        self._done = 0

    def run(self, origins: Iterable[Origin]) -> None:
        for origin in origins:
            missing = list(select_missing(self._store, origin.files))
            if origin.remote.url.startswith("/"):
                self._copy_all(origin.remote, missing)
            elif missing:
                self._download_all(origin, missing)

    def _copy_all(self, remote: Remote, pointers: Sequence[LfsPointer]) -> None:
        """Copy the objects of a repository on this machine."""
        remote.refuse_private()
        stores = [LfsStore(Path(remote.url) / ".git"), LfsStore(Path(remote.url))]
        absent = [each for each in pointers if not any(store.has(each) for store in stores)]
        if absent:
            raise self._build_error(
                absent, "the repository does not have it; run `git lfs fetch --all` in it"
            )
        for pointer in pointers:
            source = next(store for store in stores if store.has(pointer))
            with self._adding(pointer) as target, source.open(pointer) as content:
                target.restart()
                while data := content.read(CHUNK_BYTES):
                    target.write(data)
                    self._check()

    def _download_all(self, origin: Origin, pointers: Sequence[LfsPointer]) -> None:
        try:
            server = find_server(origin.remote, origin.lfs_url)
        except InvalidRequestError as error:
            raise self._build_error(pointers, str(error)) from error
        for start in range(0, len(pointers), OBJECTS_A_REQUEST):
            some = pointers[start : start + OBJECTS_A_REQUEST]
            found = self._find(server, some)
            for pointer in some:
                with self._adding(pointer) as target:
                    self._download(server, found[pointer.oid], target)

    def _find(self, server: LfsServer, pointers: Sequence[LfsPointer]) -> dict[str, Download]:
        try:
            found, problems = server.find_downloads(pointers, self._deadline)
        except PitwallError as error:
            raise self._build_error(pointers, str(error)) from error
        absent = [each for each in pointers if each.oid in problems]
        if absent:
            raise self._build_error(absent, problems[absent[0].oid])
        return found

    def _download(self, server: LfsServer, found: Download, target: IncompleteObject) -> None:
        """Download the rest of an object, with some attempts after an interruption."""
        for left in reversed(range(TRIES)):
            if not target.missing_bytes:
                return
            try:
                server.download(found, target, self._deadline, self._check)
            except DeliveryError:
                if not left:
                    raise
            else:
                return

    @contextlib.contextmanager
    def _adding(self, pointer: LfsPointer) -> Iterator[IncompleteObject]:
        try:
            with self._store.adding(pointer) as target:
                yield target
        except PitwallError as error:
            raise self._build_error([pointer], str(error)) from error
        self._done += 1

    def _check(self) -> None:
        """Raise the error of an exceeded limit; report the progress once a second."""
        self._check_limits()
        now = time.monotonic()
        if self._on_progress is not None and now >= self._next_report:
            self._next_report = now + _PROGRESS_S
            self._on_progress(f"Git LFS: {self._done:,} of {len(self._paths):,} objects")

    def _build_error(self, pointers: Sequence[LfsPointer], why: str) -> InvalidRequestError:
        names = name_files(sorted(self._paths[each] for each in pointers))
        return InvalidRequestError(
            f"the content of {names}, which is in Git LFS, cannot be fetched: {why}"
        )


def select_missing(store: LfsStore, files: Iterable[LfsFile]) -> dict[LfsPointer, str]:
    """Return the objects that the store lacks, each with the path of one of its files."""
    return {file.pointer: file.path for file in files if not store.has(file.pointer)}


def write_lfs_archive(
    store: LfsStore, files: Iterable[LfsFile], target: BinaryIO, *, check: Callable[[], None]
) -> None:
    """Write the contents of files as a tar archive; all objects are in the store.

    It is not compressed: large files usually are. `check` is called before each file, and ends the
    call if it raises.
    """
    with tarfile.open(fileobj=target, mode="w|") as archive:
        for file in files:
            check()
            member = tarfile.TarInfo(file.path)
            member.size = file.pointer.size
            member.mode = 0o755 if file.is_executable else 0o644
            with store.open(file.pointer) as content:
                archive.addfile(member, content)


def _move(files: Iterable[LfsFile], around: str) -> list[LfsFile]:
    """Return files of a submodule with their paths in the tree of the commit."""
    return [file._replace(path=f"{around}{file.path}") for file in files]
