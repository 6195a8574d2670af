"""The files of a commit in a bare repository: its submodules, and its pointers of Git LFS."""

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from orchestrator.benchmarks.git_calls import call_git
from orchestrator.core.errors import InvalidRequestError

GITMODULES = ".gitmodules"
#: A larger `.gitmodules` is not one, but an attempt to occupy a worker.
MOST_GITMODULES_BYTES = 256 << 10
_LINK, _FILE = "160000", "100"
#: The sizes in bytes of a pointer of Git LFS: its specification requires less than 1,024.
_POINTER_SIZES = range(100, 1025)
_POINTER = re.compile(
    rb"version https?://(?:git-lfs|hawser)\.github\.com/spec/v1\n(?:[^\n]*\n)*?oid sha256:"
)
_KEY = re.compile(rb"submodule\.(?P<name>.+)\.(?P<field>path|url)", re.DOTALL)
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


def inspect_commit(folder: Path, sha: str) -> list[Submodule]:
    """Return the submodules of a commit; none without `.gitmodules`.

    Raise InvalidRequestError if it has pointers of Git LFS, or if `.gitmodules` cannot be read or
    does not name a submodule.
    """
    entries = _list_entries(folder, sha)
    if pointers := _find_lfs_pointers(folder, entries):
        raise InvalidRequestError(_describe_pointers(pointers))
    return _find_submodules(folder, sha, entries)


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
    listed = next((entry for entry in entries if entry.path == GITMODULES), None)
    if not links or listed is None:
        return []
    if not listed.mode.startswith(_FILE) or listed.size > MOST_GITMODULES_BYTES:
        raise InvalidRequestError(
            f"{GITMODULES} is not a file of at most {MOST_GITMODULES_BYTES >> 10} KiB"
        )
    urls = _read_urls(folder, sha)
    return [Submodule(_check_path(link.path), link.sha, _find_url(urls, link)) for link in links]


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
    done = call_git(
        "--git-dir", str(folder), "config", f"--blob={sha}:{GITMODULES}", "--null",
        "--get-regexp", r"^submodule\..*\.(path|url)$", check=False,
    )  # fmt: skip
    if done.returncode and done.stderr:  # It is silent if nothing was found.
        raise InvalidRequestError(f"{GITMODULES} is not a valid file of git's configuration")
    fields: dict[bytes, dict[bytes, str]] = {}
    for entry in done.stdout.split(b"\0"):
        key, _, value = entry.partition(b"\n")
        if match := _KEY.fullmatch(key):
            fields.setdefault(match["name"], {})[match["field"]] = os.fsdecode(value)
    return {
        each[b"path"].rstrip("/"): each[b"url"]
        for each in fields.values()
        if b"path" in each and b"url" in each
    }


def _find_lfs_pointers(folder: Path, entries: Iterable[TreeEntry]) -> list[str]:
    """Return the paths of files that are pointers of Git LFS instead of their contents, sorted."""
    paths: dict[str, list[str]] = {}
    for entry in entries:
        if entry.mode.startswith(_FILE) and entry.size in _POINTER_SIZES:
            paths.setdefault(entry.sha, []).append(entry.path)
    return sorted(path for sha in _select_pointers(folder, list(paths)) for path in paths[sha])


def _select_pointers(folder: Path, shas: Sequence[str]) -> Iterator[str]:
    if not shas:
        return
    with tempfile.TemporaryFile() as wanted:
        wanted.write("".join(f"{sha}\n" for sha in shas).encode())
        wanted.seek(0)
        output = call_git("--git-dir", str(folder), "cat-file", "--batch", source=wanted).stdout
    start = 0
    for sha in shas:  # `<hash> blob <size>\n<content>\n` of each, in the order of the input
        head, _, _ = output[start : start + 200].partition(b"\n")
        begin = start + len(head) + 1
        start = begin + int(head.split()[2]) + 1
        if _POINTER.match(output, begin, start):
            yield sha


def _describe_pointers(paths: Sequence[str]) -> str:
    """Return the message for a commit with pointers of Git LFS."""
    more = f" and {len(paths) - _NAMED:,} more" if len(paths) > _NAMED else ""
    return (
        f"the commit has files of Git LFS, which Pitwall does not fetch: "
        f"{', '.join(path[:200] for path in paths[:_NAMED])}{more}. The tree contains only their "
        "pointers, so another program would be measured; store the files in git itself"
    )
