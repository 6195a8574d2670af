"""Where oha comes from. The binaries are scripts that answer --version as oha does."""

import hashlib
import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from devstack import oha

ROOT = Path(__file__).resolve().parents[2]
SYSTEM = "/usr/bin:/bin"


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
    monkeypatch.setattr(oha, "RELEASES", releases(tmp_path, None))


def releases(folder: Path, entry: dict[str, str] | None) -> Path:
    path = folder / "releases.json"
    here = f"{oha.platform.system()}-{oha.platform.machine()}"
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


def test_it_takes_the_binary_that_the_setting_names(monkeypatch, tmp_path):
    named = fake_oha(tmp_path / "mine", "1.15.2")
    monkeypatch.setenv("PITWALL_OHA", str(named))
    assert oha.find_oha() == named


@pytest.mark.parametrize(
    ("version", "complaint"), [("1.13.0", "is oha 1.13.0; Pitwall needs 1.14"), ("x", "not run")]
)
def test_it_refuses_a_named_binary_that_is_not_fit(monkeypatch, tmp_path, version, complaint):
    monkeypatch.setenv("PITWALL_OHA", str(fake_oha(tmp_path / "mine", version)))
    with pytest.raises(oha.OhaError, match=complaint):
        oha.find_oha()


def test_it_takes_a_fit_binary_of_path(tmp_path):
    on_path = fake_oha(tmp_path / "bin" / "oha", "1.14.0")
    assert oha.find_oha() == on_path


def test_it_says_what_to_install_where_there_is_nothing():
    with pytest.raises(oha.OhaError, match="no cargo"):
        oha.find_oha()


def test_it_says_so_too_where_path_has_an_old_one_only(tmp_path):
    fake_oha(tmp_path / "bin" / "oha", "1.6.0")
    with pytest.raises(oha.OhaError, match="no cargo"):
        oha.find_oha()


def test_it_prefers_the_cache_to_path(tmp_path):
    fake_oha(tmp_path / "bin" / "oha", "1.15.0")
    kept = oha.keep(fake_oha(tmp_path / "new", "1.16.0"))
    assert oha.find_oha() == kept == tmp_path / "cache/pitwall/tools/oha-1.16.0/oha"


def test_it_does_not_run_a_cached_binary_that_was_changed(tmp_path):
    kept = oha.keep(fake_oha(tmp_path / "new", "1.16.0"))
    program(kept, f"touch {tmp_path / 'ran'}; echo oha 1.16.0")
    with pytest.raises(oha.OhaError, match="no cargo"):
        oha.find_oha()
    assert not (tmp_path / "ran").exists()


def test_it_keeps_a_download_of_the_known_digest(monkeypatch, tmp_path, site):
    url, served = site
    digest = hashlib.sha256(served.read_bytes()).hexdigest()
    entry = {"version": "1.14.0", "url": url, "sha256": digest}
    monkeypatch.setattr(oha, "RELEASES", releases(tmp_path, entry))
    assert oha.find_oha().read_bytes() == served.read_bytes()
    assert oha.cached_oha() is not None


def test_it_runs_nothing_of_a_download_with_another_digest(monkeypatch, tmp_path, site):
    url, served = site
    entry = {"version": "1.14.0", "url": url, "sha256": "0" * 64}
    monkeypatch.setattr(oha, "RELEASES", releases(tmp_path, entry))
    program(served, f"touch {tmp_path / 'ran'}; echo oha 1.14.0")
    with pytest.raises(oha.OhaError, match="does not have the SHA-256"):
        oha.find_oha()
    assert not (tmp_path / "ran").exists()
    assert [path.name for path in (tmp_path / "cache/pitwall/tools").iterdir()] == [
        "oha-1.16.0.lock"
    ]


def test_it_builds_once_for_two_checkouts(tmp_path):
    cargo = (
        f'echo run >> {tmp_path / "builds"}; sleep 0.3; mkdir -p "$7/bin"; '
        'printf "#!/bin/sh\\necho oha 1.16.0\\n" > "$7/bin/oha"; chmod +x "$7/bin/oha"'
    )
    program(tmp_path / "bin" / "cargo", cargo)
    argv = [sys.executable, "-m", "devstack.oha"]
    both = [
        subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = [process.communicate(timeout=30) for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert {out.strip() for out, _ in said} == {str(oha.cache_folder() / "oha")}
    assert (tmp_path / "builds").read_text() == "run\n"
    assert sorted("another process gets oha" in err for _, err in said) == [False, True]
    assert any("about 4 minutes" in err for _, err in said)


def test_it_shows_why_a_build_failed_and_leaves_no_half_of_it(tmp_path):
    program(tmp_path / "bin" / "cargo", "echo error: linker cc not found; exit 101")
    with pytest.raises(oha.OhaError, match="linker cc not found"):
        oha.find_oha()
    left = {path.name for path in (tmp_path / "cache/pitwall/tools").iterdir()}
    assert left == {"oha-1.16.0.lock", "oha-1.16.0-build.log"}


def test_every_known_release_names_a_digest_and_a_fit_version():
    known = json.loads((ROOT / "devstack" / "oha_releases.json").read_text())["releases"]
    for entry in known.values():
        assert len(bytes.fromhex(entry["sha256"])) == 32
        assert tuple(map(int, entry["version"].split("."))) >= oha.OLDEST
        assert f"v{entry['version']}/" in entry["url"]
    assert os.path.basename(known["Darwin-arm64"]["url"]) == "oha-macos-arm64"
