"""Facts of the git checkout in the working directory."""

from __future__ import annotations

import subprocess

from .errors import NoAnswerError


def resolve_head() -> str:
    """Return the commit that is checked out."""
    done = _run_git("rev-parse", "--verify", "HEAD^{commit}")
    if done.returncode:
        raise NoAnswerError(
            f"no commit is checked out here ({done.stderr.strip()}); give --contender"
        )
    return done.stdout.strip()


def merge_base(branch: str, contender: str) -> str:
    """Return where `contender` left `branch`; for a commit of the branch, its first parent."""
    tip = _read_tip(branch)
    done = _run_git("merge-base", tip, contender)
    base = done.stdout.strip()
    if done.returncode or not base:
        raise NoAnswerError(_explain_missing_commit(branch, contender))
    if base != _resolve_commit(contender):
        return base
    parent = _run_git("rev-parse", "--verify", "--quiet", f"{base}^1")
    if parent.returncode:
        raise NoAnswerError(f"{base[:10]} has no parent here to compare with. {_fetch_more()}")
    return parent.stdout.strip()


def _read_tip(branch: str) -> str:
    """Prefer the remote's branch: a CI has no local branch of that name, or an old one."""
    for name in (f"refs/remotes/origin/{branch}", branch):
        done = _run_git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        if not done.returncode:
            return done.stdout.strip()
    raise NoAnswerError(f"there is no branch {branch} in this checkout. {_fetch_more()}")


def _resolve_commit(name: str) -> str:
    done = _run_git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    if done.returncode:
        raise NoAnswerError(f"the commit {name} is not in this checkout. {_fetch_more()}")
    return done.stdout.strip()


def _explain_missing_commit(branch: str, contender: str) -> str:
    return f"{branch} and {contender[:10]} have no commit in common here. {_fetch_more()}"


def _fetch_more() -> str:
    if _run_git("rev-parse", "--is-shallow-repository").stdout.strip() == "true":
        return (
            "The clone is shallow: fetch all of it (GitHub: fetch-depth: 0; GitLab: GIT_DEPTH: 0; "
            "by hand: git fetch --unshallow), or name the --baseline yourself"
        )
    return "Fetch it (git fetch origin), or name the --baseline yourself"


def _run_git(*words: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(["git", *words], capture_output=True, text=True, check=False)
    except OSError as error:
        raise NoAnswerError(f"git cannot be started ({error}); install it") from error
