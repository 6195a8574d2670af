"""Archives of the files of a commit in a bare repository."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from orchestrator.benchmarks.git_calls import call_git

#: Time limit of an archive or a bundle.
PACK_TIMEOUT_S = 1800.0
#: A commit is measured with all its files as they are, as in a checkout.
_ATTRIBUTES = "* -export-ignore -export-subst\n"


def write_archive(
    folder: Path, sha: str, target: BinaryIO, *, most_bytes: int, check: Callable[[], None]
) -> None:
    """Write the files of a commit as a .tar.gz, with the same bytes each time.

    `most_bytes` limits the unpacked files. `check` is called often, and ends the call if it raises.
    """
    attributes = folder / "info" / "attributes"
    attributes.parent.mkdir(exist_ok=True)
    attributes.write_text(_ATTRIBUTES)
    with gzip.GzipFile("", "wb", 6, target, mtime=0) as packed:
        call_git(
            "--git-dir", str(folder), "archive", "--format=tar", sha, target=packed,
            timeout_s=PACK_TIMEOUT_S, most_bytes=most_bytes, limit="PITWALL_GIT_PACKED_LIMIT_MIB",
            size_check=check,
        )  # fmt: skip
