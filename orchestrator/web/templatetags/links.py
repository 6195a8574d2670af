"""Template tags for links that appear only to users who may follow them, and links in messages."""

import re
from typing import Any
from urllib.parse import urlencode

from django import template
from django.template import Context
from django.urls import reverse
from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from orchestrator.web.access import get_visitor
from orchestrator.web.visitor_links import is_open_to_visitor

register = template.Library()

#: Options of a link that are HTML attributes; all others are parameters of its query.
_ATTRIBUTES = frozenset({"class", "title", "download", "aria_label"})
_RUN = re.compile(r"\b([Rr]un) ([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b")


@register.filter
def run_links(message: str) -> SafeString:
    """Return a message with a link for each run that it names by its id."""

    def replace(match: re.Match[str]) -> str:
        word, run_id = match.groups()
        address = reverse("run", args=[run_id])
        return format_html('<a href="{}">{} {}</a>', address, word, run_id[:8])

    return mark_safe(_RUN.sub(replace, escape(message)))


@register.simple_block_tag(takes_context=True)
def link(
    context: Context, content: SafeString, name: str, *args: Any, **options: Any
) -> SafeString:
    """Return a link to a page by name.

    `{% link "run" run.pk page=2 class="plain" %}…{% endlink %}`: `query` is an encoded query,
    `fragment` a part of the page. If the page is closed to a visitor, return only the content, and
    nothing for a button.
    """
    attributes = {key: options.pop(key) for key in _ATTRIBUTES & options.keys()}
    fragment, query = options.pop("fragment", ""), options.pop("query", "")
    query = query or urlencode({key: value for key, value in options.items() if value})
    address = reverse(name, args=args)
    address += (f"?{query}" if query else "") + (f"#{fragment}" if fragment else "")
    return _link(context, content, address, attributes)


@register.simple_block_tag(takes_context=True)
def link_to(context: Context, content: SafeString, address: str, **options: Any) -> SafeString:
    """Return the same for an address from the view."""
    return _link(context, content, address, options)


def _link(
    context: Context, content: SafeString, address: str, attributes: dict[str, Any]
) -> SafeString:
    request = getattr(context, "request", None)
    visitor = None if request is None else get_visitor(request)
    if visitor is None or is_open_to_visitor(visitor, address):
        pairs = ((key.replace("_", "-"), value) for key, value in attributes.items())
        markup = format_html_join("", ' {}="{}"', pairs)
        return format_html('<a{} href="{}">{}</a>', markup, address, content)
    if "button" in str(attributes.get("class", "")).split():
        return SafeString("")
    return format_html("<span>{}</span>", content)
