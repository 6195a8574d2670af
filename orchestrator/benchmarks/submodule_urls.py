"""The URLs of submodules, which anybody who can push to a measured repository chooses.

A relative URL is resolved as git does, against the URL of the repository that contains it.
"""

import re
from pathlib import PurePosixPath
from typing import NamedTuple

from orchestrator.benchmarks.remotes import ServerAddress, parse_place
from orchestrator.core.errors import InvalidRequestError

_RELATIVE = ("./", "../")
_ADVICE = (
    "expected https://host/path, a relative URL such as ../library.git, or an SSH URL on the "
    "server of the project"
)
_WITH_SCHEME = re.compile(r"(?P<server>[a-z]+://[^/]+)(?P<path>/.*)")
_SHORT = re.compile(r"(?P<server>[^/:]+:)(?P<path>.*)")


class RepositoryPlace(NamedTuple):
    """Server and folder of a repository; `folder` is the path without its last part."""

    server: ServerAddress
    folder: str
    path: str


def resolve_submodule_url(parent: str, url: str, *, allow_local: bool) -> str:
    """Return the absolute URL of a submodule of the repository at `parent`.

    Only https, http and ssh are possible, each without a password. With `allow_local`, a local
    repository can name others in its own parent folder. Raise InvalidRequestError for any other.
    """
    resolved = _resolve_relative(parent, url) if url.startswith(_RELATIVE) else url
    if ".." in resolved.split("/"):
        raise InvalidRequestError(f"its URL has `..` behind a name: {_ADVICE}")
    if parent.startswith("/") and resolved.startswith("/"):
        around = PurePosixPath(parent).parent
        if allow_local and PurePosixPath(resolved).is_relative_to(around):
            return resolved
        raise InvalidRequestError(f"its URL leads out of the folder of the project: {_ADVICE}")
    try:
        parse_place(resolved)
    except InvalidRequestError as error:
        raise InvalidRequestError(f"its URL is refused: {_ADVICE}") from error
    return resolved


def may_send_credential(project: str, url: str) -> bool:
    """Return whether the credential of a project may be sent to the repository at `url`.

    It must be on the same server, by the same scheme and port, in the folder of the project's
    repository or below it. A path that a server could read in two ways is not.
    """
    if project.startswith("/") or url.startswith("/"):
        return False
    own, other = find_place(project), find_place(url)
    is_plain = "%" not in other.path and ".." not in other.path.split("/")
    return own.server == other.server and is_plain and other.path.startswith(own.folder)


def find_place(url: str) -> RepositoryPlace:
    server = parse_place(url)
    match = _WITH_SCHEME.fullmatch(url) or _SHORT.fullmatch(url)
    # `git@host:group/name` is `ssh://git@host/group/name` on all forges.
    path = "/" + match["path"].strip("/") if match else "/"
    server = server._replace(host=server.host.lower())
    return RepositoryPlace(server, f"{path.rpartition('/')[0]}/", path)


def _resolve_relative(parent: str, url: str) -> str:
    """Return `url` joined to `parent`, whose path loses one part for each `../`."""
    match = _WITH_SCHEME.fullmatch(parent) or _SHORT.fullmatch(parent)
    server, path = (match["server"], match["path"]) if match else ("", parent)
    parts, rest = path.rstrip("/").split("/"), url
    while rest.startswith(_RELATIVE):
        step, _, rest = rest.partition("/")
        if step == ".":
            continue
        if not [part for part in parts if part]:
            raise InvalidRequestError("its URL leads out of the server of the repository")
        parts.pop()
    return f"{server}{'/'.join([*parts, rest])}"
