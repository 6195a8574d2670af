"""Where Chromium is, and how it is started so that it stays quiet."""

import os
import shutil

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


def find_chromium() -> str | None:
    """The path of a Chromium: PITWALL_TEST_CHROMIUM, else what is on the PATH; None if none is."""
    named = os.environ.get("PITWALL_TEST_CHROMIUM")
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return named or next((path for name in names if (path := shutil.which(name))), None)
