"""A template tag for help next to a term."""

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from orchestrator.web.help.documents import GLOSSARY, get_term_anchor
from orchestrator.web.help.glossary import load_terms

register = template.Library()


@register.simple_tag
def term(name: str, text: str = "") -> SafeString:
    """Return a term as a link to its entry in the glossary, with the entry as its title.

    `{% term "block" "Blocks" %}` shows another form of the word. Visitors have the same address:
    the documentation is not below that of a public project.
    """
    return format_html(
        '<a class="term" href="{}" title="{}">{}</a>',
        _build_address(name),
        load_terms()[name],
        text or name,
    )


@register.simple_tag
def term_mark(name: str) -> SafeString:
    """Return a question mark that links to a term, to stand next to the label of a field."""
    return format_html(
        '<a class="term-mark" href="{}" title="{}"><span aria-hidden="true">?</span>'
        '<span class="visually-hidden">Glossary: {}</span></a>',
        _build_address(name),
        load_terms()[name],
        name,
    )


def _build_address(name: str) -> str:
    return f"/docs/{GLOSSARY}#{get_term_anchor(name)}"
