"""Verify and parse the webhooks of forges. No database.

Only names are used from a payload. The repository must be the configured one, and the forge's API
is asked for the head.
"""

import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.core.errors import InvalidRequestError

_COMMAND = re.compile(r"^/benchmark[ \t]+([a-z0-9][a-z0-9-]{0,59})[ \t]*\r?$", re.MULTILINE)
#: The most benchmarks of one comment.
MOST_COMMANDS = 3
_ID = re.compile(r"^[A-Za-z0-9_.:-]{1,100}$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """`repository` is the name in the payload, to be compared with the configured one."""

    event: str
    delivery_id: str
    repository: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Push(Notice):
    """`branch` is empty for a tag."""

    branch: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment(Notice):
    """A new comment on a pull request, with `/benchmark <name>` on a separate line."""

    number: int
    note_id: str
    user: str
    benchmarks: tuple[str, ...]


def is_genuine(kind: str, secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Return whether the sender knows the secret; compared in constant time."""
    if kind == "gitlab":
        # GitLab sends the secret itself.
        return hmac.compare_digest(_encode_text(headers.get("X-Gitlab-Token", "")), secret.encode())
    signed = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    given = headers.get("X-Hub-Signature-256", "").removeprefix("sha256=")
    if kind == "gitea" and not given:
        given = headers.get("X-Gitea-Signature", "")
    return hmac.compare_digest(_encode_text(given), signed.encode())


def read_notice(kind: str, headers: Mapping[str, str], body: bytes) -> Notice:
    """Return a Push, a Comment, or a Notice of another event.

    Raise InvalidRequestError otherwise.
    """
    try:
        data = json.loads(body)
        return _READERS[kind](headers, body, data)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidRequestError(
            "expected the payload of a push or of a comment, as JSON; set the webhook's content "
            "type to application/json"
        ) from error


def _read_github_notice(headers: Mapping[str, str], body: bytes, data: dict[str, Any]) -> Notice:
    event = headers.get("X-GitHub-Event") or headers.get("X-Gitea-Event") or ""
    given = headers.get("X-GitHub-Delivery") or headers.get("X-Gitea-Delivery")
    first = _read_common_fields(
        event, given, body, (data.get("repository") or {}).get("full_name", "")
    )
    if event == "push":
        return Push(**first, branch=_parse_branch(data["ref"]))
    # Gitea has a separate event name for a comment on a pull request.
    on_pull = event in {"issue_comment", "pull_request_comment"}
    pull = on_pull and (data.get("is_pull") or (data.get("issue") or {}).get("pull_request"))
    if not pull or data.get("action") != "created":
        return Notice(**first)
    note = data["comment"]
    return _build_comment(
        first, data["issue"]["number"], note["id"], note["user"]["login"], note["body"]
    )


def _read_gitlab_notice(headers: Mapping[str, str], body: bytes, data: dict[str, Any]) -> Notice:
    event = data["object_kind"]
    given = headers.get("Idempotency-Key") or headers.get("X-Gitlab-Event-UUID")
    project = (data.get("project") or {}).get("path_with_namespace", "")
    first = _read_common_fields(event, given, body, project)
    if event in {"push", "tag_push"}:
        return Push(**first, branch=_parse_branch(data["ref"]))
    note = data.get("object_attributes") or {}
    is_new = event == "note" and note.get("action", "create") == "create"
    if not is_new or note.get("noteable_type") != "MergeRequest":
        return Notice(**first)
    number, user = data["merge_request"]["iid"], data["user"]["username"]
    return _build_comment(first, number, note["id"], user, note["note"])


def _build_comment(
    first: dict[str, str], number: object, note: object, user: str, text: str
) -> Notice:
    named = tuple(dict.fromkeys(_COMMAND.findall(text)))[:MOST_COMMANDS]
    known = isinstance(number, int) and isinstance(note, int) and 0 < number < 2**31
    if not named or not known:
        return Notice(**first)
    return Comment(
        event=first["event"],
        delivery_id=first["delivery_id"],
        repository=first["repository"],
        number=int(str(number)),
        note_id=str(note)[:40],
        user=str(user)[:100],
        benchmarks=named,
    )


def _read_common_fields(
    event: str, given: str | None, body: bytes, repository: str
) -> dict[str, str]:
    """Return the key of a delivery.

    If the forge sends no usable id, it is derived from the body.
    """
    own = given if given and _ID.match(given) else hashlib.sha256(body).hexdigest()
    return {"event": str(event)[:60], "delivery_id": own, "repository": str(repository)}


def _parse_branch(ref: str) -> str:
    return ref.removeprefix("refs/heads/") if ref.startswith("refs/heads/") else ""


def _encode_text(text: str) -> bytes:
    return text.encode(errors="replace")


_READERS = {
    "github": _read_github_notice,
    "gitea": _read_github_notice,
    "gitlab": _read_gitlab_notice,
}
