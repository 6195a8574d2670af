"""Where oha comes from. The binaries are scripts that answer --version as oha does."""

import hashlib
import http.server
import json
import os
import platform
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from devstack.tools import releases
from devstack.tools.cache import find_cached, get_tool_folder, keep
from devstack.tools.finding import find
from devstack.tools.supplies import SUPPLIES, ToolError

ROOT = Path(__file__).resolve().parents[3]
SYSTEM = "/usr/bin:/bin"
OHA = SUPPLIES["oha"]


def program(path: Path, says: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{says}\n")
    path.chmod(0o755)
    return path


def fake_oha(path: Path, version: str) -> Path:
    return program(path, f"echo oha {version}")


@pytest.fixture(autouse=True)
def empty_home(monkeypatch, tmp_path):
    """No oha anywhere, no cargo, an empty cache."""
    monkeypatch.delenv("PITWALL_OHA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{SYSTEM}")
    monkeypatch.setattr(releases, "RELEASES", write_releases(tmp_path, None))


def write_releases(folder: Path, entry: dict[str, str] | None) -> Path:
    path = folder / "releases.json"
    here = f"{platform.system()}-{platform.machine()}"
    path.write_text(json.dumps({"releases": {here: entry} if entry else {}}))
    return path


@pytest.fixture
def site(tmp_path) -> Iterator[tuple[str, Path]]:
    """A web server on this machine and the file that it gives out."""
    served = fake_oha(tmp_path / "site" / "oha", "1.14.0")

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args) -> None:
            super().__init__(*args, directory=str(served.parent))

        def log_message(self, *args) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/oha", served
        server.shutdown()


def test_the_configured_binary_is_used(monkeypatch, tmp_path):
    named = fake_oha(tmp_path / "mine", "1.15.2")
    monkeypatch.setenv("PITWALL_OHA", str(named))
    assert find(OHA) == named


@pytest.mark.parametrize(
    ("version", "complaint"), [("1.13.0", "is oha 1.13.0; Pitwall needs 1.14.0"), ("x", "not run")]
)
def test_an_unsuitable_configured_binary_is_refused(monkeypatch, tmp_path, version, complaint):
    monkeypatch.setenv("PITWALL_OHA", str(fake_oha(tmp_path / "mine", version)))
    with pytest.raises(ToolError, match=complaint):
        find(OHA)


def test_a_suitable_binary_on_path_is_used(tmp_path):
    on_path = fake_oha(tmp_path / "bin" / "oha", "1.14.0")
    assert find(OHA) == on_path


def test_a_missing_binary_is_reported_with_what_to_install():
    with pytest.raises(ToolError, match="no cargo"):
        find(OHA)


def test_an_old_binary_on_path_is_reported_with_what_to_install(tmp_path):
    fake_oha(tmp_path / "bin" / "oha", "1.6.0")
    with pytest.raises(ToolError, match="no cargo"):
        find(OHA)


def test_the_cache_is_preferred_to_path(tmp_path):
    fake_oha(tmp_path / "bin" / "oha", "1.15.0")
    kept = keep(OHA, fake_oha(tmp_path / "new", "1.16.0"))
    assert find(OHA) == kept == tmp_path / "cache/pitwall/tools/oha-1.16.0-http3/oha"


def test_a_changed_cached_binary_is_not_run(tmp_path):
    kept = keep(OHA, fake_oha(tmp_path / "new", "1.16.0"))
    program(kept, f"touch {tmp_path / 'ran'}; echo oha 1.16.0")
    with pytest.raises(ToolError, match="no cargo"):
        find(OHA)
    assert not (tmp_path / "ran").exists()


def test_a_download_with_the_known_digest_is_kept(monkeypatch, tmp_path, site):
    url, served = site
    digest = hashlib.sha256(served.read_bytes()).hexdigest()
    entry = {"version": "1.14.0", "url": url, "sha256": digest}
    monkeypatch.setattr(releases, "RELEASES", write_releases(tmp_path, entry))
    assert find(OHA).read_bytes() == served.read_bytes()
    assert find_cached(OHA) is not None


def test_a_download_with_another_digest_is_not_run(monkeypatch, tmp_path, site):
    url, served = site
    entry = {"version": "1.14.0", "url": url, "sha256": "0" * 64}
    monkeypatch.setattr(releases, "RELEASES", write_releases(tmp_path, entry))
    program(served, f"touch {tmp_path / 'ran'}; echo oha 1.14.0")
    with pytest.raises(ToolError, match="does not have the SHA-256"):
        find(OHA)
    assert not (tmp_path / "ran").exists()
    assert [path.name for path in (tmp_path / "cache/pitwall/tools").iterdir()] == [
        "oha-1.16.0-http3.lock"
    ]


def test_two_checkouts_share_one_build(tmp_path):
    cargo = (
        f'echo run >> {tmp_path / "builds"}; sleep 0.3; mkdir -p "$9/bin"; '
        'printf "#!/bin/sh\\necho oha 1.16.0\\n" > "$9/bin/oha"; chmod +x "$9/bin/oha"'
    )
    program(tmp_path / "bin" / "cargo", cargo)
    argv = [sys.executable, "-m", "devstack.tools", "oha"]
    both = [
        subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    outputs = [process.communicate(timeout=30) for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert {out.strip() for out, _ in outputs} == {str(get_tool_folder(OHA) / "oha")}
    assert (tmp_path / "builds").read_text() == "run\n"
    assert sorted("another process gets oha" in err for _, err in outputs) == [False, True]
    assert any("about 4 minutes" in err for _, err in outputs)


def test_a_failed_build_is_reported_and_leaves_no_files(tmp_path):
    program(tmp_path / "bin" / "cargo", "echo error: linker cc not found; exit 101")
    with pytest.raises(ToolError, match="linker cc not found"):
        find(OHA)
    left = {path.name for path in (tmp_path / "cache/pitwall/tools").iterdir()}
    assert left == {"oha-1.16.0-http3.lock", "oha-1.16.0-http3-build.log"}


def test_files_of_an_ended_build_are_removed(tmp_path):
    left = get_tool_folder(OHA).with_name("oha-1.16.0-http3-staging-x") / "target"
    left.mkdir(parents=True)
    with pytest.raises(ToolError, match="no cargo"):
        find(OHA)
    assert not left.parent.exists()


def test_every_known_release_has_a_digest_and_a_suitable_version():
    listed = json.loads((ROOT / "devstack/tools/oha_releases.json").read_text())["releases"]
    for entry in listed.values():
        assert len(bytes.fromhex(entry["sha256"])) == 32
        assert tuple(map(int, entry["version"].split("."))) >= OHA.oldest
        assert f"v{entry['version']}/" in entry["url"]
    assert os.path.basename(listed["Darwin-arm64"]["url"]) == "oha-macos-arm64"


def test_a_built_oha_supports_http3(tmp_path):
    cargo = (
        f'echo "$@" > {tmp_path / "asked"}; mkdir -p "$9/bin"; '
        'printf "#!/bin/sh\\necho oha 1.16.0\\n" > "$9/bin/oha"; chmod +x "$9/bin/oha"'
    )
    program(tmp_path / "bin" / "cargo", cargo)
    find(OHA)
    assert (
        "install oha --version 1.16.0 --locked --features http3" in (tmp_path / "asked").read_text()
    )
