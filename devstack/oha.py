"""Find a fit `oha`, or get one: `python -m devstack.oha` prints its path.

Looked for in this order: PITWALL_OHA, the user's cache, PATH, a release whose SHA-256 is known,
a build by `cargo install`. What is downloaded or built goes to the cache, for every checkout.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from devstack.errors import DevstackError
from devstack.filelock import waiting_for_lock
from devstack.places import tools_cache

BUILT = "1.16.0"
# Before 1.14 --latency-correction was inverted together with -n and -q.
OLDEST = (1, 14)
RELEASES = Path(__file__).with_name("oha_releases.json")
DOWNLOAD_TIMEOUT_S = 60
DOWNLOAD_LIMIT_BYTES = 200_000_000


class OhaError(DevstackError):
    """No fit oha is to be had; the text says what to do."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m devstack.oha", description=__doc__)
    parser.add_argument("--quiet", action="store_true", help="get it, but do not print the path")
    options = parser.parse_args()
    try:
        path = find_oha()
    except OhaError as error:
        print(f"pitwall: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    if not options.quiet:
        print(path)
    return 0


def find_oha() -> Path:
    """The path of an oha of 1.14 or newer; may build one, which takes minutes.

    Raises OhaError if there is none and none can be made.
    """
    named = os.environ.get("PITWALL_OHA")
    if named:
        return checked(Path(named))
    cached = cached_oha() or oha_on_path()
    if cached is not None:
        return cached
    folder = cache_folder()
    lock = folder.with_name(folder.name + ".lock")
    with waiting_for_lock(lock, "pitwall: another process gets oha; waiting for it."):
        return cached_oha() or downloaded() or built()


def checked(path: Path) -> Path:
    version = version_of(path)
    if version is None:
        raise OhaError(f"PITWALL_OHA={path} does not run as oha. Name another file or unset it.")
    if version < OLDEST:
        raise OhaError(f"PITWALL_OHA={path} is oha {dotted(version)}; Pitwall needs 1.14 or newer.")
    return path.absolute()


def cache_folder() -> Path:
    return tools_cache() / f"oha-{BUILT}"


def cached_oha() -> Path | None:
    """The cached binary, if it is the one that was put there, byte for byte."""
    binary = cache_folder() / "oha"
    try:
        recorded = binary.with_name("oha.sha256").read_text().split()[0]
        whole = recorded == digest(binary)
    except (OSError, IndexError):
        return None
    return binary if whole and is_fit(binary) else None


def oha_on_path() -> Path | None:
    found = shutil.which("oha")
    return Path(found).absolute() if found and is_fit(Path(found)) else None


def is_fit(binary: Path) -> bool:
    version = version_of(binary)
    return version is not None and version >= OLDEST


def version_of(binary: Path) -> tuple[int, ...] | None:
    """(1, 16, 0) of a binary that answers `oha 1.16.0`; None if it does not run or answer so."""
    try:
        said = subprocess.run(
            [str(binary), "--version"], capture_output=True, text=True, timeout=20
        ).stdout
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    found = re.match(r"oha (\d+)\.(\d+)\.(\d+)", said)
    return tuple(int(part) for part in found.groups()) if found else None


def dotted(version: tuple[int, ...]) -> str:
    return ".".join(str(part) for part in version)


def downloaded() -> Path | None:
    """The release for this platform, or None if no digest is known or the download fails."""
    release = release_for_platform()
    if release is None:
        return None
    say(f"downloading oha {release['version']} from {release['url']}")
    with staging() as folder:
        target = Path(folder) / "oha"
        try:
            fetch(release["url"], target)
        except (OSError, urllib.error.URLError) as error:
            say(f"the download failed ({error}); building oha instead")
            return None
        if digest(target) != release["sha256"]:
            raise OhaError(
                f"{release['url']} does not have the SHA-256 that devstack/oha_releases.json "
                "names. Nothing of it was run. Try again, or build: cargo install oha."
            )
        return keep(target)


def release_for_platform() -> dict[str, str] | None:
    releases: dict[str, dict[str, str]] = json.loads(RELEASES.read_text())["releases"]
    return releases.get(f"{platform.system()}-{platform.machine()}")


def fetch(url: str, target: Path) -> None:
    with urllib.request.urlopen(url, timeout=DOWNLOAD_TIMEOUT_S) as reply, target.open("wb") as out:
        left = DOWNLOAD_LIMIT_BYTES
        while chunk := reply.read(1 << 20):
            left -= len(chunk)
            if left < 0:
                raise OSError(f"more than {DOWNLOAD_LIMIT_BYTES} bytes")
            out.write(chunk)


def built() -> Path:
    """Build oha by cargo in a staging folder of the cache and move it to its place."""
    cargo = shutil.which("cargo")
    if cargo is None:
        raise OhaError(
            "There is no oha of 1.14 or newer on PATH, and no cargo to build it with. Install oha "
            "(https://github.com/hatoo/oha) or Rust (https://rustup.rs), or set PITWALL_OHA."
        )
    log = cache_folder().parent / f"oha-{BUILT}-build.log"
    say(
        f"building oha {BUILT}, once for this user. It takes 380 CPU-seconds: about 4 minutes "
        f"on two cores. Log: {log}"
    )
    with staging() as folder:
        began = time.monotonic()
        argv = [cargo, "install", "oha", "--version", BUILT, "--locked", "--root", folder]
        # The staging folder also takes the target, so that an ended build leaves nothing behind.
        build = Path(folder) / "target"
        with log.open("wb") as out:
            status = subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**os.environ, "CARGO_TARGET_DIR": str(build)},
            ).returncode
        binary = Path(folder) / "bin" / "oha"
        if status != 0 or not is_fit(binary):
            raise OhaError(f"cargo could not build oha (status {status}):\n{tail(log)}")
        say(f"built oha {BUILT} in {time.monotonic() - began:.0f} s")
        return keep(binary)


def staging() -> tempfile.TemporaryDirectory[str]:
    tools_cache().mkdir(parents=True, exist_ok=True)
    return tempfile.TemporaryDirectory(prefix="oha-staging-", dir=tools_cache())


def keep(binary: Path) -> Path:
    """Move a binary into the cache; the digest goes last, so that a half move does not count."""
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    target, record = folder / "oha", folder / "oha.sha256"
    binary.chmod(0o755)
    record.unlink(missing_ok=True)
    binary.replace(target)
    record.write_text(f"{digest(target)}  oha\n")
    if not is_fit(target):
        raise OhaError(f"{target} does not run on this machine. Set PITWALL_OHA to one that does.")
    return target


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def tail(log: Path, lines: int = 15) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])


def say(text: str) -> None:
    # Standard output is for the path alone.
    print(f"pitwall: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
