"""Test files mirror the packages, and each test name has a subject."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
#: Tests that cross packages.
KINDS = {"browser", "chaos", "deployment", "docs", "engine", "fuzz", "security"}


def list_folders(package: str) -> set[str]:
    return {each.parent.name for each in (ROOT / package).glob("*/__init__.py")}


def folders_with_tests(folder: str = "") -> set[str]:
    """Folders directly below a folder of tests that hold a test file at any depth."""
    below = TESTS / folder
    files = [path.relative_to(below) for path in below.rglob("test_*.py")]
    return {path.parts[0] for path in files if len(path.parts) > 1}


def test_folders_of_tests_are_packages_or_known_kinds() -> None:
    others = {"agents", "cli", "devstack", "perf"}
    assert folders_with_tests() - KINDS <= list_folders("orchestrator") | others
    assert folders_with_tests("web") <= list_folders("orchestrator/web")
    assert folders_with_tests("agents") <= list_folders("agents/hostagent") | {"suites"}
    assert folders_with_tests("devstack") <= list_folders("devstack")
    assert folders_with_tests("perf") <= list_folders("perf")


def test_no_test_name_begins_with_a_pronoun() -> None:
    pronoun = re.compile(r"def (test_(?:it|its|he|she|they|their)_\w+)")
    violations = {
        str(path.relative_to(ROOT)): names
        for path in TESTS.rglob("test_*.py")
        if (names := pronoun.findall(path.read_text()))
    }
    assert violations == {}
