"""Text of servers and measured code, made safe for a terminal."""

from __future__ import annotations

import re
import unicodedata

#: Escape sequences: CSI, the strings OSC, DCS, SOS, PM and APC, and those of two characters.
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]"
)
_KEPT = "\n\t"
#: Control characters, and those that change the direction of text or are invisible.
_CONTROLS = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})


def clean_text(text: str) -> str:
    """Return the text as a terminal would show it, without escapes and control characters."""
    plain = _ESCAPES.sub("", text.replace("\r\n", "\n"))
    lines = (line.rstrip("\r").rpartition("\r")[2] for line in plain.split("\n"))
    return "".join(each for each in "\n".join(lines) if _is_printed(each))


def cut_tail(text: str, *, lines: int, characters: int) -> str:
    """Return the last lines of a text, at most so many and with so many characters together."""
    kept = "\n".join(text.strip("\n").split("\n")[-lines:])
    return kept if len(kept) <= characters else f"…{kept[1 - characters :]}"


def _is_printed(character: str) -> bool:
    return character in _KEPT or unicodedata.category(character) not in _CONTROLS
