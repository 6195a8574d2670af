"""The documentation in the product: every document, with working links, for everybody."""

import posixpath
import re
from functools import cache
from urllib.parse import urljoin, urlsplit
from xml.etree import ElementTree as ET

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse
from django.utils.text import slugify

from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.sharing import set_public
from orchestrator.web.help.documents import FOLDER, list_files
from orchestrator.web.help.glossary import load_terms
from orchestrator.web.pictures import PICTURE_POLICY
from tests.support.html_pages import element, elements, get_text, values
from tests.support.world import World

DOCUMENTS = sorted(str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.md"))
#: Pages that documents link to, outside of the documentation.
OUTSIDE = ("/api/v1/", "/schemas/")
MOST_BYTES = 150_000
#: A reader learns no more than these; each area explains its other terms where it uses them.
MOST_TERMS = 60


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_is_shown_to_everybody_with_working_links(client: Client, name: str) -> None:
    address = f"/docs/{name}"
    page = client.get(address)
    assert page.status_code == 200
    assert len(page.content) < MOST_BYTES
    first = (FOLDER / name).read_text().partition("\n")[0]
    assert get_text(element(page, "h1")) == re.sub(r"[`*]", "", first.removeprefix("# "))
    anchors = values(page, "article [id]", "id")
    assert len(anchors) == len(set(anchors))
    for link in values(page, "main a[href]", "href"):
        parts = urlsplit(urljoin(address, link))
        if parts.netloc or parts.path.startswith(OUTSIDE):
            continue
        status, anchors = load_target(parts.path)
        assert status == 200, link
        assert not parts.fragment or parts.fragment in anchors, link


@cache
def load_target(path: str) -> tuple[int, frozenset[str]]:
    """Return the status and the anchors of a page that many documents link to."""
    target = Client().get(path)
    return target.status_code, frozenset(values(target, "[id]", "id"))


def test_the_index_leads_to_every_kind_of_document(client: Client) -> None:
    page = client.get("/docs/")
    headings = [get_text(each) for each in elements(page, "article h2")]
    assert headings == ["Tutorial", "How-to", "Reference", "Explanation"]
    assert "tutorial.md" in values(page, "article a", "href")


def test_a_folder_lists_its_documents(client: Client) -> None:
    listed = values(client.get("/docs/decisions/"), "article a", "href")
    assert listed == sorted(path.name for path in (FOLDER / "decisions").glob("*.md"))
    assert get_text(element(client.get("/docs/ci/"), "h1")) == "Pitwall in a CI"


def test_other_files_are_plain_text(client: Client) -> None:
    answer = client.get("/docs/ci/github/action.yml")
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.content == (FOLDER / "ci" / "github" / "action.yml").read_bytes()
    example = client.get("/docs/examples/fastapi.yaml")
    assert example.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert example.content == (FOLDER / "examples" / "fastapi.yaml").read_bytes()


@pytest.mark.parametrize(
    "name",
    [
        "../SECURITY.md", "..%2fSECURITY.md", "%2e%2e/README.md", "ci/../../README.md",
        "/etc/passwd", "../orchestrator/config/settings.py", "images/compare.png", "none.md",
        "index", "decisions", "ci/none/",
    ],
)  # fmt: skip
def test_nothing_else_is_served(client: Client, name: str) -> None:
    assert client.get(f"/docs/{name}").status_code == 404


def test_a_reproduced_report_shows_its_charts(client: Client) -> None:
    page = client.get("/docs/reproducing/protocols.md")
    pictures = elements(page, "article img")
    assert len(pictures) == 3
    for each in pictures:
        chart = client.get(urljoin("/docs/reproducing/protocols.md", each["src"]))
        assert chart.headers["Content-Type"] == "image/svg+xml"
        assert chart.headers["Content-Security-Policy"] == PICTURE_POLICY
        svg = ET.fromstring(chart.content)
        assert (each["width"], each["height"]) == (svg.get("width"), svg.get("height"))
        assert each["alt"] == svg.findtext("{http://www.w3.org/2000/svg}title")


def test_every_file_is_below_the_folder() -> None:
    assert FOLDER == settings.BASE_DIR / "docs"
    assert all(path.resolve().is_relative_to(FOLDER.resolve()) for path in list_files().values())


def test_a_link_to_the_source_is_text(client: Client) -> None:
    page = client.get("/docs/index.md")
    assert all(posixpath.basename(link) != "SECURITY.md" for link in values(page, "a", "href"))
    assert "SECURITY.md in the source of Pitwall" in values(page, "article span", "title")


def test_the_policy_of_a_document_is_that_of_every_page(client: Client) -> None:
    page = client.get("/docs/architecture.md")
    assert "script-src 'self'" in page.headers["Content-Security-Policy"]
    assert elements(page, "article script, article style, article [style], article img") == []


def test_keys_are_the_only_tags_of_the_text(client: Client) -> None:
    page = client.get("/docs/history.md")
    assert "Home" in [get_text(each) for each in elements(page, "article kbd")]
    assert "&lt;kbd" not in page.content.decode()
    assert elements(client.get("/docs/deployment.md"), "article script, article img") == []


def test_help_is_linked_for_everybody(world: World, alice: Client, client: Client) -> None:
    assert values(alice.get("/"), "header nav a", "href")[-1] == "/docs/"
    current = element(alice.get("/docs/"), "header nav [aria-current]")
    assert get_text(current) == "Help"
    assert values(client.get("/login"), "footer a", "href")[0] == "/docs/"
    set_public(member=world.alice, project=Project.objects.get(), public=True)
    assert values(client.get("/public/red/server/"), "header nav a", "href")[-1] == "/docs/"


def test_every_term_has_an_anchor_in_the_glossary(client: Client) -> None:
    anchors = values(client.get("/docs/glossary.md"), "article strong[id]", "id")
    assert set(anchors) == {slugify(term) for term in load_terms()}
    assert len(anchors) <= MOST_TERMS
    assert {
        "block",
        "exclusion",
        "baseline",
        "contender",
        "trial",
        "case",
        "round",
        "epoch",
    } <= set(load_terms())


def test_templates_explain_only_terms_of_the_glossary() -> None:
    templates = (settings.BASE_DIR / "templates").rglob("*.html")
    used = {
        term
        for path in templates
        for term in re.findall(r'(?:\{% term(?:_mark)?|\bterm=) ?"([^"]+)"', path.read_text())
    }
    assert used
    assert used <= set(load_terms())


@pytest.mark.parametrize(
    ("name", "terms"),
    [
        ("run-new", {"contender", "baseline", "round", "case"}),
        ("compare", {"contender", "baseline"}),
        ("compare-choose", {"contender", "baseline"}),
        ("settings-quotas", {"quota"}),
        ("validity", {"validity", "trial"}),
    ],
)
def test_a_page_explains_its_terms(world: World, alice: Client, name: str, terms: set[str]) -> None:
    world.measure_run(1000, 900)
    links = values(alice.get(reverse(name)), "main a:is(.term, .term-mark)", "href")
    assert {each.rpartition("#")[2] for each in links} >= terms


def test_a_run_explains_its_terms(world: World, alice: Client) -> None:
    run = world.measure_run(1000, 900)
    links = values(alice.get(reverse("run", args=[run.pk])), "main a.term", "href")
    assert {each.rpartition("#")[2] for each in links} >= {"round", "baseline", "case", "trial"}


def test_a_term_links_to_its_entry_and_shows_it(world: World, alice: Client) -> None:
    page = alice.get("/history/?benchmark=server/hello")
    epoch = next(each for each in elements(page, "a.term") if each["href"].endswith("#epoch"))
    assert epoch["href"] == "/docs/glossary.md#epoch"
    assert epoch["title"] == load_terms()["epoch"]
    assert "not comparable" in str(epoch["title"])
