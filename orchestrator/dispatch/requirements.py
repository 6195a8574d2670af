"""The requirements of a definition on the programs of a host, checked against its facts. No
Django."""

import posixpath
from collections.abc import Mapping
from typing import Any

from orchestrator.benchmarks.options import find_version_problem
from orchestrator.fleet.programs import find_program

#: Programs in such a folder start a version that is configured elsewhere.
SHIMS = "shims"
Facts = Mapping[str, Any]
Required = Mapping[str, str]


def explain_missing_programs(facts: Facts, requires: Required) -> str:
    """Return what the host lacks; empty if it has everything."""
    return "; ".join(
        text for name, wanted in requires.items() if (text := _explain_program(facts, name, wanted))
    )


def build_path(facts: Facts, requires: Required) -> list[str]:
    """Return the folders that must come first on PATH: those of the host's settings, and those of
    these programs that a shell does not find.
    """
    return list(dict.fromkeys([*(facts.get("path_folders") or ()), *_list_hidden(facts, requires)]))


def _list_hidden(facts: Facts, requires: Required) -> list[str]:
    programs = [each for name in requires if (each := find_program(facts, name)) is not None]
    beyond = [_get_folder(each) for each in programs if each.get("beyond_path")]
    if not beyond:
        return []
    usual = [_get_folder(each) for each in programs if not each.get("beyond_path")]
    # A version manager may hide programs that are on the PATH.
    kept = [folder for folder in usual if posixpath.basename(folder) != SHIMS]
    return [*kept, *beyond]


def _explain_program(facts: Facts, name: str, wanted: str) -> str:
    program = find_program(facts, name)
    if program is None:
        return f"it has no {name}" + ("" if wanted == "*" else f" ({wanted} is needed)")
    unfit = find_version_problem(program.get("version"), wanted)
    return unfit and f"its {name} {unfit}"


def _get_folder(program: Mapping[str, Any]) -> str:
    return str(program["path"]).replace("\\", "/").rpartition("/")[0] or "/"
