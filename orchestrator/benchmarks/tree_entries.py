"""The files of a commit in a bare repository: its submodules, and its files of Git LFS."""

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from orchestrator.benchmarks.git_calls import call_git
from orchestrator.benchmarks.lfs_pointers import POINTER_SIZES, LfsFile, read_pointers
from orchestrator.core.errors import InvalidRequestError

GITMODULES = ".gitmodules"
LFSCONFIG = ".lfsconfig"
#: A larger file of git's configuration is not one, but an attempt to occupy a worker.
MOST_CONFIG_BYTES = 256 << 10
_LINK, _FILE, _PROGRAM = "160000", "100", "100755"
_KEY = re.compile(rb"submodule\.(?P<name>.+)\.(?P<field>path|url)", re.DOTALL)
#: The number of files that a message names.
_NAMED = 5


class TreeEntry(NamedTuple):
    """A file, a link or a submodule; `size` in bytes is 0 for a submodule."""

    mode: str
    sha: str
    size: int
    path: str


class Submodule(NamedTuple):
    """A folder of a commit that contains a commit of another repository; `url` as written."""

    path: str
    sha: str
    url: str


class CommitContents(NamedTuple):
    """What a commit only refers to. `lfs_url`: the server of `.lfsconfig`; empty if none is set."""

    submodules: list[Submodule]
    lfs_files: list[LfsFile]
    lfs_url: str


def inspect_commit(folder: Path, sha: str) -> CommitContents:
    """Return the submodules of a commit, none without `.gitmodules`, and its files of Git LFS.

    Raise InvalidRequestError if a file of git's configuration or a pointer cannot be read, or if
    `.gitmodules` does not name a submodule.
    """
    entries = _list_entries(folder, sha)
    lfs_files = _find_lfs_files(folder, entries)
    lfs_url = _read_lfs_url(folder, sha, entries) if lfs_files else ""
    return CommitContents(_find_submodules(folder, sha, entries), lfs_files, lfs_url)


def name_files(paths: Sequence[str]) -> str:
    """Return the first of these paths, and the number of the others, for a message."""
    more = f" and {len(paths) - _NAMED:,} more" if len(paths) > _NAMED else ""
    return f"{', '.join(map(_format_path, paths[:_NAMED]))}{more}"


def _format_path(path: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in path[:200])


def _list_entries(folder: Path, sha: str) -> list[TreeEntry]:
    """Return all entries of a commit except folders, sorted by path."""
    listed = call_git("--git-dir", str(folder), "ls-tree", "-r", "-l", "-z", sha).stdout
    rows = (entry.partition(b"\t") for entry in listed.split(b"\0") if entry)
    return [_parse_entry(facts.decode().split(), os.fsdecode(path)) for facts, _, path in rows]


def _parse_entry(facts: list[str], path: str) -> TreeEntry:
    mode, _, sha, size = facts
    return TreeEntry(mode, sha, 0 if size == "-" else int(size), path)


def _find_submodules(folder: Path, sha: str, entries: Sequence[TreeEntry]) -> list[Submodule]:
    links = [entry for entry in entries if entry.mode == _LINK]
    if not links or not _has_config(entries, GITMODULES):
        return []
    urls = _read_urls(folder, sha)
    return [Submodule(_check_path(link.path), link.sha, _find_url(urls, link)) for link in links]


def _has_config(entries: Sequence[TreeEntry], name: str) -> bool:
    """Return whether the commit has this file of git's configuration, of limited size."""
    entry = next((entry for entry in entries if entry.path == name), None)
    if entry is None:
        return False
    if not entry.mode.startswith(_FILE) or entry.size > MOST_CONFIG_BYTES:
        raise InvalidRequestError(f"{name} is not a file of at most {MOST_CONFIG_BYTES >> 10} KiB")
    return True


def _find_url(urls: dict[str, str], link: TreeEntry) -> str:
    if link.path not in urls:
        raise InvalidRequestError(
            f"{GITMODULES} has no URL for the submodule {link.path}; add it, or remove the "
            "submodule with `git rm --cached`"
        )
    return urls[link.path]


def _check_path(path: str) -> str:
    """Return a path that names a folder below the tree in each file system."""
    parts = path.split("/")
    is_plain = all(part not in ("", ".", "..") and part.lower() != ".git" for part in parts)
    if not is_plain or not path.isprintable() or "\\" in path or len(path) > 400:
        raise InvalidRequestError(f"{path[:200]!r} is not a path for a submodule; rename it")
    return path


def _read_urls(folder: Path, sha: str) -> dict[str, str]:
    """Return the URL of each path in `.gitmodules`; the last value of a field counts."""
    fields: dict[bytes, dict[bytes, str]] = {}
    for key, value in _read_config(folder, sha, GITMODULES, r"^submodule\..*\.(path|url)$"):
        if match := _KEY.fullmatch(key):
            fields.setdefault(match["name"], {})[match["field"]] = value
    return {
        each[b"path"].rstrip("/"): each[b"url"]
        for each in fields.values()
        if b"path" in each and b"url" in each
    }


def _read_lfs_url(folder: Path, sha: str, entries: Sequence[TreeEntry]) -> str:
    """Return `lfs.url` of `.lfsconfig`; the last value counts."""
    if not _has_config(entries, LFSCONFIG):
        return ""
    values = [value for _, value in _read_config(folder, sha, LFSCONFIG, r"^lfs\.url$")]
    return values[-1] if values else ""


def _read_config(folder: Path, sha: str, name: str, pattern: str) -> list[tuple[bytes, str]]:
    """Return the keys that match, with their values, of a file of the commit."""
    done = call_git(
        "--git-dir", str(folder), "config", f"--blob={sha}:{name}", "--null",
        "--get-regexp", pattern, check=False,
    )  # fmt: skip
    if done.returncode and done.stderr:  # It is silent if nothing was found.
        raise InvalidRequestError(f"{name} is not a valid file of git's configuration")
    pairs = (entry.partition(b"\n") for entry in done.stdout.split(b"\0") if entry)
    return [(key, os.fsdecode(value)) for key, _, value in pairs]


def _find_lfs_files(folder: Path, entries: Iterable[TreeEntry]) -> list[LfsFile]:
    """Return the files that are pointers of Git LFS instead of their contents, sorted by path."""
    candidates: dict[str, list[TreeEntry]] = {}
    for entry in entries:
        if entry.mode.startswith(_FILE) and entry.size in POINTER_SIZES:
            candidates.setdefault(entry.sha, []).append(entry)
    files, unreadable = [], []
    for sha, pointer in read_pointers(folder, list(candidates)).items():
        for entry in candidates[sha]:
            if pointer is None:
                unreadable.append(entry.path)
            else:
                files.append(LfsFile(entry.path, pointer, entry.mode == _PROGRAM))
    if unreadable:
        raise InvalidRequestError(
            f"the commit has pointers of Git LFS that cannot be read: "
            f"{name_files(sorted(unreadable))}. Expected version, oid and size; extensions of "
            "Git LFS are not supported"
        )
    return sorted(files)
