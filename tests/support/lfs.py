"""Repositories with files of Git LFS, and a real server that has them, for tests."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.factories import git
from tests.support.git_servers import TOKEN, SmartServer, read_password
from tests.support.http_servers import Got, serving

_BATCH = re.compile(r"/(?P<team>[a-z]+)(/.+\.git/info/lfs)?/objects/batch")
_OBJECT = re.compile(r"/objects/(?P<oid>[0-9a-f]{64})(\?.*)?")
_RANGE = re.compile(r"bytes=(?P<start>[0-9]+)-")
TYPE = "application/vnd.git-lfs+json"
#: The header that the batch API gives out for the objects.
OBJECT_SECRET = "object-secret"


def hash_content(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def build_pointer(content: bytes) -> str:
    return (
        "version https://git-lfs.github.com/spec/v1\n"
        f"oid sha256:{hash_content(content)}\n"
        f"size {len(content)}\n"
    )


def commit_lfs_files(
    folder: Path, files: Mapping[str, bytes], *, number: int = 70, programs: tuple[str, ...] = ()
) -> str:
    """Commit the pointers of these files, as git-lfs does; return the hash of the commit."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(build_pointer(content))
        path.chmod(0o755 if name in programs else 0o644)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "-m", f"files {number}", at=number * 60)
    return git(folder, "rev-parse", "HEAD")


def store_objects(git_folder: Path, *contents: bytes) -> None:
    """Put objects where git-lfs keeps them."""
    for content in contents:
        oid = hash_content(content)
        path = git_folder / "lfs" / "objects" / oid[:2] / oid[2:4] / oid
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


@dataclass
class LfsStandIn:
    """A git server over http with the batch API of Git LFS; repositories in `team` need a token.

    `change` changes an answer of the batch API. `answer_object` answers instead of the store, and
    `cut_after` ends each answer after so many bytes of an object.
    """

    git: SmartServer
    objects: dict[str, bytes] = field(default_factory=dict)
    change: Callable[[dict[str, Any]], Any] | None = None
    answer_object: Callable[[Got], tuple[int, bytes, dict[str, str]]] | None = None
    cut_after: int | None = None
    batches: list[Got] = field(default_factory=list)
    downloads: list[Got] = field(default_factory=list)
    url: str = ""

    def add(self, *contents: bytes) -> None:
        self.objects |= {hash_content(content): content for content in contents}

    def __call__(self, got: Got) -> tuple[int, bytes, dict[str, str]]:
        if match := _BATCH.fullmatch(got.path):
            self.batches.append(got)
            return self._answer_batch(got, is_private=match["team"] == "team")
        if match := _OBJECT.fullmatch(got.path):
            self.downloads.append(got)
            return (self.answer_object or self._answer_object)(got)
        return self.git(got)

    def _answer_batch(self, got: Got, *, is_private: bool) -> tuple[int, bytes, dict[str, str]]:
        assert got.headers["accept"] == got.headers["content-type"] == TYPE
        assert got.data["operation"] == "download"
        if is_private and read_password(got) != TOKEN:
            return 401, json.dumps({"message": "Credentials needed"}).encode(), {}
        objects = [self._find_object(each) for each in got.data["objects"]]
        answer: Any = {"transfer": "basic", "objects": objects}
        if self.change is not None:
            answer = self.change(answer) or answer
        return 200, json.dumps(answer).encode(), {"Content-Type": TYPE}

    def _find_object(self, wanted: dict[str, Any]) -> dict[str, Any]:
        if wanted["oid"] not in self.objects:
            return {**wanted, "error": {"code": 404, "message": "Object does not exist"}}
        action = {
            "href": f"{self.url}/objects/{wanted['oid']}",
            "header": {"Authorization": f"Bearer {OBJECT_SECRET}"},
        }
        return {**wanted, "authenticated": True, "actions": {"download": action}}

    def _answer_object(self, got: Got) -> tuple[int, bytes, dict[str, str]]:
        content = self.objects[got.path.rpartition("/")[2]]
        ranged = _RANGE.fullmatch(got.headers.get("range", ""))
        start = int(ranged["start"]) if ranged else 0
        rest = content[start:]
        headers = {"Content-Length": str(len(rest))}
        if ranged:
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        return 206 if ranged else 200, rest[: self.cut_after], headers


@contextmanager
def serving_lfs(folder: Path, *contents: bytes) -> Iterator[LfsStandIn]:
    """Serve the repositories in a folder, and these objects."""
    server = LfsStandIn(SmartServer(folder))
    server.add(*contents)
    with serving(server) as server.url:
        yield server
