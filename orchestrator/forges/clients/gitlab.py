"""GitLab: pull requests are merge requests there, and comments are notes."""

from urllib.parse import quote

from orchestrator.forges.clients.base import Forge, PullFacts, Status

_STATES = {"failure": "failed", "error": "canceled"}


class GitLab(Forge):
    def pull_request(self, number: int) -> PullFacts:
        merge_request = self.call("GET", f"{self._path}/merge_requests/{number}")
        return PullFacts(
            head_sha=merge_request["sha"],
            base_branch=merge_request["target_branch"],
            from_fork=merge_request["source_project_id"] != merge_request["target_project_id"],
        )

    def pull_ref(self, number: int) -> str:
        return f"refs/merge-requests/{number}/head"

    def write_comment(self, number: int, comment_id: str, text: str) -> str:
        path = f"{self._path}/merge_requests/{number}/notes"
        if comment_id:
            return str(self.call("PUT", f"{path}/{comment_id}", {"body": text})["id"])
        return str(self.call("POST", path, {"body": text})["id"])

    def set_status(self, sha: str, status: Status) -> None:
        data = {
            "state": _STATES.get(status.state, status.state),
            "name": status.context,
            "description": status.text[:255],
            "target_url": status.url,
        }
        self.call("POST", f"{self._path}/statuses/{sha}", data)

    def credentials(self) -> dict[str, str]:
        return {"PRIVATE-TOKEN": self.token}

    @property
    def _path(self) -> str:
        return f"/projects/{quote(self.repository, safe='')}"
