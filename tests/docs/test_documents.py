"""What the documents say about the code is true of the code."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("docs", "agents", "docker")
DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *(file for folder in FOLDERS for file in (ROOT / folder).rglob("*.md"))]
)


def get_name(document):
    return str(document.relative_to(ROOT))


def list_anchors(document):
    """The anchors of the headings of a Markdown file, as GitHub makes them."""
    text = re.sub(r"```.*?```", "", document.read_text(), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in plain}


def test_the_documentation_lists_every_setting_and_no_other():
    config = ROOT / "orchestrator" / "config"
    read = set()
    for name in ("settings.py", "celery.py"):
        calls = re.findall(r'variables\.\w+\(\s*"([A-Z0-9_]+)"', (config / name).read_text())
        read.update(calls)
    text = (ROOT / "docs" / "configuration.md").read_text()
    server = text.partition("## On a developer")[0]
    assert set(re.findall(r"^\| `([A-Z0-9_]+)`", server, re.MULTILINE)) == read


def test_the_architecture_lists_every_package():
    text = (ROOT / "docs" / "architecture.md").read_text()
    packages = {path.parent.name for path in (ROOT / "orchestrator").glob("*/__init__.py")}
    assert packages <= set(re.findall(r"`orchestrator/(\w+)`", text))


def test_the_index_lists_every_document():
    index = ROOT / "docs" / "index.md"
    listed = {index.parent / target for target in re.findall(r"\]\(([^)#]+)\)", index.read_text())}
    assert set((ROOT / "docs").glob("*.md")) - {index} <= listed


@pytest.mark.parametrize("document", DOCUMENTS, ids=get_name)
def test_links_of_documents_resolve(document):
    for target, anchor in re.findall(r"\]\(<?([^)#>]*)(?:#([^)]*))?>?\)", document.read_text()):
        if "://" not in target:
            file = document.parent / target if target else document
            assert file.exists(), target
            assert not anchor or file.suffix != ".md" or anchor in list_anchors(file), anchor


@pytest.mark.parametrize("document", DOCUMENTS, ids=get_name)
def test_documents_name_existing_modules(document):
    for path in re.findall(
        r"`((?:orchestrator|agents|tests|docs)/[\w./-]+)`", document.read_text()
    ):
        assert (ROOT / path).exists(), path
