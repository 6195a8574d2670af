"""Repositories of the suites of the catalogue: `catalogue:NAME` is the address of a suite's files.

The files come with Pitwall, so that a suite runs without a repository of the team. The fetch worker
commits them to a bare repository in the data folder, before each fetch of a project of the suite.
"""

import re
from pathlib import Path

from django.conf import settings

from orchestrator.benchmarks.catalogue import get_suite_folder
from orchestrator.benchmarks.git_calls import call_git, is_repository
from orchestrator.benchmarks.mirrors import lock_mirror
from orchestrator.benchmarks.remotes import check_url
from orchestrator.core.errors import InvalidRequestError, NotFoundError

BRANCH = "main"
_ADDRESS = re.compile(r"catalogue:(?P<suite>[a-z0-9][a-z0-9-]{0,59})")
#: Files that a manual run of a suite leaves behind.
_NOT_SOURCE = ("__pycache__/", "*.pyc", "node_modules/", "target/", ".venv/")
_AUTHOR = {"NAME": "Pitwall", "EMAIL": "catalogue@pitwall.invalid"}


def build_suite_address(suite: str) -> str:
    return f"catalogue:{suite}"


def check_repository_address(url: str) -> None:
    """Raise InvalidRequestError unless it is the address of a suite, or one that git may fetch."""
    suite = _parse_suite(url)
    if suite is None:
        check_url(url, allow_local=settings.ALLOW_LOCAL_REPOSITORIES)
        return
    try:
        get_suite_folder(suite)
    except NotFoundError as error:
        raise InvalidRequestError(str(error), field="repository_url") from error


def find_suite_repository(url: str) -> Path | None:
    """Return the repository of a suite in the data folder; None for the address of another one."""
    suite = _parse_suite(url)
    return Path(settings.DATA_DIR) / "suites" / f"{suite}.git" if suite else None


def update_suite_repository(url: str) -> None:
    """Commit the present files of a suite, if they have changed; do nothing for other addresses.

    Raise NotFoundError if the catalogue has no such suite, and MirrorBusyError while another
    process does the same.
    """
    suite, repository = _parse_suite(url), find_suite_repository(url)
    if suite is None or repository is None:
        return
    folder = get_suite_folder(suite)
    with lock_mirror(repository):
        if not is_repository(repository):
            options = ("--quiet", "--bare", "--template=", f"--initial-branch={BRANCH}")
            call_git("init", *options, str(repository))
        (repository / "info").mkdir(exist_ok=True)
        (repository / "info" / "exclude").write_text("\n".join(_NOT_SOURCE))
        places = ("-C", str(folder), "--git-dir", str(repository), "--work-tree", str(folder))
        call_git(*places, "add", "--all", ".")
        if call_git(*places, "status", "--porcelain").stdout:
            call_git(
                *places, "commit", "--quiet", "-m", f"The suite {suite}", variables=_build_author()
            )


def _parse_suite(url: str) -> str | None:
    match = _ADDRESS.fullmatch(url)
    return match["suite"] if match else None


def _build_author() -> dict[str, str]:
    return {
        f"GIT_{role}_{name}": value
        for role in ("AUTHOR", "COMMITTER")
        for name, value in _AUTHOR.items()
    }
