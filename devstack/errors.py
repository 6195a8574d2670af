"""Errors that end a command with a message instead of a traceback."""

from __future__ import annotations


class DevstackError(Exception):
    """A problem that the user has to fix; the text says which."""
