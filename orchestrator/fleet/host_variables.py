"""Environment variables of a host, such as those of a proxy. They are shown, so no secrets.

PATH is special: its folders come before those of the login, for all programs on the host.
"""

import re
from collections.abc import Mapping, Sequence

from orchestrator.core.errors import InvalidRequestError

MOST_VARIABLES = 50
MOST_CHARACTERS = 4000
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
#: The agent sets these.
_RESERVED = frozenset({"HOME", "TMPDIR"})
_FOLDERS = "PATH"
MOST_FOLDERS = 20
#: Plain, because the folders are arguments of the agent.
_FOLDER = re.compile(r"(?:/(?!\.\.?(?:/|$))[A-Za-z0-9._+@-]+)+")
_RESERVED_PREFIX = "PITWALL_"


def check_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables in the order of their names, or raise an error with all faults."""
    faults = [
        (f"env.{name}"[:200], fault)
        for name, value in variables.items()
        if (fault := _find_fault(name, value))
    ]
    if len(variables) > MOST_VARIABLES:
        faults.append(("env", f"at most {MOST_VARIABLES} variables, got {len(variables)}"))
    if faults:
        message = "; ".join(f"{field.removeprefix('env.')}: {fault}" for field, fault in faults)
        raise InvalidRequestError(message[:2000], field="env", faults=faults)
    return dict(sorted(variables.items()))


def parse_variables(text: str) -> dict[str, str]:
    """Parse lines such as `http_proxy=http://proxy:3128`; the last one of a name counts."""
    variables = {}
    for number, line in enumerate(text.splitlines(), start=1):
        name, equals, value = line.strip().partition("=")
        if not equals and name:
            raise InvalidRequestError(
                f"line {number}: expected NAME=value, got {line.strip()[:100]!r}", field="env"
            )
        if name:
            variables[name] = value
    return variables


def list_folders(variables: Mapping[str, str]) -> list[str]:
    """Return the folders that come first on the PATH of all programs of the host."""
    return variables[_FOLDERS].split(":") if _FOLDERS in variables else []


def select_plain_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that processes get unchanged."""
    return {name: value for name, value in variables.items() if name != _FOLDERS}


def format_variables(variables: Mapping[str, str]) -> str:
    return "\n".join(f"{name}={value}" for name, value in variables.items())


def _find_fault(name: str, value: str) -> str:
    if not _NAME.fullmatch(name):
        return "expected a name of letters, digits and underscores"
    if name in _RESERVED or name.startswith(_RESERVED_PREFIX):
        return "Pitwall sets this variable; choose another name"
    if name == _FOLDERS:
        return _find_fault_of_folders(value.split(":"))
    if len(value) > MOST_CHARACTERS or not value.isprintable():
        return f"expected one line of at most {MOST_CHARACTERS} characters"
    return ""


def _find_fault_of_folders(folders: Sequence[str]) -> str:
    if len(folders) > MOST_FOLDERS:
        return f"at most {MOST_FOLDERS} folders, got {len(folders)}"
    wrong = next((each for each in folders if not _FOLDER.fullmatch(each)), None)
    if wrong is None:
        return ""
    return (
        "expected folders such as /opt/node/bin, separated by colons, that come before those of "
        f"the login; got {wrong[:60]!r}"
    )
