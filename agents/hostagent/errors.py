"""The errors of the agent.

AgentError(code, message)
├── BadArgument, BadPlan                    the caller requested something impossible
├── Busy                                    another step holds this work directory
├── TrialFailed(code, message, output)      one trial has failed; the next one runs
│   └── UnderLoad                           it failed under load: a probe is not passed
├── BuildFailed(message, output)            one build has failed; its trials fail, others run
└── Aborted(code, reason)                   the whole step ends
    └── PeerLost                            a host of the job is lost, or violates the protocol
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
    """`code`: one of protocol.FAILURES. `output`: the tail of the output of the process."""

    def __init__(self, code: str, message: str, output: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.output = output


class UnderLoad(TrialFailed):
    """The measured process ended, or responds differently than before the load."""


class BuildFailed(AgentError):
    code = "build_failed"

    def __init__(self, message: str, output: str = "") -> None:
        super().__init__(message)
        self.output = output


class Aborted(AgentError):
    """`code` and `message`: code and reason of the event `aborted`."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class PeerLost(Aborted):
    def __init__(self, reason: str) -> None:
        super().__init__("peer_lost", reason)
