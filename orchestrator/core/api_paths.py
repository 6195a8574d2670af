"""The addresses of programs: their requests are counted by token, and not as those of pages."""

API = "/api/"
#: Where clients of Codespeed send results.
CODESPEED = "/result/add/"


def is_for_programs(path: str) -> bool:
    return path.startswith((API, CODESPEED))
