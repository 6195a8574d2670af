"""The text of a page as a reader sees it."""

import re


def text_in(html: str) -> str:
    """Return the text between all tags, with single spaces."""
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())
