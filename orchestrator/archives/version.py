"""Which Pitwall this is, as files that leave it say."""

import tomllib
from pathlib import Path

from django.conf import settings


def pitwall_version() -> str:
    """`unknown` where the code was installed without its pyproject.toml."""
    try:
        text = (Path(settings.BASE_DIR) / "pyproject.toml").read_text()
    except OSError:
        return "unknown"
    return str(tomllib.loads(text)["project"]["version"])
