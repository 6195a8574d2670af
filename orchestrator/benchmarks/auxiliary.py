"""Services of a definition: processes that run in addition to the server under test. No Django."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from orchestrator.benchmarks.fields import (
    Command,
    Environment,
    HttpStatus,
    Port,
    Strict,
    select_texts,
)
from orchestrator.benchmarks.limits import Limits

MAX_SERVICES = 20
MAX_COUNT = 32

Role = Literal["target", "generator", "backend"]


class Process(Strict):
    """How to start a process: a list of arguments, never a shell; `port` if it is fixed."""

    start: Command
    env: Environment = {}
    port: Port | None = None

    def uses(self, word: str) -> bool:
        """Return whether the command or the environment contains the placeholder `{word}`."""
        texts = [*(self.start or ()), *select_texts(self.env).values()]
        return any(f"{{{word}}}" in text for text in texts)


class ServiceReady(Strict):
    """How to detect that a service is ready; without a path, a TCP connection is enough."""

    path: Annotated[str, Field(pattern=r"^/", max_length=4096)] | None = None
    status: HttpStatus = 200
    timeout_s: Annotated[float, Field(gt=0, le=600)] = 30

    @model_validator(mode="after")
    def _status_needs_a_path(self) -> "ServiceReady":
        if self.path is None and self.status != 200:
            raise ValueError("a status needs a request: set path as well")
        return self


class Service(Process):
    """`count` processes of one command, on the host with this role.

    They start again for each trial. They are ready before the next services and the server start.
    """

    count: Annotated[int, Field(ge=1, le=MAX_COUNT)] = 1
    role: Role = "backend"
    ready: ServiceReady = ServiceReady()
    limits: Limits = Limits()

    @model_validator(mode="after")
    def _ports_are_possible(self) -> "Service":
        if self.port is not None and self.count > 1:
            raise ValueError(
                f"only one process can use port {self.port}; leave port out, so that each "
                f"of the {self.count} is given its own as {{port}}"
            )
        if self.port is None and not self.uses("port"):
            raise ValueError("the process does not get its port: use {port} in start or env")
        return self
