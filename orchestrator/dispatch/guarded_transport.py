"""A transport that works only while the claim of the work is held."""

from collections.abc import Sequence

from orchestrator.core.heartbeat import Claim
from orchestrator.transport.base import ClosingTransport, CommandResult, Content, Transport


class GuardedTransport(ClosingTransport):
    """A Transport; each verb first checks the claim, and raises if it is lost or late."""

    def __init__(self, inner: Transport, claim: Claim) -> None:
        self._inner, self._claim = inner, claim

    def run(self, argv: Sequence[str], *, timeout_s: float, stdin: bytes = b"") -> CommandResult:
        self._claim.check()
        return self._inner.run(argv, timeout_s=timeout_s, stdin=stdin)

    def put(self, content: Content, path: str, *, mode: int = 0o644) -> None:
        self._claim.check()
        self._inner.put(content, path, mode=mode)

    def get(self, path: str, *, limit: int) -> bytes:
        self._claim.check()
        return self._inner.get(path, limit=limit)

    def is_open(self) -> bool:
        return self._inner.is_open()

    def close(self) -> None:
        self._inner.close()
