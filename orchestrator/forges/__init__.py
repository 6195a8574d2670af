"""GitHub, GitLab and Gitea: their webhooks about pushes and comments, and Pitwall's answers."""
