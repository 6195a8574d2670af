"""GitHub, GitLab and Gitea: what they tell of pushes and comments, and what they are told."""
