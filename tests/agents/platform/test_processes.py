"""What is measured gets nothing of ours, and can become no more than it is."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from agents.hostagent.platform.processes import MARK, Child, build_child_environment

ASK = """
import json, os, resource
status = dict(line.split(":\\t", 1) for line in open("/proc/self/status") if ":\\t" in line)
print(json.dumps({
    "core": resource.getrlimit(resource.RLIMIT_CORE), "session": os.getsid(0) == os.getpid(),
    "gains": status["NoNewPrivs"].strip(), "environment": dict(os.environ),
    "files": sorted(os.listdir("/proc/self/fd"))[:4], "stdin": os.readlink("/proc/self/fd/0"),
}))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks Linux's /proc")
def test_a_child_gets_no_environment_of_the_agent_and_gains_no_rights(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setenv("PITWALL_SECRET_KEY", "s3cret")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/tmp/agent")
    out = tmp_path / "out"
    with open(out, "wb") as file:
        child = Child(
            [sys.executable, "-c", ASK], cwd=tmp_path,
            env=build_child_environment(tmp_path, {"GIVEN": "1"}), stdout=file, stderr=file,
        )  # fmt: skip
        while child.exit_code is None:
            child.wait(1.0)
        child.kill()
    report = json.loads(out.read_bytes())
    assert report["gains"] == "1"
    assert report["core"] == [0, 0]
    assert report["session"]
    assert report["stdin"] == os.devnull
    kept = {"PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LC_CTYPE"}
    assert set(report["environment"]) - kept == {"GIVEN", MARK}


def test_builds_get_proxies_of_the_login_without_passwords(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", "localhost,.example")
    monkeypatch.setenv("PIP_INDEX_URL", "https://bob:s3cret@index.example/simple")
    of_build = build_child_environment(tmp_path, {}, for_build=True)
    assert of_build["https_proxy"] == "http://proxy.example:3128"
    assert of_build["no_proxy"] == "localhost,.example"
    assert "PIP_INDEX_URL" not in of_build
    assert "https_proxy" not in build_child_environment(tmp_path, {})
    own = {"https_proxy": "http://other:3128"}
    assert (
        build_child_environment(tmp_path, own, for_build=True)["https_proxy"] == own["https_proxy"]
    )
