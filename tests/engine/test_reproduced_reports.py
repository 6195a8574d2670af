"""`make seeds` for two cases of one report: a stack of its own, a real load, the page written."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from devstack.places import CHECKOUT
from tests.support.programs import tool

pytestmark = [pytest.mark.engine, pytest.mark.slow]

#: Settings of the stack that this test runs on, which are not those of the one that it starts.
OF_OURS = re.compile(r"PITWALL_|DJANGO_|(DATABASE|REDIS)_URL$")
ROW = re.compile(r"^\| (HTTP/[^|]*?) \| (.*) \|$", re.M)


def test_a_report_is_reproduced_with_rows_values_and_provenance(tmp_path: Path) -> None:
    tool("oha")
    # The steady load of the table, and the short ones, which a loaded machine disturbs less.
    cases = 'protocol == "h1" and concurrent == 10 and size == 1024'
    wanted = ("--only", "protocols", "--cases", cases)
    argv = (sys.executable, "-m", "devstack", "seeds", "--name", "test-seeds", "--", *wanted)
    done = subprocess.run(
        [*argv, "--out", str(tmp_path)],
        cwd=CHECKOUT,
        env={**_without_ours(), "PITWALL_QUIET_WAIT_S": "0"},
        capture_output=True,
        text=True,
        timeout=420,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # A loaded machine may leave no valid trial of a case.
    assert re.search(
        r"003 protocols: 1 of 3 systems work, \d of 18 cases have numbers", done.stdout
    )
    assert "h3: not measured" in done.stdout
    assert re.search(r"003 protocols: 1 run, \d", done.stdout)
    page = (tmp_path / "protocols.md").read_text()
    assert page.startswith("# HTTP Protocol Performance Comparison\n")
    assert 'make seeds ARGS="--report --only protocols"' in page
    conclusions, _, first, *others = page.split("\n## ")[1:]
    assert conclusions.startswith("Conclusions\n\n- **Cannot tell**: With 10 concurrent requests")
    assert first.startswith("Scenario 1: Small Files (1KB) - 10 Concurrent\n")
    rows = {name: cells.split(" | ") for name, cells in ROW.findall(first)}
    assert list(rows) == ["HTTP/1.1", "HTTP/2 (h2c)", "HTTP/3 (minimal TLS)"]
    # Or the cell says why it has no number.
    assert re.match(r"\d[\d\s]*\.\d\d|invalid \[\d+\]", rows["HTTP/1.1"][0]), rows
    assert rows["HTTP/3 (minimal TLS)"][0] == "not measured"
    assert "Ops/sec, published" in first
    assert "1614.69" in [re.sub(r"\s", "", cell) for cell in rows["HTTP/1.1"]]
    rest = "\n".join(others)
    for fact in ("**Commit**", "**Load tool**", "**Definition**", "CPU:", "Kernel:", "Fingerprint"):
        assert fact in rest, rest


def _without_ours() -> dict[str, str]:
    return {name: text for name, text in os.environ.items() if not OF_OURS.match(name)}
