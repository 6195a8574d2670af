"""The HTML of responses as a tree: tests look for elements and their text, not for markup."""

from functools import lru_cache
from typing import Any

from bs4 import BeautifulSoup, Tag


def parse_html(page: Any) -> Tag:
    """`page`: a response, its content, or what this function returned."""
    if isinstance(page, Tag):
        return page
    content = getattr(page, "content", page)
    return _parse(content.decode() if isinstance(content, bytes) else content)


@lru_cache(maxsize=4)
def _parse(text: str) -> Tag:
    """Cached, because most tests look for several elements of a page."""
    # This parser adds and moves no element; a part for htmx may begin with the row of a table.
    return BeautifulSoup(text, "html.parser")


def elements(page: Any, selector: str) -> list[Tag]:
    """All elements that the CSS selector matches, in document order."""
    return list(parse_html(page).select(selector))


def element(page: Any, selector: str) -> Tag:
    """The only element that the CSS selector matches."""
    matches = elements(page, selector)
    assert len(matches) == 1, f"{len(matches)} elements match {selector}"
    return matches[0]


def values(page: Any, selector: str, attribute: str = "value") -> list[str]:
    """An attribute of the elements that the CSS selector matches and that have it."""
    return [str(each[attribute]) for each in elements(page, selector) if each.has_attr(attribute)]


def get_text(page: Any) -> str:
    """The visible text, with single spaces between words and elements."""
    return " ".join(parse_html(page).get_text(" ").split())


def field_error(page: Any, field: str) -> str:
    """The error at a field of a form; empty if there is none."""
    return get_text(element(page, f"#id_{field}_error"))


def shown_secret(page: Any) -> str:
    """The secret that a page shows once."""
    return get_text(element(page, "pre.secret"))


def csrf_token(page: Any) -> str:
    """The token of the forms of a page."""
    return values(page, "input[name=csrfmiddlewaretoken]")[0]
