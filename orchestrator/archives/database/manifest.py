"""The manifest of a backup: a zip contains `manifest.json` next to `database.dump`."""

import json
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from orchestrator.core.errors import InvalidRequestError

FORMAT = "pitwall backup"
VERSION = 1
MANIFEST = "manifest.json"
DUMP = "database.dump"
_MOST_BYTES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """`tables`: schema.table → rows. `migrations`: the applied ones, as `app.name`.

    `sealing_keys`: ids of the keys that seal its secrets; the keys themselves are not in it.
    """

    pitwall: str
    postgresql: str
    made_at: str
    migrations: tuple[str, ...]
    tables: Mapping[str, int]
    sealing_keys: tuple[str, ...]
    dump_bytes: int
    dump_sha256: str

    @property
    def rows(self) -> int:
        return sum(self.tables.values())

    def text(self) -> str:
        return json.dumps({"format": FORMAT, "version": VERSION, **asdict(self)}, indent=2)


def read_manifest(path: Path) -> Manifest:
    """Return the manifest. Raise InvalidRequestError for another file or an unknown version."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open(MANIFEST) as member:
            content = json.loads(member.read(_MOST_BYTES))
            archive.getinfo(DUMP)
    except OSError as error:
        raise InvalidRequestError(f"{path} cannot be read: {error.strerror}") from error
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise InvalidRequestError(
            f"{path} is not a backup of Pitwall, or is truncated: it has no {MANIFEST} and {DUMP}"
        ) from error
    return _parse_manifest(path, content)


def _parse_manifest(path: Path, content: Any) -> Manifest:
    if not isinstance(content, dict) or content.pop("format", None) != FORMAT:
        raise InvalidRequestError(f"{path} is not a backup of Pitwall")
    version = content.pop("version", None)
    if version != VERSION:
        raise InvalidRequestError(
            f"{path} is a backup of format version {version}, and this Pitwall reads version "
            f"{VERSION}; restore it with the Pitwall that created it, or a newer one"
        )
    try:
        lists: dict[str, Any] = {
            name: tuple(content.pop(name)) for name in ("migrations", "sealing_keys")
        }
        tables = {str(name): int(rows) for name, rows in content.pop("tables").items()}
        return Manifest(**content, **lists, tables=tables)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidRequestError(f"{path}: {MANIFEST} is damaged: {error}") from error
