"""Messages of errors as sentences.

The message of an error begins in lower case and has no full stop, because other messages contain
it: `.pitwall.yaml at 1f8bf8b805: load.rate: expected a number`. A page shows it as a sentence.
"""

import re
from collections.abc import Iterable

from orchestrator.loadtools.registry import TOOLS

#: A plain word at the beginning; a path, a name with digits and a load tool keep their spelling.
_FIRST_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?(?=[ ,]|$)")
_ENDINGS = (".", "!", "?", "…", ":")


def build_sentence(message: str) -> str:
    """Return a message with a capital letter and a full stop; the end of several lines stays."""
    text = str(message).strip()
    first = _FIRST_WORD.match(text)
    if first is not None and first[0] not in TOOLS:
        text = f"{text[0].upper()}{text[1:]}"
    return text if not text or "\n" in text or text.endswith(_ENDINGS) else f"{text}."


def join_sentences(messages: Iterable[str]) -> str:
    """Return all messages as sentences, one after the other."""
    return " ".join(build_sentence(each) for each in messages)
