"""What forges send: whether it is from there, and what is read from it."""

import hashlib
import hmac
import json
from typing import Any

import pytest

from orchestrator.core.errors import InvalidRequestError
from orchestrator.forges.notices import Comment, Notice, Push, is_genuine, read_notice

SECRET = "pwforge_abc"
BODY = b'{"ref": "refs/heads/main"}'
SIGNED = hmac.new(SECRET.encode(), BODY, hashlib.sha256).hexdigest()


@pytest.mark.parametrize(
    ("kind", "headers"),
    [
        ("github", {"X-Hub-Signature-256": f"sha256={SIGNED}"}),
        ("gitea", {"X-Hub-Signature-256": f"sha256={SIGNED}"}),
        ("gitea", {"X-Gitea-Signature": SIGNED}),
        ("gitlab", {"X-Gitlab-Token": SECRET}),
    ],
)
def test_a_webhook_with_a_valid_signature_is_accepted(kind: str, headers: dict[str, str]) -> None:
    assert is_genuine(kind, SECRET, headers, BODY)
    wrong = {
        name: value[:-1] + ("0" if value[-1] != "0" else "1") for name, value in headers.items()
    }
    assert not is_genuine(kind, SECRET, wrong, BODY)
    assert not is_genuine(kind, "other", headers, BODY)


@pytest.mark.parametrize(
    ("kind", "headers"),
    [
        ("github", {}),
        ("github", {"X-Hub-Signature-256": ""}),
        ("github", {"X-Hub-Signature-256": "sha256=ü"}),
        ("github", {"X-Hub-Signature": "sha1=abc"}),
        ("github", {"X-Gitlab-Token": SECRET}),
        ("github", {"X-Gitea-Signature": SIGNED}),
        ("gitea", {"X-Gitea-Signature": ""}),
        ("gitlab", {}),
        ("gitlab", {"X-Gitlab-Token": ""}),
        ("gitlab", {"X-Hub-Signature-256": f"sha256={SIGNED}"}),
    ],
)
def test_a_webhook_with_an_invalid_signature_is_refused(kind: str, headers: dict[str, str]) -> None:
    assert not is_genuine(kind, SECRET, headers, BODY)


def test_a_signature_of_another_body_is_refused() -> None:
    headers = {"X-Hub-Signature-256": f"sha256={SIGNED}"}
    assert not is_genuine("github", SECRET, headers, BODY + b" ")


def comment_on(kind: str, text: str, **more: Any) -> Notice:
    """As the three forges send a new comment on pull request 5."""
    if kind == "gitlab":
        note = {"id": 77, "note": text, "noteable_type": "MergeRequest", "action": "create"}
        data: dict[str, Any] = {
            "object_kind": "note",
            "project": {"path_with_namespace": "ada/server"},
            "user": {"username": "grace"},
            "merge_request": {"iid": 5},
            "object_attributes": {**note, **more},
        }
        headers = {"X-Gitlab-Event-UUID": "1-2-3"}
    else:
        data = {
            "action": "created",
            "issue": {"number": 5, "pull_request": {"url": "https://x"}},
            "comment": {"id": 77, "body": text, "user": {"login": "grace"}},
            "repository": {"full_name": "ada/server"},
            **more,
        }
        own = "GitHub" if kind == "github" else "Gitea"
        headers = {f"X-{own}-Event": "issue_comment", f"X-{own}-Delivery": "1-2-3"}
    return read_notice(kind, headers, json.dumps(data).encode())


@pytest.mark.parametrize("kind", ["github", "gitea", "gitlab"])
def test_a_comment_is_parsed(kind: str) -> None:
    comment = comment_on(kind, "Please\r\n/benchmark hello\r\n/benchmark  static-files \nthanks")

    assert isinstance(comment, Comment)
    assert (comment.number, comment.note_id, comment.user) == (5, "77", "grace")
    assert comment.benchmarks == ("hello", "static-files")
    assert (comment.repository, comment.delivery_id) == ("ada/server", "1-2-3")


@pytest.mark.parametrize("kind", ["github", "gitea", "gitlab"])
@pytest.mark.parametrize(
    "text",
    ["try /benchmark hello", "> /benchmark hello", "/benchmark", "/benchmarks hello",
     "/benchmark ../x", "/benchmark Hello", "/benchmark hello; rm -rf /", "/benchmark\nhello"],
)  # fmt: skip
def test_a_comment_without_a_command_is_ignored(kind: str, text: str) -> None:
    assert not isinstance(comment_on(kind, text), Comment)


def test_edited_comments_and_comments_on_issues_are_ignored() -> None:
    text = "/benchmark hello"
    assert not isinstance(comment_on("github", text, action="edited"), Comment)
    assert not isinstance(comment_on("github", text, issue={"number": 5}), Comment)
    assert not isinstance(comment_on("gitlab", text, action="update"), Comment)
    assert not isinstance(comment_on("gitlab", text, noteable_type="Issue"), Comment)


def test_a_push_is_parsed() -> None:
    data = {"ref": "refs/heads/feature/x", "repository": {"full_name": "ada/server"}}
    body = json.dumps(data).encode()
    push = read_notice("github", {"X-GitHub-Event": "push"}, body)
    tag = json.dumps({**data, "ref": "refs/tags/v1"}).encode()

    assert isinstance(push, Push)
    assert push.branch == "feature/x"
    assert push.delivery_id == hashlib.sha256(body).hexdigest()
    assert read_notice("gitea", {"X-Gitea-Event": "push"}, tag).branch == ""  # type: ignore[attr-defined]


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b"1", b"\xff", b'"x"', b"[" * 100_000])
@pytest.mark.parametrize("kind", ["github", "gitlab"])
def test_an_invalid_payload_is_refused(kind: str, body: bytes) -> None:
    with pytest.raises(InvalidRequestError, match="application/json"):
        read_notice(kind, {"X-GitHub-Event": "push"}, body)
