"""Every error that Pitwall raises on purpose.

    PitwallError
    ├── NotFoundError          the object does not exist, or belongs to another team
    │   └── GoneError              the object was removed by its project's retention
    ├── PermissionRefusedError the member may not do this
    ├── InvalidRequestError    the input is wrong; `field` says where
    ├── ConflictError          the present state forbids it
    ├── NotReadyError          the same request works later; benchmarks' FetchRunningError
    ├── BrokenSealError        no known key opens a sealed secret
    └── HostError              a host or the connection to it failed; `transient`: retry helps
        ├── UnreachableError       no connection (transient)
        ├── HostKeyMismatchError   the host key is not the confirmed one
        ├── LoginRefusedError      the host does not accept Pitwall's key
        ├── HostSetupError         something that the job needs is missing on the host
        └── HostBusyError          others use the host now: the job waits, and nothing has failed

Packages define subclasses where they raise them: transport's CommandTimedOutError, dispatch's
AgentError (both HostError), loadtools' ToolOutputError.

No HTTP status is defined here: `web` and `api` each have one mapping. A message says what happened,
to what, and what to do.
"""

from collections.abc import Sequence


class PitwallError(Exception):
    """Base of all; `str(error)` may be shown to a user."""


class NotFoundError(PitwallError):
    @classmethod
    def build_for_team(cls, kind: str) -> "NotFoundError":
        """Return the error for an object, such as a "run", that the team does not have."""
        return cls(f"there is no such {kind} in this team; check the address and the team")


class GoneError(NotFoundError):
    pass


class PermissionRefusedError(PitwallError):
    pass


class InvalidRequestError(PitwallError):
    """`field` is a form field or a path into a definition such as `matrix.size[2]`.

    `faults` are pairs (field, message) if several things are wrong at once.
    """

    def __init__(
        self,
        message: str,
        *,
        field: str | None = None,
        faults: Sequence[tuple[str, str]] = (),
    ) -> None:
        super().__init__(message)
        self.field = field
        self.faults = tuple(faults)

    @classmethod
    def from_faults(cls, faults: Sequence[tuple[str, str]]) -> "InvalidRequestError":
        """Return one error for all of these (at least one), with the message of the first."""
        field, message = faults[0]
        return cls(f"{field}: {message}", field=field, faults=faults)


class ConflictError(PitwallError):
    pass


class NotReadyError(PitwallError):
    """Something that the request needs is being prepared; the same request works later."""


class BrokenSealError(PitwallError):
    pass


class HostError(PitwallError):
    """`transient`: whether the same step may work when repeated."""

    transient = False


class UnreachableError(HostError):
    transient = True


class HostKeyMismatchError(HostError):
    pass


class LoginRefusedError(HostError):
    pass


class HostSetupError(HostError):
    pass


class HostBusyError(HostError):
    """`wait_s`: seconds until the host is asked again."""

    def __init__(self, message: str, *, wait_s: float = 15.0) -> None:
        super().__init__(message)
        self.wait_s = wait_s
