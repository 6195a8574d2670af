"""What a value of an axis changes in a definition, and what a case needs of its host. No Django."""

import re
from collections.abc import Mapping
from typing import Annotated, Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version
from pydantic import AfterValidator, Field

from orchestrator.benchmarks.fields import Name, Scalar, Strict

#: As it is called on the host: `python3.11`, `go`, `redis-server`.
Program = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9._+-]{0,39}$")]
_RELEASE = re.compile(r"\d+(?:\.\d+)*")


def _versions(text: str) -> str:
    """`*`, or comparisons such as `>=3.11,<4`."""
    if text != "*":
        try:
            SpecifierSet(text)
        except InvalidSpecifier:
            raise ValueError(f"expected * or versions such as >=3.11,<4, got {text!r}") from None
    return text


#: For each program the versions that will do.
Requires = Annotated[
    dict[Program, Annotated[str, Field(max_length=100), AfterValidator(_versions)]],
    Field(max_length=20),
]


class Option(Strict):
    """One value of an axis: what is said here takes the place of what the definition says.

    Mappings are merged, anything else is replaced. `labels` are what reports show of the value in
    columns of their own. `unsupported` keeps a value in the matrix that cannot be measured any
    more, with the reason; `replacement` is the value that took its place.
    """

    labels: Annotated[dict[Name, Annotated[str, Field(max_length=200)]], Field(max_length=20)] = {}
    requires: Requires = {}
    unsupported: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    replacement: Scalar | None = None
    subject: dict[str, Any] = {}
    services: dict[str, Any] = {}
    load: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    checks: list[dict[str, Any]] | None = None

    def changes(self) -> dict[str, Any]:
        """The parts of a definition that it changes."""
        told: dict[str, Any] = {
            "subject": self.subject,
            "services": self.services,
            "load": self.load,
            "limits": self.limits,
        }
        changed = {name: part for name, part in told.items() if part}
        if self.checks is not None:
            changed["checks"] = self.checks
        return changed


#: Axis → shown value → what it changes.
Options = dict[Name, dict[Annotated[str, Field(max_length=200)], Option]]


def merged(data: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`data` with `changes` in it: mappings key by key, anything else as a whole."""
    result = dict(data)
    for key, value in changes.items():
        old = result.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            value = merged(old, value)
        result[key] = value
    return result


def why_unfit(version: str | None, wanted: str) -> str:
    """What is wrong with a program of this version; empty where it will do.

    `wanted` is a value of Requires. Letters after a version's numbers (1.1.1w) do not count.
    """
    if wanted == "*":
        return ""
    found = _RELEASE.match(version or "")
    if found is None:
        return f"tells no version, and {wanted} is needed"
    try:
        fits = SpecifierSet(wanted).contains(Version(found.group()), prereleases=True)
    except InvalidVersion:
        fits = False
    return "" if fits else f"is {version}, and {wanted} is needed"
