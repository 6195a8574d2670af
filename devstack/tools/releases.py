"""Releases of oha whose SHA-256 is known from another source than the download."""

from __future__ import annotations

import json
import platform
import urllib.error
import urllib.request
from pathlib import Path

from devstack.tools.cache import compute_digest, keep, open_staging
from devstack.tools.messages import print_message
from devstack.tools.supplies import Supply, ToolError

RELEASES = Path(__file__).with_name("oha_releases.json")
TIMEOUT_S = 60
LIMIT_BYTES = 200_000_000


def download_release(supply: Supply) -> Path | None:
    """Return the release for this platform, or None if no digest is known or the download fails."""
    release = _select_for_platform()
    if release is None:
        return None
    print_message(f"downloading {supply.name} {release['version']} from {release['url']}")
    with open_staging(supply) as folder:
        target = Path(folder) / supply.name
        try:
            _fetch(release["url"], target)
        except (OSError, urllib.error.URLError) as error:
            print_message(f"the download failed ({error}); building {supply.name} instead")
            return None
        if compute_digest(target) != release["sha256"]:
            raise ToolError(
                f"{release['url']} does not have the SHA-256 that devstack/tools/{RELEASES.name} "
                "names. Nothing of it was run. Try again, or build: cargo install oha."
            )
        return keep(supply, target)


def _select_for_platform() -> dict[str, str] | None:
    releases: dict[str, dict[str, str]] = json.loads(RELEASES.read_text())["releases"]
    return releases.get(f"{platform.system()}-{platform.machine()}")


def _fetch(url: str, target: Path) -> None:
    with urllib.request.urlopen(url, timeout=TIMEOUT_S) as reply, target.open("wb") as out:
        left = LIMIT_BYTES
        while chunk := reply.read(1 << 20):
            left -= len(chunk)
            if left < 0:
                raise OSError(f"more than {LIMIT_BYTES} bytes")
            out.write(chunk)
