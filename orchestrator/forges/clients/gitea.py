"""Gitea and Forgejo: GitHub's API as far as needed here, except how the token is sent."""

from orchestrator.forges.clients.github import GitHub


class Gitea(GitHub):
    def credentials(self) -> dict[str, str]:
        return {"Authorization": f"token {self.token}"}
