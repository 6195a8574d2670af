"""The documents of this installation: the files below `docs/`, Markdown as HTML.

A document has the address of its file below `/docs/`, so that links between documents work as they
are. Only files of the list can be requested: no address is a path.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import slugify
from markdown_it.token import Token

from orchestrator.core.errors import NotFoundError
from orchestrator.web import markdown

FOLDER = settings.BASE_DIR / "docs"
INDEX, README, GLOSSARY = "index.md", "README.md", "glossary.md"
#: Other files that documents link to, as a browser shows them.
_TEXTS = frozenset({".json", ".yaml", ".yml"})
#: Charts of reproduced reports.
PICTURE = ".svg"
_SUFFIXES = frozenset({".md", PICTURE, *_TEXTS})
#: Files with an address of their own.
_ELSEWHERE = {
    "api/openapi.json": "/api/v1/openapi.json",
    "schemas/definition.json": "/schemas/definition.json",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    anchor: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """`headings` are those of the second level; `folder` is a folder with a list, or empty."""

    name: str
    title: str
    html: SafeString
    headings: tuple[Heading, ...]
    folder: str


@cache
def list_files() -> Mapping[str, Path]:
    """Map each name that can be requested, such as `ci/shell.md`, to its file."""
    files = (each for each in sorted(FOLDER.rglob("*")) if each.suffix in _SUFFIXES)
    names = {each.relative_to(FOLDER).as_posix(): each for each in files if each.is_file()}
    return {name: each for name, each in names.items() if name not in _ELSEWHERE}


def load_text(name: str) -> str:
    """Return the content of a file; raise NotFoundError for a name that is not in the list."""
    path = list_files().get(name)
    if path is None:
        raise NotFoundError(f"there is no document {name}; see the list of all documents")
    return path.read_text()


@lru_cache(maxsize=256)
def load_document(name: str) -> Document:
    """Return a document, or the list of a folder, whose name ends in a slash.

    Each is rendered once by each process.
    """
    if name in _list_folders():
        readme = name + README
        return load_document(readme) if readme in list_files() else _build_list(name)
    tokens = markdown.parse(load_text(name), pictures=True)
    title = _get_text(tokens[1]) if tokens and tokens[0].tag == "h1" else name
    headings = _add_anchors(tokens)
    if name == GLOSSARY:
        _add_term_anchors(tokens)
    for link in _list_links(tokens):
        _redirect_link(link, name)
    _set_picture_sizes(tokens, name)
    folder = name.rpartition("/")[0]
    return Document(
        name=name,
        title=title,
        html=_show_keys(markdown.render(tokens[3:] if title != name else tokens)),
        headings=headings,
        folder=f"{folder}/" if folder else "",
    )


def get_term_anchor(term: str) -> str:
    """Return the anchor of a term of the glossary."""
    return slugify(term)


@cache
def _list_folders() -> frozenset[str]:
    return frozenset(f"{name.rpartition('/')[0]}/" for name in list_files() if "/" in name)


def _build_list(folder: str) -> Document:
    """Return the list of the documents of a folder without a README."""
    names = [each for each in list_files() if each.rpartition("/")[0] + "/" == folder]
    links = [
        f"- [{load_document(each).title}]({each.removeprefix(folder)})"
        for each in names
        if each.endswith(".md")
    ]
    return Document(
        name=folder,
        title=folder.rstrip("/").rpartition("/")[2].capitalize(),
        html=markdown.render(markdown.parse("\n".join(links))),
        headings=(),
        folder="",
    )


def _show_keys(html: str) -> SafeString:
    """Return the HTML with the only tag that documents contain, for keys of the keyboard."""
    return mark_safe(re.sub(r"&lt;(/?kbd)&gt;", r"<\1>", html))


def _add_anchors(tokens: Sequence[Token]) -> tuple[Heading, ...]:
    """Give each heading the anchor that GitHub gives it; return those of the second level."""
    used: dict[str, int] = {}
    headings = []
    for opening, inline in pairwise(tokens):
        if opening.type != "heading_open":
            continue
        text = _get_text(inline)
        anchor = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        count = used[anchor] = used.get(anchor, -1) + 1
        anchor = f"{anchor}-{count}" if count else anchor
        opening.attrSet("id", anchor)
        if opening.tag == "h2":
            headings.append(Heading(anchor=anchor, text=text))
    return tuple(headings)


def _add_term_anchors(tokens: Sequence[Token]) -> None:
    """Make each bold term of the glossary an anchor; a term is defined once."""
    for inline in tokens:
        for opening, text in pairwise(inline.children or ()):
            if opening.type == "strong_open":
                opening.attrSet("id", get_term_anchor(text.content))


def _get_text(inline: Token) -> str:
    return "".join(each.content for each in inline.children or ())


def _list_links(tokens: Sequence[Token]) -> Iterator[tuple[Token, Token]]:
    """Yield the opening and the closing token of each link; links are never nested."""
    for inline in tokens:
        opening: Token | None = None
        for each in inline.children or ():
            if each.type == "link_open":
                opening = each
            elif each.type == "link_close" and opening is not None:
                yield opening, each


def _set_picture_sizes(tokens: Sequence[Token], name: str) -> None:
    """Give each picture the size of its file, so that the text below does not move."""
    parts = (each for inline in tokens for each in inline.children or ())
    for picture in (each for each in parts if each.type == "image"):
        svg = load_text(_resolve(str(picture.attrs["src"]), name)).partition("<title>")[0]
        for side, pixels in re.findall(r' (width|height)="(\d+)"', svg):
            picture.attrSet(side, pixels)


def _resolve(path: str, name: str) -> str:
    """Return the name of the file that the document `name` calls `path`."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), path))


def _redirect_link(link: tuple[Token, Token], name: str) -> None:
    """Leave a link to another document; make a link to a file outside of `docs/` a mere text."""
    target = urlsplit(str(link[0].attrGet("href") or ""))
    if target.scheme or target.netloc or not target.path:
        return
    path = _resolve(target.path, name)
    if path in _ELSEWHERE:
        link[0].attrSet("href", _ELSEWHERE[path])
    elif path not in list_files() and f"{path}/" not in _list_folders():
        for token in link:
            token.tag = "span"
        outside = path.removeprefix("../")
        link[0].attrs = {"title": f"{outside} in the source of Pitwall"}
