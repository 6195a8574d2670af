"""Find install and build steps that would install one commit for all of them. No Django.

Only well-known commands that install a package from a folder of the commit are found here. The
agent prevents the same for any command (agents/hostagent/builds/installs.py), but on the host, and
after the definition was saved.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from orchestrator.benchmarks.spec import Spec

_PIP = re.compile(r"pip(3(\.\d+)?)?\Z")
_PYTHON = re.compile(r"(python|pypy)(\d(\.\d+)?)?\Z|\{python\}\Z")
#: Options of pip without a value: the next word is a package.
_PIP_FLAGS = frozenset(
    (
        "--", "-e", "--editable", "-U", "--upgrade", "-q", "--quiet", "-v", "--verbose", "-I",
        "--no-deps", "--no-index", "--no-build-isolation", "--no-cache-dir", "--no-input",
        "--no-compile", "--pre", "--user", "--require-hashes", "--use-pep517", "--force-reinstall",
        "--ignore-installed", "--break-system-packages", "--disable-pip-version-check",
        "--root-user-action=ignore",
    )
)  # fmt: skip
_PIP_PLACES = ("-t", "--target", "--prefix", "--root")
#: Variables that change where a command installs.
_PIP_VARIABLES = ("PATH", "VIRTUAL_ENV", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PYTHONUSERBASE")
_CARGO_VARIABLES = ("CARGO_INSTALL_ROOT", "CARGO_HOME")
_PYTHON_MANIFESTS = ("pyproject.toml", "setup.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalInstall:
    """A command that installs the packages in `folders` of the commit ("." is its top).

    `manifests`: a package has one of these files. `program`: the program as written. `place`: the
    command says where it installs. `variables` of the environment may say so instead.
    """

    folders: tuple[str, ...]
    manifests: tuple[str, ...]
    program: str
    place: bool
    fix: str
    variables: tuple[str, ...]


def find_local_install(command: Sequence[str]) -> LocalInstall | None:
    """Return what the command installs from the commit; None for anything else."""
    name = PurePosixPath(command[0]).name
    words = list(command[1:])
    if _PYTHON.match(name) and words[:2] == ["-m", "pip"]:
        return _read_pip(command[0], words[2:])
    if _PIP.match(name):
        return _read_pip(command[0], words)
    if name == "cargo":
        return _read_cargo(command[0], words)
    return None


def find_shared_sources(spec: Spec) -> Iterator[tuple[str, str]]:
    """Yield (path, problem) of each step that installs one commit for all of them."""
    install = spec.subject.install
    for place, command in enumerate(install.steps if install else ()):
        found = find_local_install(command)
        if found is None:
            continue
        where = f"subject.install.steps[{place}]"
        assert install is not None
        absent = [each for each in found.folders if not _is_named(each, found, install.files)]
        if absent:
            yield (
                where,
                f"it reads the source of the commit, but install.files does not name "
                f"{_name_manifest(absent[0], found)}: commits with the same files share one "
                "install. Name what it reads in install.files ('.' for the whole commit), or move "
                "the step to subject.build",
            )
        elif problem := _find_place_problem(found, spec, inside=True):
            yield where, problem
    for place, command in enumerate(spec.subject.build):
        found = find_local_install(command)
        if found is not None and (problem := _find_place_problem(found, spec, inside=False)):
            yield f"subject.build[{place}]", problem
    for place, step in enumerate(spec.prepare):
        found = find_local_install(step.run)
        if found is not None and (problem := _find_place_problem(found, spec, inside=False)):
            yield f"prepare[{place}].run", problem


def _is_named(folder: str, found: LocalInstall, files: Sequence[str]) -> bool:
    """Return whether the install's files contain the folder, or the manifest of its package."""
    path = PurePosixPath(folder)
    whole = {str(parent) for parent in (path, *path.parents)}
    return any(
        file in whole or file in {str(path / manifest) for manifest in found.manifests}
        for file in files
    )


def _name_manifest(folder: str, found: LocalInstall) -> str:
    return " or ".join(str(PurePosixPath(folder) / each) for each in found.manifests)


def _find_place_problem(found: LocalInstall, spec: Spec, *, inside: bool) -> str:
    """Return why the command installs to a place that commits share; empty if it does not.

    `inside`: it may write to {installed}.
    """
    if found.place or set(found.variables) & set(spec.subject.env):
        return ""
    if found.program.startswith("{installed}/"):
        if inside:
            return ""
        return (
            "it would change {installed}, which commits share: move the step to subject.install "
            f"and name the source in install.files, or add {found.fix}"
        )
    # A program of the commit, such as venv/bin/pip, installs next to itself.
    if found.manifests == _PYTHON_MANIFESTS and "/" in found.program:
        return ""
    return (
        "it installs the commit for the whole machine, so the last commit would replace the "
        f"others: add {found.fix}"
    )


def _read_pip(program: str, words: list[str]) -> LocalInstall | None:
    if "install" not in words or any(
        not each.startswith("-") for each in words[: words.index("install")]
    ):
        return None
    arguments = words[words.index("install") + 1 :]
    folders = []
    for before, word in zip(["--", *arguments], arguments, strict=False):
        text = word.removeprefix("--editable=")
        if text == word and before.startswith("-") and before not in _PIP_FLAGS:
            continue  # it may be the value of that option
        folder = _find_folder(text)
        if folder is not None:
            folders.append(folder)
    if not folders:
        return None
    return LocalInstall(
        folders=tuple(folders),
        manifests=_PYTHON_MANIFESTS,
        program=program,
        place=_has_option(arguments, _PIP_PLACES),
        fix="--target and a folder below {tree}, and that folder to PYTHONPATH",
        variables=_PIP_VARIABLES,
    )


def _read_cargo(program: str, words: list[str]) -> LocalInstall | None:
    rest = words[1:] if words and words[0].startswith("+") else words
    if rest[:1] != ["install"]:
        return None
    paths = [
        word.removeprefix("--path=") if word.startswith("--path=") else following
        for word, following in zip(rest, [*rest[1:], ""], strict=True)
        if word == "--path" or word.startswith("--path=")
    ]
    folders = [folder for folder in map(_normalise, paths) if folder is not None]
    if not folders:
        return None
    return LocalInstall(
        folders=tuple(folders),
        manifests=("Cargo.toml",),
        program=program,
        place=_has_option(rest, ("--root",)),
        fix="--root and a folder below {tree}",
        variables=_CARGO_VARIABLES,
    )


def _has_option(words: Sequence[str], names: Sequence[str]) -> bool:
    return any(word.partition("=")[0] in names for word in words)


def _find_folder(word: str) -> str | None:
    """Return the folder of the commit that a package of pip names; None for other packages."""
    text = re.sub(r"\[[^\]]*\]\Z", "", word)
    is_path = text in (".", "{tree}") or text.startswith(("./", "{tree}/"))
    is_file = text.endswith((".whl", ".tar.gz", ".zip", ".txt"))
    return _normalise(text) if is_path and not is_file else None


def _normalise(path: str) -> str | None:
    """Return the path relative to the top of the commit; None if it is not in the commit."""
    inside = re.sub(r"^\{tree\}(/|\Z)", "", path)
    if inside.startswith("/") or ".." in inside.split("/") or "{" in inside:
        return None
    return str(PurePosixPath(inside or "."))
