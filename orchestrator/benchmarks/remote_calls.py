"""Calls of git that connect to the server of a repository."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.benchmarks.git_access import Access, prepare_access, record_host_key
from orchestrator.benchmarks.git_calls import build_git_error, call_git
from orchestrator.benchmarks.remotes import check_url, open_route, parse_place
from orchestrator.core.errors import InvalidRequestError

_LOCKED = re.compile(rb"could not read Username|Authentication failed|Permission denied")
_ADVICE = (
    "if the repository is private, a maintainer can set a deploy key or a token in the project's "
    "settings, under Repository access"
)
_USER_INFO = re.compile(rb"://[^/\s]*@")


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """The location of a repository, its credential, and the permitted connections of git.

    `access` is called before each call of git. `allowed`: internal networks that the server may be
    in; `proxy` as for `way_to`. `private`: our folder, which no local repository may be in.
    """

    url: str
    allow_local: bool
    allowed: Sequence[str] = ()
    proxy: str = ""
    private: Path | None = None
    access: Callable[[], Access] = Access

    def call(self, *args: str, config: dict[str, str], **limits: Any) -> None:
        """Call git with these arguments, and limits as for `call_git`.

        Raise InvalidRequestError if it failed, with a message that does not contain the URL.
        """
        check_url(self.url, allow_local=self.allow_local)
        if self.url.startswith("/"):
            self.refuse_private()
            done = call_git(
                *args, config=config, variables={"GIT_ALLOW_PROTOCOL": "file"}, check=False,
                **limits,
            )  # fmt: skip
            if done.returncode:
                raise build_git_error(done._replace(stderr=self._without_url(done.stderr)))
            return
        access, place = self.access(), parse_place(self.url)
        with (
            prepare_access(access, place) as prepared,
            open_route(
                place, self.allowed, ssh_options=prepared.ssh_options, proxy=self.proxy
            ) as way,
        ):
            done = call_git(
                *args,
                config={**config, **prepared.config, **way.config},
                variables={"GIT_ALLOW_PROTOCOL": place.scheme, **way.variables},
                check=False,
                **limits,
            )
            if place.scheme == "ssh" and way.relay is not None:
                record_host_key(access, place, prepared, way.relay.port, done)
            if done.returncode:
                problem = way.relay.problem if way.relay else ""
                advice = _ADVICE if _LOCKED.search(done.stderr) else ""
                words = done._replace(stderr=self._without_url(done.stderr))
                raise build_git_error(words, problem, advice)

    def refuse_private(self) -> None:
        """Reject a path in Pitwall's data folder, which contains the mirrors of all teams."""
        path = Path(self.url).resolve()
        if self.private is not None and path.is_relative_to(self.private.resolve()):
            raise InvalidRequestError(
                "this path is in Pitwall's own data folder; name the repository's server instead",
                field="repository_url",
            )

    def _without_url(self, stderr: bytes) -> bytes:
        """Remove the URL: users who may not know it see the messages."""
        for url in (self.url, self.url.removesuffix(".git")):
            stderr = stderr.replace(url.encode(), b"the repository")
        return _USER_INFO.sub(b"://", stderr)
