"""The paths below the work directory, and the names that may be part of a path."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import Optional

from .errors import BadArgument

#: The folder of a job's certificates, next to those of its steps.
TLS = "tls"
#: Next to a complete tree or install; touched at each use.
DONE = ".done"
#: The temporary folder of measured code that runs as a separate user. The name is short because
#: paths of sockets in it are limited to 108 bytes.
SCRATCH = "scratch"
#: The folders for the data of prepare steps.
DATA = "data"
#: Next to a tree: the name of its install.
NOTE = "installed"
_ID = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*\Z")


def check_id(text: str) -> str:
    """Return `text` if it can be one component of a path; BadArgument otherwise."""
    if not _ID.match(text):
        raise BadArgument(
            f"{text!r} cannot name a file: use letters, digits, '.', '_' and '-', no leading dot"
        )
    return text


def resolve_below(root: Path, relative: str) -> Path:
    """Return the path `relative` below `root`; BadArgument if it is absolute or leads elsewhere."""
    parts = relative.split("/")
    if os.path.isabs(relative) or not all(parts) or any(part in (".", "..") for part in parts):
        raise BadArgument(f"{relative!r} is not a path below the work directory")
    return root.joinpath(*parts)


def resolve_working_dir(tree: Path, name: Optional[str]) -> Path:
    """Return the folder `name` of a tree, or the tree itself; BadArgument if it has none.

    A link of a checkout can lead anywhere.
    """
    if name is None:
        return tree
    folder = Path(os.path.realpath(resolve_below(tree, name)))
    if not folder.is_dir() or Path(os.path.realpath(tree)) not in folder.parents:
        raise BadArgument(f"working_dir: the commit has no folder {name}")
    return folder


class StepDir:
    """One step of a job: `jobs/<job>/<step>` below the work directory `root`."""

    def __init__(self, root: Path, job: str, step: str) -> None:
        """BadArgument if job or step cannot name a folder."""
        self.root = root
        self.job = check_id(job)
        self.step = check_id(step)
        self.path = root / "jobs" / job / step

    def __str__(self) -> str:
        return f"{self.job}/{self.step}"

    @property
    def plan(self) -> Path:
        return self.path / "plan.json"

    @property
    def journal(self) -> Path:
        return self.path / "journal.jsonl"

    @property
    def pid_file(self) -> Path:
        return self.path / "supervisor.pid"

    @property
    def lock(self) -> Path:
        return self.path / "supervisor.lock"

    @property
    def log(self) -> Path:
        return self.path / "supervisor.log"

    @property
    def keepalive(self) -> Path:
        return self.path / "keepalive"

    @property
    def beat(self) -> Path:
        return self.path / "beat"

    @property
    def dropped(self) -> Path:
        return self.path / "dropped.json"

    @property
    def measure_now(self) -> Path:
        """Exists if the trials of the step should not wait for quiet hosts."""
        return self.path / "measure_now"

    @property
    def tls(self) -> Path:
        """The job's certificates."""
        return self.path.parent / TLS

    def build_log(self, build: str) -> Path:
        return self.path / f"build-{check_id(build)}.log"

    def trial(self, trial: str) -> Path:
        return self.path / "trials" / check_id(trial)


def list_steps(root: Path) -> list[StepDir]:
    """Return every step below the work directory, sorted by job and step."""
    paths = [path for path in sorted(root.glob("jobs/*/*/")) if path.name != TLS]
    return [StepDir(root, *names) for names in map(_get_names, paths) if all(map(_ID.match, names))]


def _get_names(path: Path) -> tuple[str, str]:
    return path.parent.name, path.name


def build_dir(root: Path, tree: str) -> Path:
    """Return the folder of a build that a plan names `builds/<id>` or `builds/<id>/tree`."""
    path = resolve_below(root, tree)
    return path.parent if path.name == "tree" else path


def get_tree_dir(root: Path, tree: str) -> Path:
    """Return the checked-out commit in the build folder: the folder of servers and build steps."""
    return build_dir(root, tree) / "tree"


def install_dir(root: Path, name: str) -> Path:
    return root / "installs" / check_id(name)


def data_dir(root: Path, name: str) -> Path:
    return root / DATA / check_id(name)


def read_install_name(root: Path, tree: str) -> Optional[str]:
    """Return the name of the install of a tree of the plan; None without one."""
    with contextlib.suppress(FileNotFoundError):
        return (build_dir(root, tree) / NOTE).read_text("ascii").strip() or None
    return None


def build_stdout_path(out: Path) -> Path:
    """Return the stdout of a load tool, next to its report: `tool-2.stdout` for `tool-2.json`."""
    return out.with_suffix(".stdout")


def get_host_lock(root: Path) -> Path:
    """Return the lock of the supervisor that works below this directory; it contains the step."""
    return root / "host.lock"


def get_repository(root: Path, project: str) -> Path:
    return root / "repositories" / f"{check_id(project)}.git"


def get_bundle_file(root: Path, name: str) -> Path:
    return root / "bundles" / f"{check_id(name)}.bundle"
