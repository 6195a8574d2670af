"""Every error that Pitwall raises on purpose.

    PitwallError
    ├── NotFoundError          it is not there, or it belongs to another team
    │   └── GoneError              it was there, and was removed as its project's retention says
    ├── PermissionRefusedError the member may not do this
    ├── InvalidRequestError    the input is wrong; `field` says where
    ├── ConflictError          the state of things forbids it now
    ├── NotReadyError          the same request works later; benchmarks' FetchRunningError
    ├── BrokenSealError        a secret at rest cannot be opened with the keys that we have
    └── HostError              a machine or the way to it failed; `transient` says whether to retry
        ├── UnreachableError       no connection (transient)
        ├── HostKeyMismatchError   the host is not the one that was confirmed
        ├── LoginRefusedError      the host does not take our key
        └── HostSetupError         something the job needs is missing on the host

Packages add leaves where they raise them: transport's CommandTimedOutError, dispatch's AgentError
(both HostError), loadtools' ToolOutputError.

No HTTP status lives here: `web` and `api` each hold one map. A message says what happened, to
what, and what to do.
"""

from collections.abc import Sequence


class PitwallError(Exception):
    """Base of all; `str(error)` is fit to be shown to a user."""


class NotFoundError(PitwallError):
    pass


class GoneError(NotFoundError):
    pass


class PermissionRefusedError(PitwallError):
    pass


class InvalidRequestError(PitwallError):
    """`field` is a form field or a path into a definition such as `matrix.size[2]`.

    `faults` are (field, what is wrong there) where several things are wrong at once.
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
    def of(cls, faults: Sequence[tuple[str, str]]) -> "InvalidRequestError":
        """All of these at once (at least one); the message is that of the first."""
        field, message = faults[0]
        return cls(f"{field}: {message}", field=field, faults=faults)


class ConflictError(PitwallError):
    pass


class NotReadyError(PitwallError):
    """What the request needs is being prepared; the same request works later."""


class BrokenSealError(PitwallError):
    pass


class HostError(PitwallError):
    """`transient` is the one bit that the caller needs: may the same step work when repeated?"""

    transient = False


class UnreachableError(HostError):
    transient = True


class HostKeyMismatchError(HostError):
    pass


class LoginRefusedError(HostError):
    pass


class HostSetupError(HostError):
    pass
