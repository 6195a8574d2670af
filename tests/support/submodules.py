"""Repositories with submodules for tests."""

from collections.abc import Mapping
from pathlib import Path

from tests.support.factories import git


def commit_submodules(
    folder: Path, links: Mapping[str, tuple[str, str]], *, number: int = 50, listed: str = ""
) -> str:
    """Commit submodules: path → (URL, hash); return the hash of the commit.

    `listed`: the text of `.gitmodules` instead of the usual one.
    """
    text = listed or "".join(
        f'[submodule "{path}"]\n\tpath = {path}\n\turl = {url}\n'
        for path, (url, _) in links.items()
    )
    (folder / ".gitmodules").write_text(text)
    git(folder, "add", ".gitmodules")
    for path, (_, sha) in links.items():
        git(folder, "update-index", "--add", "--cacheinfo", f"160000,{sha},{path}")
    git(folder, "commit", "--quiet", "-m", f"submodules {number}", at=number * 60)
    return git(folder, "rev-parse", "HEAD")
