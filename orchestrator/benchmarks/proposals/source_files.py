"""The files of a commit that a proposal reads: a fixed list of names, with limits."""

import json
import re
from collections.abc import Iterable, Mapping

from orchestrator.benchmarks.repository import Repository

#: Contents by path.
SourceFiles = Mapping[str, str]

MOST_FILE_BYTES = 64 << 10
MOST_BYTES = 512 << 10
#: Files that show how the server is built and started.
BUILD_FILES = (
    "Procfile", "Dockerfile", "requirements.txt", "pyproject.toml", "manage.py", "package.json",
    "package-lock.json", "go.mod", "Cargo.toml", "Cargo.lock", "pom.xml", "build.gradle",
    "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "gradlew",
)  # fmt: skip
#: Files that show where the server listens, and which paths it answers.
CODE_FILES = (
    "app.py", "main.py", "server.py", "wsgi.py", "asgi.py", "application.py", "api.py", "run.py",
    "app/main.py", "app/__init__.py", "src/main.py", "src/app.py",
    "server.js", "index.js", "app.js", "main.js", "server.mjs", "index.mjs", "src/server.js",
    "src/index.js", "src/app.js", "server.ts", "index.ts", "src/server.ts", "src/index.ts",
    "src/main.ts",
    "main.go", "server.go", "cmd/server/main.go", "src/main.rs",
    "src/main/resources/application.properties", "src/main/resources/application.yml",
)  # fmt: skip
#: Only their presence matters, and they can be large.
_NOT_READ = frozenset({"package-lock.json", "Cargo.lock", "gradlew"})
#: The paths of a package.json that are read in addition.
_MOST_NAMED = 3
_PATH = re.compile(r"[A-Za-z0-9_@][A-Za-z0-9_@./-]{0,200}")


def read_source_files(repository: Repository, sha: str) -> dict[str, str]:
    """Return the known files of a commit; without those that are too large, links and folders.

    It calls git some dozen times and reads at most MOST_BYTES, whatever the repository contains.
    """
    files = _read(repository, sha, (*BUILD_FILES, *CODE_FILES), room=MOST_BYTES)
    named = [path for path in _list_named_files(files) if path not in files]
    room = MOST_BYTES - sum(map(len, files.values()))
    return files | _read(repository, sha, named, room=room)


def _read(repository: Repository, sha: str, paths: Iterable[str], *, room: int) -> dict[str, str]:
    files: dict[str, str] = {}
    for path, size in repository.list_files(sha, *paths).items():
        if path in _NOT_READ:
            files[path] = ""
        elif size <= min(room, MOST_FILE_BYTES):
            room -= size
            text = repository.read(sha, path).decode(errors="replace")
            files[path] = text.replace("\r\n", "\n").replace("\0", "")
    return files


def _list_named_files(files: SourceFiles) -> list[str]:
    """Return the files that package.json starts."""
    package = load_package(files)
    scripts = package.get("scripts")
    start = scripts.get("start") if isinstance(scripts, dict) else None
    words = [package.get("main"), *(start.split() if isinstance(start, str) else ())]
    paths = [
        word.removeprefix("./")
        for word in words
        if isinstance(word, str) and word.endswith((".js", ".mjs", ".cjs", ".ts"))
    ]
    return [each for each in paths if _PATH.fullmatch(each) and ".." not in each][:_MOST_NAMED]


def load_package(files: SourceFiles) -> dict[str, object]:
    """Return the object of package.json; empty if there is none, or it cannot be read."""
    try:
        package = json.loads(files.get("package.json", "{}"))
    except (ValueError, RecursionError):
        return {}
    return package if isinstance(package, dict) else {}
