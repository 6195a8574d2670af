"""Steps that would install one commit for all of them are refused before they run."""

import json
import shlex

import pytest

from orchestrator.benchmarks.load_specs import check_loads
from orchestrator.benchmarks.spec import Install, Spec, parse
from orchestrator.core.errors import InvalidRequestError
from tests.support.factories import DEFINITION

VENV_PIP = "{installed}/bin/pip install"


def a_spec(**subject: object) -> Spec:
    spec = parse(DEFINITION)
    return spec.model_copy(update={"subject": spec.subject.model_copy(update=subject)})


def with_install(step: str, *files: str, **subject: object) -> Spec:
    install = Install.model_validate({"steps": [shlex.split(step)], "files": list(files)})
    return a_spec(install=install, **subject)


@pytest.mark.parametrize(
    ("step", "missing"),
    [
        (f"{VENV_PIP} .", "pyproject.toml or setup.py"),
        (f"{VENV_PIP} -e .", "pyproject.toml or setup.py"),
        (f"{VENV_PIP} --editable=.", "pyproject.toml or setup.py"),
        (f"{VENV_PIP} -r requirements.txt --no-deps '.[server]'", "pyproject.toml or setup.py"),
        (f"{VENV_PIP} {{tree}}/server", "server/pyproject.toml or server/setup.py"),
        ("{installed}/bin/python -m pip -q install ./server", "server/pyproject.toml"),
        ("{python} -m pip install --target {installed} .", "pyproject.toml or setup.py"),
        ("cargo install --locked --root {installed} --path .", "name Cargo.toml:"),
        ("cargo +stable install --root={installed} --path=server", "name server/Cargo.toml:"),
    ],
)
def test_an_install_step_that_reads_unnamed_source_is_refused(step: str, missing: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        check_loads(with_install(step, "requirements.txt"))
    message = str(refused.value)
    assert message.startswith("for ")
    assert "subject.install.steps[0]: it reads the source of the commit" in message
    assert missing in message
    assert "'.' for the whole commit" in message
    assert "subject.build" in message


@pytest.mark.parametrize(
    ("step", "files"),
    [
        (f"{VENV_PIP} .", ["."]),
        (f"{VENV_PIP} .", ["pyproject.toml", "src"]),
        (f"{VENV_PIP} ./server", ["server"]),
        (f"{VENV_PIP} ./libs/server", ["libs"]),
        (f"{VENV_PIP} -r ./requirements.txt", ["requirements.txt"]),
        (f"{VENV_PIP} -r requirements.txt", ["requirements.txt"]),
        (f"{VENV_PIP} --find-links . hello", ["wheels"]),
        (f"{VENV_PIP} ./wheels/hello-1-py3-none-any.whl", ["wheels"]),
        ("cargo install --root {installed} --path .", ["Cargo.toml", "Cargo.lock", "src"]),
        ("cargo install --root {installed} ripgrep", []),
        ("cargo build --release --target-dir {installed}", ["Cargo.toml", "src"]),
        ("npm ci --prefix {installed}", ["package-lock.json"]),
    ],
)
def test_an_install_step_may_read_what_its_files_name(step: str, files: list[str]) -> None:
    check_loads(with_install(step, *files))


@pytest.mark.parametrize(
    "step",
    [
        "pip install .",
        "python3 -m pip install --no-deps .",
        "{python} -m pip install -e .",
        "cargo install --path .",
    ],
)
def test_a_step_that_installs_the_commit_for_the_machine_is_refused(step: str) -> None:
    for spec, where in (
        (with_install(step, "."), "subject.install.steps[0]"),
        (a_spec(build=[shlex.split(step)]), "subject.build[0]"),
    ):
        with pytest.raises(InvalidRequestError, match="for the whole machine") as refused:
            check_loads(spec)
        assert where in str(refused.value)
        assert "{tree}" in str(refused.value)


def test_a_build_step_that_installs_the_commit_into_the_shared_install_is_refused() -> None:
    step = [*VENV_PIP.split(), "."]
    install = Install(steps=[["{python}", "-m", "venv", "{installed}"]])
    with pytest.raises(InvalidRequestError, match=r"subject\.build\[0\]: .*\{installed\}"):
        check_loads(a_spec(install=install, build=[step]))


@pytest.mark.parametrize(
    ("step", "env"),
    [
        ("pip install --target {tree}/packages .", {}),
        ("venv/bin/pip install .", {}),
        ("{tree}/venv/bin/python -m pip install -e .", {}),
        ("pip install .", {"VIRTUAL_ENV": "{tree}/venv"}),
        ("pip install -r requirements.txt", {}),
        ("cargo install --path . --root {tree}/out", {}),
        ("cargo install --path .", {"CARGO_INSTALL_ROOT": "{tree}/out"}),
    ],
)
def test_a_build_step_may_install_the_commit_below_its_tree(step: str, env: dict[str, str]) -> None:
    check_loads(a_spec(build=[shlex.split(step)], env=env))


def test_the_whole_commit_is_a_valid_file_and_other_dots_are_not() -> None:
    for files, valid in ((["."], True), (["./a"], False), (["../a"], False), (["a/."], False)):
        source = DEFINITION.replace(
            "subject:",
            f"subject:\n  install: {{files: {json.dumps(files)}, steps: [[make]]}}",
            1,
        )
        if valid:
            install = parse(source).subject.install
            assert install is not None
            assert install.files == ["."]
        else:
            with pytest.raises(InvalidRequestError, match="plain paths of files and folders"):
                parse(source)
