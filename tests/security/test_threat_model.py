"""SECURITY.md names a test for each line of its threat model, and each of them is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "SECURITY.md").read_text()
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
#: Those that could try something, by the headings of the threat model.
WHO = (
    "A malicious benchmark", "A malicious host", "Malicious tool output", "A malicious repository",
    "A malicious team member", "A malicious web page or visitor",
    "Somebody who has a backup, or writes to the database", "What Pitwall is built of and runs in",
)  # fmt: skip


def rows_below(heading: str) -> list[list[str]]:
    """The cells of the lines of the table below a heading, without its own head."""
    _, _, rest = PAGE.partition(f"### {heading}\n")
    section = re.split(r"^##", rest, maxsplit=1, flags=re.MULTILINE)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def is_there(path: str, name: str) -> bool:
    file = ROOT / path
    pattern = rf"^(async )?def {name}\("
    return file.is_file() and bool(re.search(pattern, file.read_text(), re.MULTILINE))


def test_each_attacker_is_listed_with_attacks() -> None:
    for who in WHO:
        rows = rows_below(who)
        assert len(rows) >= 4, who
        assert all(len(row) == 3 for row in rows), who


def test_each_threat_names_a_test() -> None:
    unshown = [row[0] for who in WHO for row in rows_below(who) if not _TEST.search(row[-1])]
    assert unshown == []


def test_no_threat_is_listed_twice() -> None:
    """Several people add lines, and merges keep all of them."""
    tried = [row[0] for who in WHO for row in rows_below(who)]
    assert [each for each in set(tried) if tried.count(each) > 1] == []
    headings = re.findall(r"(?m)^### (.*)$", PAGE.partition("## The threat model")[2])
    assert headings == list(WHO)


def test_each_named_test_exists() -> None:
    assert not is_there("tests/security/test_threat_model.py", "test_that_nobody_wrote")
    named = _TEST.findall(PAGE)
    assert [f"{path}::{name}" for path, name in named if not is_there(path, name)] == []
