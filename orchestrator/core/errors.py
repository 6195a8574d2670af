"""Every error that Pitwall raises on purpose.

    PitwallError
    ├── NotFoundError          it is not there, or it belongs to another team
    ├── PermissionRefusedError the member may not do this
    ├── InvalidRequestError    the input is wrong; `field` says where
    ├── ConflictError          the state of things forbids it now
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


class PitwallError(Exception):
    """Base of all; `str(error)` is fit to be shown to a user."""


class NotFoundError(PitwallError):
    pass


class PermissionRefusedError(PitwallError):
    pass


class InvalidRequestError(PitwallError):
    """`field` is a form field or a path into a definition such as `matrix.size[2]`."""

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class ConflictError(PitwallError):
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
