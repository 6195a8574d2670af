"""Convert Markdown to HTML for pages. HTML in the text is escaped, and script URLs are no links."""

from collections.abc import Sequence
from typing import Any

from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

#: Headings of a text inside a page are moved down by this many levels, below those of the page.
_DEEPER = 1


def as_html(text: str) -> SafeString:
    """Return the HTML without the title, since the page has one. Wide tables scroll."""
    tokens = parse(text)
    return _render_below(tokens[3:] if tokens and tokens[0].tag == "h1" else tokens, _DEEPER)


def as_section(text: str) -> SafeString:
    """Return the HTML of a text that is a part of a page; its highest headings are h2."""
    tokens = parse(text)
    levels = [int(token.tag[1:]) for token in tokens if token.type == "heading_open"]
    return _render_below(tokens, 2 - min(levels, default=2))


def _render_below(tokens: Sequence[Token], deeper: int) -> SafeString:
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1:]) + deeper)}"
    return render(tokens)


def parse(text: str, *, pictures: bool = False) -> list[Token]:
    """Return the parts of a text. The caller may change them before it renders them.

    `pictures` is for texts of this installation only: a page loads nothing from other hosts.
    """
    return (_WITH_PICTURES if pictures else _MARKDOWN).parse(text)


def render(tokens: Sequence[Token]) -> SafeString:
    for opening, inline, closing in zip(tokens, tokens[1:], tokens[2:], strict=False):
        # A column without a title has no header.
        if opening.type == "th_open" and not inline.content:
            opening.tag = closing.tag = "td"
    for token in tokens:
        # Pages allow no style attributes, so columns of numbers get a class.
        if token.attrs.pop("style", None) == "text-align:right":
            token.attrSet("class", "number")
    return mark_safe(_MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {}))


def _render_opening(
    renderer: Any, tokens: Sequence[Token], place: int, options: Any, env: Any
) -> str:
    return f'<div class="scroll">{renderer.renderToken(tokens, place, options, env)}'


def _render_closing(
    renderer: Any, tokens: Sequence[Token], place: int, options: Any, env: Any
) -> str:
    return f"{renderer.renderToken(tokens, place, options, env)}</div>"


_WITH_PICTURES = MarkdownIt("commonmark", {"html": False}).enable("table")
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
_MARKDOWN.add_render_rule("table_open", _render_opening)
_MARKDOWN.add_render_rule("table_close", _render_closing)
