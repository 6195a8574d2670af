"""Where ghz and k6 come from. Go is a script here, which says what it was asked."""

import subprocess
import sys
from pathlib import Path

import pytest

from devstack.tools.cache import find_cached
from devstack.tools.finding import find
from devstack.tools.supplies import SUPPLIES, ToolError
from orchestrator.loadtools.registry import TOOLS

ROOT = Path(__file__).resolve().parents[3]
SYSTEM = "/usr/bin:/bin"
GHZ, K6 = SUPPLIES["ghz"], SUPPLIES["k6"]


def program(path: Path, says: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{says}\n")
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def empty_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No tools anywhere, no Go, an empty cache."""
    for supply in SUPPLIES.values():
        monkeypatch.delenv(supply.setting, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{SYSTEM}")


@pytest.fixture
def go(tmp_path: Path) -> Path:
    """What Go was asked, a line a build; what it builds says the version that it was asked for."""
    log = tmp_path / "asked"
    script = (
        f'echo "$@ $GOFLAGS $CGO_ENABLED ${{GOOS:-here}}" >> {log}\n'
        'package="${2%@*}" name="${package##*/}" version="${2#*@}"\n'
        'printf "#!/bin/sh\\necho $name $version\\n" > "$GOBIN/$name"; chmod +x "$GOBIN/$name"'
    )
    program(tmp_path / "bin" / "go", script)
    return log


def test_a_go_tool_is_built_once(go: Path, tmp_path: Path) -> None:
    kept = find(GHZ)
    assert kept == tmp_path / "cache/pitwall/tools/ghz-0.93.0/ghz" == find(GHZ)
    assert go.read_text() == ("install github.com/bojand/ghz/cmd/ghz@v0.93.0 -trimpath 0 here\n")


def test_a_go_tool_is_built_for_this_machine_despite_goos_and_goarch(
    go: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOS", "plan9")
    monkeypatch.setenv("GOFLAGS", "-mod=vendor")
    find(K6)
    assert go.read_text() == "install go.k6.io/k6@v1.8.1 -trimpath 0 here\n"


def test_missing_go_is_reported_with_what_to_install() -> None:
    with pytest.raises(ToolError, match=r"no go to build it with. Install ghz .* or Go .*PITWALL_"):
        find(GHZ)


def test_a_missing_network_is_reported_and_leaves_no_files(tmp_path: Path) -> None:
    program(tmp_path / "bin" / "go", "echo dial tcp: lookup proxy.golang.org: no such host; exit 1")
    with pytest.raises(ToolError, match="no such host") as caught:
        find(K6)
    assert "build k6 1.8.1 on another machine of this kind and set PITWALL_K6" in str(caught.value)
    left = {path.name for path in (tmp_path / "cache/pitwall/tools").iterdir()}
    assert left == {"k6-1.8.1.lock", "k6-1.8.1-build.log"}


def test_a_suitable_tool_on_path_is_used_and_an_old_one_not(go: Path, tmp_path: Path) -> None:
    mine = program(tmp_path / "bin" / "k6", "echo 'k6 v1.9.0 (go1.26, linux/amd64)'")
    assert find(K6) == mine
    program(tmp_path / "bin" / "k6", "echo 'k6 v0.49.0 (go1.21, linux/amd64)'")
    assert find(K6) == find_cached(K6)


def test_an_unavailable_tool_does_not_stop_the_others(go: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "devstack.tools", "oha", "ghz", "k6"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert "no cargo" in done.stderr
    assert [Path(line).name for line in done.stdout.splitlines()] == ["ghz", "k6"]


@pytest.mark.parametrize("name", list(SUPPLIES))
def test_required_versions_are_those_of_the_adapter(name: str) -> None:
    assert SUPPLIES[name].oldest == TOOLS[name].minimum_version
