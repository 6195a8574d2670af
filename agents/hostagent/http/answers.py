"""The answers that the agent got itself in a pass of a trial, equal ones as one group."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Optional

from ..step.plan import Check
from .expectations import find_problem
from .messages import Response
from .volatile import MaskingError, digest_without

#: Different answers that are kept for each check and phase. More only show that answers vary.
MAX_GROUPS = 20
#: Bodies that are kept until the end of the pass.
KEPT_BYTES = 32 << 20
#: How long the comparisons with the expectations may take at the end of a pass, and one of them.
JUDGE_S = 30.0
_ONE_S = 5.0
#: Headers with which caches report a hit.
_CACHE_HEADERS = ("x-cache", "cache-status", "cf-cache-status")


class Phase(NamedTuple):
    """`when`: "before", "during" or "after" the loads; `load`: the number of the load during it."""

    when: str
    load: Optional[int] = None


BEFORE, AFTER = Phase("before"), Phase("after")


@dataclass
class AnswerGroup:
    """Equal answers. `response`: the first of them, without its body if that is not kept.

    `sha256` and `length` are of the body without its volatile parts.
    """

    check: Check
    phase: Phase
    at_s: Optional[float]
    response: Response
    sha256: str
    length: int
    echoes: Optional[bool]
    is_kept: bool
    problem: Optional[str] = None
    count: int = 0

    @property
    def identity(self) -> tuple[object, ...]:
        """Equal for the same answers of all phases."""
        response, check = self.response, self.check
        checked = tuple(response.headers.get(name) for name in check.response_headers)
        facts = (response.status, response.grpc_status, response.fault, response.encoding)
        more = (response.closes, _get_media_type(response), _is_cached(response), self.echoes)
        return (check.name, self.sha256, *facts, *more, *checked)

    def as_json(self) -> dict[str, Any]:
        """Return ANSWER of protocol.py."""
        response = self.response
        return {
            "check": self.check.name,
            "when": self.phase.when,
            "count": self.count,
            "at_s": self.at_s,
            "problem": self.problem,
            "protocol": response.protocol,
            "status": response.status,
            "length": self.length,
            "sha256": self.sha256,
            "media_type": _get_media_type(response),
            "encoding": response.encoding,
            "closes": response.closes,
            "echoes": self.echoes,
            "cached": _is_cached(response),
        }


class AnswerLog:
    """Answers by phase. `first_s`, `later_s`: how long the first and later answers took, before.

    `dropped`: answers of more than MAX_GROUPS kinds. `volatile_problem`: why the volatile parts
    could not be removed.
    """

    def __init__(self) -> None:
        self.first_s: Optional[float] = None
        self.later_s: Optional[float] = None
        self.volatile_problem: Optional[str] = None
        self.dropped = 0
        self._groups: dict[tuple[object, ...], AnswerGroup] = {}
        self._kept_bytes = 0

    def add(
        self,
        phase: Phase,
        check: Check,
        response: Response,
        *,
        request_id: Optional[str] = None,
        at_s: Optional[float] = None,
    ) -> None:
        """`request_id`: a unique text in the headers of the request; it may be in the answer."""
        body = response.body or b""
        echoes = None if request_id is None else _is_echoed(request_id, response)
        if request_id is not None:
            body = body.replace(request_id.encode(), b"")
        digest = hashlib.sha256(body).hexdigest()
        bare = response._replace(body=body)
        group = AnswerGroup(check, phase, at_s, bare, digest, len(body), echoes, is_kept=True)
        known = self._groups.get((phase, *group.identity))
        if known is None:
            if sum(1 for _ in self._iterate(phase, check)) >= MAX_GROUPS:
                self.dropped += 1
                return
            self._groups[(phase, *group.identity)] = known = group
            self._keep_body(group)
        known.count += 1

    def add_later_s(self, seconds: float) -> None:
        self.later_s = seconds if self.later_s is None else min(self.later_s, seconds)

    def judge(self, heartbeat: Callable[[], None]) -> None:
        """Set the problem of each group, and remove volatile parts; then drop the bodies.

        Equal answers are judged once: the first one before the loads is known to be correct.
        """
        deadline = time.monotonic() + JUDGE_S
        known = {group.check.name: group for group in reversed([*self._iterate(BEFORE)])}
        judged: dict[tuple[object, ...], Optional[str]] = {
            group.identity: None for group in known.values()
        }
        for group in self._groups.values():
            if group.identity not in judged and group.is_kept and time.monotonic() < deadline:
                heartbeat()
                timeout_s = min(group.check.timeout_s, _ONE_S)
                check = group.check._replace(timeout_s=timeout_s)
                judged[group.identity] = find_problem(check, group.response)
            group.problem = judged.get(group.identity)
        self._remove_volatile_parts()
        for group in self._groups.values():
            group.response = group.response._replace(body=None)

    def find_problem(self, load: int) -> Optional[str]:
        """Return the problem of a check during this load, after `judge`."""
        problems = (group.problem for group in self._iterate(Phase("during", load)))
        return next(filter(None, problems), None)

    def as_json(self, load: int) -> dict[str, Any]:
        """Return ANSWERS of protocol.py for this load, without "sent" and "unanswered"."""
        phases = (BEFORE, Phase("during", load), AFTER)
        return {
            "first_s": self.first_s,
            "later_s": self.later_s,
            "dropped": self.dropped,
            "volatile_problem": self.volatile_problem,
            "seen": [group.as_json() for phase in phases for group in self._iterate(phase)],
        }

    def _iterate(self, phase: Phase, check: Optional[Check] = None) -> Iterator[AnswerGroup]:
        for group in self._groups.values():
            if group.phase == phase and check in (None, group.check):
                yield group

    def _keep_body(self, group: AnswerGroup) -> None:
        if self._kept_bytes + group.length > KEPT_BYTES:
            group.is_kept = False
            group.response = group.response._replace(body=None)
        else:
            self._kept_bytes += group.length

    def _remove_volatile_parts(self) -> None:
        groups = [each for each in self._groups.values() if each.check.volatile and each.is_kept]
        if len({group.sha256 for group in groups}) < 2:
            return
        try:
            digests = digest_without(groups[0].check.volatile, _list_bodies(groups))
        except MaskingError as error:
            self.volatile_problem = str(error)
            return
        for group, (sha256, length) in zip(groups, digests):
            group.sha256, group.length = sha256, length


def _list_bodies(groups: Sequence[AnswerGroup]) -> list[tuple[bytes, str]]:
    responses = [group.response for group in groups]
    return [(each.body or b"", each.encoding or "identity") for each in responses]


def _is_echoed(request_id: str, response: Response) -> bool:
    in_body = request_id.encode() in (response.body or b"")
    return in_body or any(request_id in value for value in response.headers.values())


def _get_media_type(response: Response) -> Optional[str]:
    value = response.headers.get("content-type")
    return None if value is None else value.partition(";")[0].strip().lower()


def _is_cached(response: Response) -> bool:
    age = response.headers.get("age", "0").strip()
    hits = (response.headers.get(name, "").lower() for name in _CACHE_HEADERS)
    return (age.isdigit() and int(age[:9]) > 0) or any("hit" in value for value in hits)
