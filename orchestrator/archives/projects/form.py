"""The form of an exported project: a zip of JSON Lines and of the binary values of their rows.

`manifest.json` names every member with its rows, bytes and SHA-256; docs/backup.md describes it.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from cli.pitwall.units import format_bytes, format_count
from orchestrator.archives.projects.kinds import BY_NAME, OF_PROJECT
from orchestrator.core.errors import InvalidRequestError
from orchestrator.core.ids import hash_value

FORMAT = "pitwall project"
VERSION = 1
MANIFEST = "manifest.json"
#: The most that an import reads.
MOST_BYTES = 64 * 2**30
MOST_ROWS = 100_000_000
MOST_LINE = 64 * 2**20
MOST_MANIFEST = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One file of the zip. For binary values, `rows` is their number."""

    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """`excluded_runs`: runs that had not ended."""

    pitwall: str
    made_at: str
    project: Mapping[str, Any]
    members: Mapping[str, Member]
    excluded_runs: int

    @property
    def digest(self) -> str:
        """The digest of the content, whenever it was exported."""
        digests = {name: member.sha256 for name, member in self.members.items()}
        return hash_value([dict(self.project), digests])

    @property
    def rows(self) -> int:
        return sum(self.members[f"{kind}.jsonl"].rows for kind in BY_NAME)

    def text(self) -> str:
        return json.dumps({"format": FORMAT, "version": VERSION, **asdict(self)}, indent=2)


def read_manifest(text: bytes, names: list[str]) -> Manifest:
    """Return the manifest.

    Raise InvalidRequestError for another form, too large contents, or other members.
    """
    try:
        content = json.loads(text)
        form, version = content.pop("format"), content.pop("version")
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise InvalidRequestError(
            f"{MANIFEST} is damaged: this is not an exported project"
        ) from error
    if form != FORMAT:
        raise InvalidRequestError("this is not an exported project")
    if version != VERSION:
        raise InvalidRequestError(
            f"it has format version {version}, and this Pitwall reads version {VERSION}: import it "
            "with a newer Pitwall"
        )
    try:
        members = {name: Member(**each) for name, each in content.pop("members").items()}
        manifest = Manifest(**content, members=members)
    except (AttributeError, KeyError, TypeError) as error:
        raise InvalidRequestError(f"{MANIFEST} is damaged: {error}") from error
    _check(manifest, names)
    return manifest


def _check(manifest: Manifest, names: list[str]) -> None:
    """Refuse unknown and repeated members: no name is ever used as a path."""
    allowed = {f"{kind}.{end}" for kind in BY_NAME for end in ("jsonl", "bin")}
    if odd := {*manifest.members} - allowed:
        raise InvalidRequestError(f"{MANIFEST} names an unknown member: {sorted(odd)[0]!r}")
    if sorted(names) != sorted([MANIFEST, *manifest.members]):
        raise InvalidRequestError(f"the archive has other files than {MANIFEST} names")
    if missing := {f"{kind}.jsonl" for kind in BY_NAME} - {*manifest.members}:
        raise InvalidRequestError(f"the archive has no {sorted(missing)[0]}")
    if {*manifest.project} != {*OF_PROJECT}:
        raise InvalidRequestError(f"{MANIFEST} does not have exactly the fields of a project")
    numbers = [n for each in manifest.members.values() for n in (each.rows, each.bytes)]
    if not all(type(number) is int and number >= 0 for number in numbers):
        raise InvalidRequestError(f"{MANIFEST} has an invalid number of rows or bytes")
    size = sum(each.bytes for each in manifest.members.values())
    if size > MOST_BYTES or manifest.rows > MOST_ROWS:
        raise InvalidRequestError(
            f"it is too large: {format_bytes(size)} and {format_count(manifest.rows)} rows, of at "
            f"most {format_bytes(MOST_BYTES)} and {format_count(MOST_ROWS)}"
        )
