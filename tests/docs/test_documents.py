"""What the documents say about the code is true of the code."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted((ROOT / "docs").rglob("*.md"))


def test_it_documents_every_variable_of_the_settings_and_no_other():
    config = ROOT / "orchestrator" / "config"
    read = set()
    for name in ("settings.py", "celery.py"):
        calls = re.findall(r'environment\.\w+\(\s*"([A-Z0-9_]+)"', (config / name).read_text())
        read.update(calls)
    text = (ROOT / "docs" / "configuration.md").read_text()
    server = text.partition("## On a developer")[0]
    assert set(re.findall(r"^\| `([A-Z0-9_]+)`", server, re.MULTILINE)) == read


def test_it_maps_every_package():
    text = (ROOT / "docs" / "architecture.md").read_text()
    packages = {path.parent.name for path in (ROOT / "orchestrator").glob("*/__init__.py")}
    assert packages <= set(re.findall(r"`orchestrator/(\w+)`", text))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_its_links_lead_to_files(document):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", document.read_text()):
        if "://" not in target:
            assert (document.parent / target).exists(), target


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_it_names_modules_that_exist(document):
    for path in re.findall(
        r"`((?:orchestrator|agents|tests|docs)/[\w./-]+)`", document.read_text()
    ):
        assert (ROOT / path).exists(), path
