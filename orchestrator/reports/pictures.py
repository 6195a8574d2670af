"""Pictures in the Markdown of a report. Pure."""

import re

_PICTURE = re.compile(r"^!\[.*\]\(.+\)$\n*", re.MULTILINE)


def take_first_picture(text: str) -> tuple[str, str]:
    """Return the first picture of a document and the document without it; empty if it has none."""
    found = _PICTURE.search(text)
    if found is None:
        return "", text
    return found[0].strip(), text[: found.start()] + text[found.end() :]
