"""The URL of a submodule is resolved as git does, and chosen by whoever can push."""

import pytest

from orchestrator.benchmarks.submodule_urls import may_send_credential, resolve_submodule_url
from orchestrator.core.errors import InvalidRequestError

WEB = "https://git.example/team/app.git"
SHORT = "git@git.example:team/app.git"


@pytest.mark.parametrize(
    ("parent", "url", "resolved"),
    [
        (WEB, "../lib.git", "https://git.example/team/lib.git"),
        (WEB, "../../other/lib", "https://git.example/other/lib"),
        (WEB, "./lib", "https://git.example/team/app.git/lib"),
        (f"{WEB}/", ".././lib", "https://git.example/team/lib"),
        (SHORT, "../lib.git", "git@git.example:team/lib.git"),
        ("ssh://git@git.example:22/team/app", "../lib", "ssh://git@git.example:22/team/lib"),
        ("/srv/git/app", "../lib", "/srv/git/lib"),
        ("/srv/git/app", "/srv/git/lib", "/srv/git/lib"),
        (WEB, "https://other.example/lib.git", "https://other.example/lib.git"),
        ("/srv/git/app", "https://other.example/lib.git", "https://other.example/lib.git"),
    ],
)
def test_a_url_is_resolved_against_its_parent(parent: str, url: str, resolved: str) -> None:
    assert resolve_submodule_url(parent, url, allow_local=True) == resolved


@pytest.mark.parametrize("parent", [WEB, SHORT, "/srv/git/app"])
@pytest.mark.parametrize(
    "url",
    [
        "file:///etc", "ext::sh -c touch% /tmp/x", "--upload-pack=touch /tmp/x", "-oProxyCommand=x",
        "ssh://-oProxyCommand=x/y", "git://git.example/lib", "ftp://git.example/lib", "/etc",
        "C:\\lib", "lib", "host:lib", "fd::3", "https://user:word@git.example/lib", "",
        "https://git.exa%6dple/lib", "../../../../etc", "../x/../../../etc",
        "https://git.example/li b", "http::https://git.example/lib",
    ],
)  # fmt: skip
def test_other_kinds_of_urls_are_refused(parent: str, url: str) -> None:
    with pytest.raises(InvalidRequestError, match="its URL"):
        resolve_submodule_url(parent, url, allow_local=True)


def test_a_local_path_needs_the_permission_of_the_installation() -> None:
    with pytest.raises(InvalidRequestError, match="its URL leads out"):
        resolve_submodule_url("/srv/git/app", "../lib", allow_local=False)


@pytest.mark.parametrize(
    ("project", "url", "sent"),
    [
        (WEB, "https://git.example/team/lib.git", True),
        (WEB, "https://GIT.example:443/team/sub/lib", True),
        (WEB, "https://git.example/team2/lib.git", False),
        (WEB, "https://git.example/other/lib.git", False),
        (WEB, "https://git.example/team/../other/lib.git", False),
        (WEB, "https://git.example/team/%2e%2e/other/lib.git", False),
        (WEB, "http://git.example/team/lib.git", False),
        (WEB, "https://git.example:8443/team/lib.git", False),
        (WEB, "https://git.example.evil/team/lib.git", False),
        (WEB, "git@git.example:team/lib.git", False),
        (SHORT, "git@git.example:team/lib.git", True),
        (SHORT, "ssh://git@git.example/team/lib.git", True),
        (SHORT, "git@git.example:other/lib.git", False),
        (SHORT, "git@other.example:team/lib.git", False),
        ("/srv/git/app", "https://git.example/team/lib.git", False),
    ],
)
def test_a_credential_stays_in_the_folder_of_the_project(
    project: str, url: str, sent: bool
) -> None:
    assert may_send_credential(project, url) is sent
