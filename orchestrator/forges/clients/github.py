"""GitHub and GitHub Enterprise Server."""

from orchestrator.forges.clients.base import Forge, PullFacts, Status

#: GitHub refuses longer descriptions of a status.
MOST_TEXT = 140


class GitHub(Forge):
    def pull_request(self, number: int) -> PullFacts:
        pull = self.call("GET", f"{self._path}/pulls/{number}")
        head, base = pull["head"], pull["base"]
        # The repository of a fork may have been deleted.
        home = (head.get("repo") or {}).get("full_name", "")
        return PullFacts(
            head_sha=head["sha"],
            base_branch=base["ref"],
            from_fork=home.lower() != base["repo"]["full_name"].lower(),
        )

    def pull_ref(self, number: int) -> str:
        return f"refs/pull/{number}/head"

    def write_comment(self, number: int, comment_id: str, text: str) -> str:
        if comment_id:
            path = f"{self._path}/issues/comments/{comment_id}"
            return str(self.call("PATCH", path, {"body": text})["id"])
        path = f"{self._path}/issues/{number}/comments"
        return str(self.call("POST", path, {"body": text})["id"])

    def set_status(self, sha: str, status: Status) -> None:
        data = {
            "state": status.state,
            "context": status.context,
            "description": status.text[:MOST_TEXT],
            "target_url": status.url,
        }
        self.call("POST", f"{self._path}/statuses/{sha}", data)

    def credentials(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}", "X-GitHub-Api-Version": "2022-11-28"}

    @property
    def _path(self) -> str:
        return f"/repos/{self.repository}"
