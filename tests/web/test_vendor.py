"""The vendored files are the ones that VENDOR.md says."""

from pathlib import Path

import pytest
from django.conf import settings

from orchestrator.core.ids import sha256_hex

FOLDER = Path(settings.BASE_DIR) / "static" / "vendor"


def _rows() -> dict[str, list[str]]:
    """File → package, version, licence, SHA-256."""
    lines = (FOLDER / "VENDOR.md").read_text().splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "|" in line]
    return {row[0]: row[1:] for row in cells[2:]}


def test_it_lists_every_file() -> None:
    files = {str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*") if path.is_file()}

    assert set(_rows()) == files - {"VENDOR.md"}


@pytest.mark.parametrize("name", sorted(_rows()))
def test_it_has_the_content_that_is_written_down(name: str) -> None:
    package, version, licence, digest = _rows()[name]

    assert package
    assert version
    assert licence
    assert sha256_hex((FOLDER / name).read_bytes()) == digest
