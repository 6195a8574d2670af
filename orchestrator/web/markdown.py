"""Markdown as HTML for pages. HTML in the text stays text, and addresses of scripts no links."""

from collections.abc import Sequence
from typing import Any

from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

#: The page's own heading and that of the section around the text stand above those of the text.
_DEEPER = 1


def as_html(text: str) -> SafeString:
    """Without its title: the page has one. Wide tables scroll by themselves."""
    tokens = _MARKDOWN.parse(text)
    if tokens and tokens[0].tag == "h1":
        tokens = tokens[3:]
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1:]) + _DEEPER)}"
        # Pages allow no styles in attributes: columns of numbers have a class for it.
        if token.attrs.pop("style", None) == "text-align:right":
            token.attrSet("class", "number")
    return mark_safe(_MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {}))


def _opened(renderer: Any, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
    return f'<div class="scroll">{renderer.renderToken(tokens, place, options, env)}'


def _closed(renderer: Any, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
    return f"{renderer.renderToken(tokens, place, options, env)}</div>"


# A page asks no other host for anything, so that there are no pictures.
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
_MARKDOWN.add_render_rule("table_open", _opened)
_MARKDOWN.add_render_rule("table_close", _closed)
