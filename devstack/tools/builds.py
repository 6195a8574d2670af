"""Build tools with cargo and Go, in a staging folder of the cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from devstack.tools.cache import get_tool_folder, keep, open_staging
from devstack.tools.messages import print_message, read_tail
from devstack.tools.supplies import Supply, ToolError

#: Variables of the caller that would make Go build for another machine, or in another place.
GO_ELSEWHERE = ("GOOS", "GOARCH", "GOFLAGS", "GOBIN")


def build_with_cargo(supply: Supply) -> Path:
    cargo = _find_program("cargo", supply, "Rust (https://rustup.rs)")
    with open_staging(supply) as folder:
        argv = (
            *(cargo, "install", supply.package, "--version", supply.version, "--locked"),
            *("--features", "http3", "--root", folder),
        )
        # The staging folder also contains the target folder, so that an interrupted build leaves
        # nothing.
        env = {**os.environ, "CARGO_TARGET_DIR": str(Path(folder) / "target")}
        return _build(supply, argv, env, Path(folder) / "bin" / supply.name)


def build_with_go(supply: Supply) -> Path:
    """Build without C, so that it runs on hosts with another C library."""
    go = _find_program("go", supply, "Go (https://go.dev/dl)")
    kept = {name: value for name, value in os.environ.items() if name not in GO_ELSEWHERE}
    with open_staging(supply) as folder:
        env = {**kept, "GOBIN": folder, "GOFLAGS": "-trimpath", "CGO_ENABLED": "0"}
        argv = (go, "install", f"{supply.package}@v{supply.version}")
        return _build(supply, argv, env, Path(folder) / supply.name)


def _find_program(name: str, supply: Supply, where: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise ToolError(
            f"There is no {supply.name} {supply.least} or newer on PATH, and no {name} to build it "
            f"with. Install {supply.name} ({supply.page}) or {where}, or set {supply.setting}."
        )
    return path


def _build(supply: Supply, argv: Sequence[str], env: Mapping[str, str], binary: Path) -> Path:
    log = get_tool_folder(supply).with_name(f"{supply.label}-build.log")
    print_message(
        f"building {supply.name} {supply.version}, once for this user. It takes {supply.cost} "
        f"on two cores. Log: {log}"
    )
    began = time.monotonic()
    with log.open("wb") as out:
        status = subprocess.run(
            argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, env=env
        ).returncode
    if status != 0 or not supply.is_fit(binary):
        raise ToolError(
            f"{Path(argv[0]).name} could not build {supply.name} (status {status}):\n"
            f"{read_tail(log)}\n"
            f"Without a network, build {supply.name} {supply.version} on another machine of this "
            f"kind and set {supply.setting} to the file."
        )
    print_message(f"built {supply.name} {supply.version} in {time.monotonic() - began:.0f} s")
    return keep(supply, binary)
