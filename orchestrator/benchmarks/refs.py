"""Resolve branches, tags and hashes of a project's repository."""

import re

from orchestrator.benchmarks.fetched_names import check_fetched
from orchestrator.benchmarks.filing import file_branch, file_default_branch
from orchestrator.benchmarks.models import Commit, Project
from orchestrator.benchmarks.services import repository_of

#: A name or hash, and the steps from it, such as `~1`.
_PARTS = re.compile(r"^([^~^]*)(.*)$", re.DOTALL)
_HASH = re.compile(r"^[0-9a-f]{7,40}$")


class Refs:
    """Resolves names in the mirror; one object resolves each name once."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._bases: dict[str, str] = {}

    def commit(self, ref: str) -> Commit:
        """Return the commit of a branch, tag or hash.

        A new commit is stored together with those before it, along the default branch or back to
        it. Raise InvalidRequestError if there is none, and FetchRunningError if a fetch has to end
        first.
        """
        ref = ref.strip()
        return self._known(ref) or self._filed(self._resolve(ref))

    def _resolve(self, ref: str) -> str:
        repository = repository_of(self._project)
        parts = _PARTS.match(ref)
        base, way = (parts[1], parts[2]) if parts else (ref, "")
        if base not in self._bases:
            found = repository.find(base)
            is_hash = found is not None and _HASH.match(base) and found.startswith(base)
            if not is_hash:
                check_fetched(self._project, known=found is not None)
            # A fetch may have ended since the first attempt.
            self._bases[base] = repository.resolve(base)
        return repository.resolve(f"{self._bases[base]}{way}")

    def _filed(self, sha: str) -> Commit:
        known = self._known(sha)
        if known is None:
            file_default_branch(self._project, repository_of(self._project))
            known = self._known(sha)
        if known is None:
            file_branch(self._project, repository_of(self._project), sha)
            known = self._project.commits.get(sha=sha)
        return known

    def _known(self, sha: str) -> Commit | None:
        return self._project.commits.filter(sha=sha).first()


def commit_of_ref(*, project: Project, ref: str) -> Commit:
    """Return `Refs.commit` of a single name."""
    return Refs(project).commit(ref)
