"""The vendored files are the ones that VENDOR.md says: what is served, and what only tests use."""

from pathlib import Path

import pytest
from django.conf import settings

from orchestrator.core.ids import sha256_hex

FOLDERS = [Path(settings.BASE_DIR) / name for name in ("static/vendor", "tests/browser/vendor")]


def _rows(folder: Path) -> dict[str, list[str]]:
    """File → package, version, licence, SHA-256."""
    lines = (folder / "VENDOR.md").read_text().splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "|" in line]
    return {row[0]: row[1:] for row in cells[2:]}


@pytest.mark.parametrize("folder", FOLDERS, ids=str)
def test_every_vendored_file_is_listed(folder: Path) -> None:
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}

    assert set(_rows(folder)) == files - {"VENDOR.md"}


@pytest.mark.parametrize(
    ("folder", "name"), [(folder, name) for folder in FOLDERS for name in sorted(_rows(folder))]
)
def test_vendored_files_have_the_recorded_hashes(folder: Path, name: str) -> None:
    package, version, licence, digest = _rows(folder)[name]

    assert package
    assert version
    assert licence
    assert sha256_hex((folder / name).read_bytes()) == digest
