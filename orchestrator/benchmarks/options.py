"""Changes of a definition by a value of an axis, and required programs. No Django."""

import re
from collections.abc import Mapping
from typing import Annotated, Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version
from pydantic import AfterValidator, Field

from orchestrator.benchmarks.fields import Name, Scalar, Strict

#: The name on the host: `python3.11`, `go`, `redis-server`.
Program = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9._+-]{0,39}$")]
_RELEASE = re.compile(r"\d+(?:\.\d+)*")


def _check_versions(text: str) -> str:
    """Validate `*`, or comparisons such as `>=3.11,<4`."""
    if text != "*":
        try:
            SpecifierSet(text)
        except InvalidSpecifier:
            raise ValueError(f"expected * or versions such as >=3.11,<4, got {text!r}") from None
    return text


#: Program → accepted versions.
Requires = Annotated[
    dict[Program, Annotated[str, Field(max_length=100), AfterValidator(_check_versions)]],
    Field(max_length=20),
]


class Option(Strict):
    """The changes for one value of an axis, which override the definition.

    Mappings are merged, all else is replaced. `labels` are shown in separate columns of reports.
    `unsupported` keeps a value in the matrix that can no longer be measured, with the reason;
    `replacement` is the value that replaced it.
    """

    labels: Annotated[dict[Name, Annotated[str, Field(max_length=200)]], Field(max_length=20)] = {}
    requires: Requires = {}
    unsupported: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    replacement: Scalar | None = None
    subject: dict[str, Any] = {}
    services: dict[str, Any] = {}
    load: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    network: dict[str, Any] = {}
    checks: list[dict[str, Any]] | None = None
    prepare: list[dict[str, Any]] | None = None

    def changes(self) -> dict[str, Any]:
        """Return the parts of a definition that it changes."""
        parts: dict[str, Any] = {
            "subject": self.subject,
            "services": self.services,
            "load": self.load,
            "limits": self.limits,
            "network": self.network,
        }
        changed = {name: part for name, part in parts.items() if part}
        for name, items in (("checks", self.checks), ("prepare", self.prepare)):
            if items is not None:
                changed[name] = items
        return changed


#: Axis → shown value → its changes.
Options = dict[Name, dict[Annotated[str, Field(max_length=200)], Option]]


def merge_changes(data: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return `data` with `changes` applied: mappings are merged by key, other values replaced."""
    result = dict(data)
    for key, value in changes.items():
        old = result.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            value = merge_changes(old, value)
        result[key] = value
    return result


def find_version_problem(version: str | None, wanted: str) -> str:
    """Return the reason why a program of this version is not accepted; empty if it is.

    `wanted` is a value of Requires. Letters after a version's numbers (1.1.1w) are ignored.
    """
    if wanted == "*":
        return ""
    match = _RELEASE.match(version or "")
    if match is None:
        return f"reports no version, but {wanted} is required"
    try:
        fits = SpecifierSet(wanted).contains(Version(match.group()), prereleases=True)
    except InvalidVersion:
        fits = False
    return "" if fits else f"is {version}, but {wanted} is required"
