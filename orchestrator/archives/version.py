"""The version of this Pitwall, for exported files."""

import tomllib
from pathlib import Path

from django.conf import settings


def read_pitwall_version() -> str:
    """Return the version; `unknown` if the code was installed without its pyproject.toml."""
    try:
        text = (Path(settings.BASE_DIR) / "pyproject.toml").read_text()
    except OSError:
        return "unknown"
    return str(tomllib.loads(text)["project"]["version"])
