"""What ends a command of this package with a message instead of a trace."""

from __future__ import annotations


class DevstackError(Exception):
    """Something that the person at the keyboard has to change; the text says what."""
