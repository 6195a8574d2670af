"""The terms of the glossary, for help next to the words of a page."""

import re
from collections.abc import Iterator, Mapping
from functools import cache

from orchestrator.web.help.documents import GLOSSARY, load_text

_ROW = re.compile(r"^\| \*\*(?P<term>[^*|]+)\*\* \| (?P<meaning>.+) \|$", re.MULTILINE)
_BOLD = re.compile(r"\*\*([^*]+)\*\*")


@cache
def load_terms() -> Mapping[str, str]:
    """Map each term to its meaning. A term that the meaning of another one defines shares it."""
    return dict(_read_terms(load_text(GLOSSARY)))


def _read_terms(text: str) -> Iterator[tuple[str, str]]:
    for row in _ROW.finditer(text):
        meaning = re.sub(r"\*\*?|`", "", row["meaning"])
        for term in (*_BOLD.findall(row["meaning"]), row["term"]):
            yield term, meaning
