"""What a definition requires, held against what a host said it has."""

from typing import Any

import pytest

from orchestrator.dispatch.requirements import build_path, explain_missing_programs


def program(path: str, version: str | None = None, **more: Any) -> dict[str, Any]:
    return {"path": path, "version": version, "sha256": None, **more}


OLD = "/home/a/.pyenv/versions/3.7.16/bin"
FACTS = {
    "tools": {"nginx": program("/usr/sbin/nginx", "1.22.1"), "redis-server": None},
    "languages": {
        "python3": program("/usr/bin/python3", "3.11.2"),
        "python3.10": program("/home/a/.pyenv/shims/python3.10", "3.10.13"),
        "python3.7": program(f"{OLD}/python3.7", "3.7.16", beyond_path=True),
        "go": program("/usr/local/go/bin/go", "1.26.1", beyond_path=True),
        "cargo": None,
    },
    "programs": {"npm": None, "ghc": program("/usr/bin/ghc")},
}


@pytest.mark.parametrize(
    ("requires", "why"),
    [
        ({}, ""),
        ({"python3": ">=3.9", "nginx": "*", "go": ">=1.22"}, ""),
        ({"ghc": "*"}, ""),
        ({"cargo": "*"}, "it has no cargo"),
        ({"npm": ">=9"}, "it has no npm (>=9 is needed)"),
        ({"stack": "*"}, "it has no stack"),
        ({"python3": ">=3.12"}, "its python3 is 3.11.2, but >=3.12 is required"),
        ({"ghc": ">=9"}, "its ghc reports no version, but >=9 is required"),
        ({"go": ">=2", "bun": "*"}, "its go is 1.26.1, but >=2 is required; it has no bun"),
    ],
)
def test_missing_programs_of_a_host_are_reported(requires: dict[str, str], why: str) -> None:
    assert explain_missing_programs(FACTS, requires) == why


@pytest.mark.parametrize(
    ("names", "folders"),
    [
        ([], []),
        (["python3", "nginx"], []),
        (["go"], ["/usr/local/go/bin"]),
        (["go", "nginx"], ["/usr/sbin", "/usr/local/go/bin"]),
        # What a shell finds by the shortest name stays what it finds.
        (["python3.7", "python3"], ["/usr/bin", OLD]),
        (["python3.7", "python3.10"], [OLD]),
        (["missing"], []),
    ],
)
def test_folders_of_required_programs_come_first_on_the_path(
    names: list[str], folders: list[str]
) -> None:
    assert build_path(FACTS, dict.fromkeys(names, "*")) == folders
    facts = {**FACTS, "path_folders": ["/opt/node/bin"]}
    assert build_path(facts, dict.fromkeys(names, "*")) == ["/opt/node/bin", *folders]
