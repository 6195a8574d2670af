"""Gitea and Forgejo: the API of GitHub in what is needed here, but for how the token is sent."""

from orchestrator.forges.clients.github import GitHub


class Gitea(GitHub):
    def credentials(self) -> dict[str, str]:
        return {"Authorization": f"token {self.token}"}
