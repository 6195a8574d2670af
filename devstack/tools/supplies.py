"""The load tools that can be downloaded or built here, with their versions."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from agents.hostagent.platform.program_versions import read_tool_version
from devstack.errors import DevstackError


class ToolError(DevstackError):
    """A tool is not available; the text says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Supply:
    """`version` is what is built; `flavour` distinguishes it from builds with other features.

    `package` is the name for the builder, `cost` the duration of a build on two cores. `oldest` is
    the lowest version of an existing binary that is accepted.
    """

    name: str
    version: str
    oldest: tuple[int, int, int]
    package: str
    page: str
    cost: str
    flavour: str = ""

    @property
    def setting(self) -> str:
        return f"PITWALL_{self.name.upper()}"

    @property
    def label(self) -> str:
        """The name of the build in the cache: `oha-1.16.0-http3`."""
        return f"{self.name}-{self.version}{self.flavour}"

    @property
    def least(self) -> str:
        return ".".join(map(str, self.oldest))

    def read_version(self, binary: Path) -> tuple[int, ...] | None:
        """Return (1, 16, 0) for version 1.16.0; None if the binary fails or reports no version."""
        try:
            version = read_tool_version(self.name, binary, timeout_s=20)
        except OSError:
            return None
        parts = (version or "").split(".")
        return tuple(map(int, parts)) if all(part.isdigit() for part in parts) else None

    def is_fit(self, binary: Path) -> bool:
        version = self.read_version(binary)
        return version is not None and version >= self.oldest

    def checked(self, path: Path) -> Path:
        """Return the binary of the setting. Raise ToolError if it is not suitable."""
        version = self.read_version(path)
        if version is None:
            raise ToolError(
                f"{self.setting}={path} does not run as {self.name}. Name another file or unset it."
            )
        if version < self.oldest:
            raise ToolError(
                f"{self.setting}={path} is {self.name} {'.'.join(map(str, version))}; "
                f"Pitwall needs {self.least} or newer."
            )
        return path.absolute()

    def named(self) -> Path | None:
        """Return the binary that the environment names, checked."""
        path = os.environ.get(self.setting)
        return self.checked(Path(path)) if path else None


_ALL = (
    Supply(
        name="oha",
        version="1.16.0",
        flavour="-http3",
        # Before 1.14 --latency-correction was inverted together with -n and -q.
        oldest=(1, 14, 0),
        package="oha",
        page="https://github.com/hatoo/oha",
        cost="390 CPU-seconds: about 4 minutes",
    ),
    Supply(
        name="ghz",
        version="0.93.0",
        oldest=(0, 93, 0),
        package="github.com/bojand/ghz/cmd/ghz",
        page="https://ghz.sh",
        cost="40 CPU-seconds: about half a minute",
    ),
    Supply(
        name="k6",
        version="1.8.1",
        oldest=(1, 8, 0),
        package="go.k6.io/k6",
        page="https://k6.io",
        cost="90 CPU-seconds: about a minute",
    ),
)
SUPPLIES: Mapping[str, Supply] = MappingProxyType({supply.name: supply for supply in _ALL})
