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
    address = f"/docs/{GLOSSARY}#{get_term_anchor(name)}"
    meaning = load_terms()[name]
    return format_html(
        '<a class="term" href="{}" title="{}">{}</a>', address, meaning, text or name
    )
