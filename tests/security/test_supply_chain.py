"""What Pitwall is built of is pinned by hash, and is installed in no other way."""

import re

import pytest

from devstack.lock import lock_sources
from devstack.places import CHECKOUT

_FOLDER = CHECKOUT / "requirements"
LOCKS = [
    "requirements.txt",
    *(f"requirements/{p.name}" for p in (CHECKOUT / "requirements").iterdir()),
]
_PINNED = re.compile(r"[\w.-]+(\[[\w,-]+\])?==\S+ .*--hash=sha256:[0-9a-f]{64}\b")
#: Where people and machines install from: the only files that call pip or uv.
INSTALLERS = ("devstack/bootstrap.py", "perf/harness/environments.py", "docker/Dockerfile")


@pytest.mark.parametrize("name", LOCKS)
def test_each_package_is_pinned_by_version_and_hash(name: str) -> None:
    text = (CHECKOUT / name).read_text().replace("\\\n", " ")
    lines = [
        line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")
    ]
    assert lines
    assert [line[:60] for line in lines if not _PINNED.match(line)] == []


def test_each_dependency_group_has_its_lock_file() -> None:
    assert set(lock_sources()) == set(LOCKS)


def test_nothing_is_installed_without_a_hash() -> None:
    """A line that installs from a lock asks for the hashes, in itself or in what it is made of."""
    for name in INSTALLERS:
        text = (CHECKOUT / name).read_text()
        assert text.count("--require-hashes") >= len(re.findall(r'"-r"|\s-r ', text)), name
    others = []
    for folder in ("devstack", "perf", "docker", ".ci", "orchestrator", "agents", "cli"):
        for path in (CHECKOUT / folder).rglob("*"):
            name = path.relative_to(CHECKOUT).as_posix()
            if path.suffix not in ("", ".py", ".sh") or not path.is_file() or name in INSTALLERS:
                continue
            if re.search(r"pip[\"', ]+install\b.*(-r|==)", path.read_text(errors="replace")):
                others.append(name)
    assert others == []
