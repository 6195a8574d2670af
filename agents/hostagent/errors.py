"""Everything that can go wrong on a host, as the agent tells it.

AgentError(code, message)
├── BadArgument, BadPlan                    the caller asked for something that cannot be done
├── Busy                                    another step holds this work directory
├── TrialFailed(code, message, output)      one trial is over; the next one goes on
│   └── UnderLoad                           the load was too much: a probe is not passed
├── BuildFailed(message, output)            one build is over; its trials fail, others go on
└── Aborted(code, reason)                   the whole step is over
    └── PeerLost                            a host of the job is gone or does not speak as it should
"""

from __future__ import annotations


class AgentError(Exception):
    code = "internal"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class BadArgument(AgentError):
    code = "bad_argument"


class BadPlan(AgentError):
    code = "bad_plan"


class Busy(AgentError):
    code = "busy"


class TrialFailed(AgentError):
    """`code` is one of protocol.FAILURES; `output` is the tail of what the process wrote."""

    def __init__(self, code: str, message: str, output: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.output = output


class UnderLoad(TrialFailed):
    """What was measured ended, or answers no more as it did before the load."""


class BuildFailed(AgentError):
    code = "build_failed"

    def __init__(self, message: str, output: str = "") -> None:
        super().__init__(message)
        self.output = output


class Aborted(AgentError):
    """`code` and `message` are what the journal's `aborted` tells as code and reason."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class PeerLost(Aborted):
    def __init__(self, reason: str) -> None:
        super().__init__("peer_lost", reason)
