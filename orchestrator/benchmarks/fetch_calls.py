"""The call of git that fetches refs into a bare repository, within the limits of a mirror."""

from collections.abc import Callable, Sequence
from pathlib import Path

from orchestrator.benchmarks.mirror_limits import MirrorLimits
from orchestrator.benchmarks.remote_calls import Remote


def fetch_refs(
    remote: Remote,
    folder: Path,
    refs: Sequence[str],
    *options: str,
    limits: MirrorLimits,
    timeout_s: float,
    on_progress: Callable[[str], None] | None = None,
) -> None:
    """Fetch refspecs into the repository in `folder`, which belongs to the mirror of `limits`.

    Raise InvalidRequestError with git's message, or the error of an exceeded limit. The caller
    holds the mirror's lock.
    """
    remote.call(
        "--git-dir", str(folder), "fetch", "--progress", "--force", *options, "--", remote.url,
        *refs,
        config={
            # One pack, because loose objects would be written one by one.
            "fetch.unpackLimit": "1",
            # `Repository.collect_garbage` does this, outside the limits.
            "gc.auto": "0",
            "maintenance.auto": "false",
        },
        timeout_s=timeout_s,
        on_progress=on_progress,
        # The size check must apply first: its message states what to do.
        file_bytes=limits.mirror_bytes + (1 << 30),
        size_check=limits.repeated_check(),
    )  # fmt: skip
    limits.check()
