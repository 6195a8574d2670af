"""Resource limits that a definition sets for its processes on a host. No Django."""

from typing import Annotated

from pydantic import Field, model_validator

from orchestrator.benchmarks.fields import Size, Strict

#: With fewer open files a process does not even start.
FEWEST_FILES = 16


class Limits(Strict):
    """Limits of one process tree; a missing field is not limited.

    `cpus` is a number of exclusive CPUs, chosen on the host; `cpu_quota` is the CPU time that it
    may use in CPUs, such as 0.5; `memory` is in bytes.
    """

    cpus: Annotated[int, Field(ge=1, le=1024)] | None = None
    cpu_quota: Annotated[float, Field(ge=0.01, le=1024)] | None = None
    memory: Annotated[Size, Field(ge=1024**2, le=1024**5)] | None = None
    open_files: Annotated[int, Field(ge=FEWEST_FILES, le=1024**2)] | None = None

    @model_validator(mode="after")
    def _quota_fits(self) -> "Limits":
        if self.cpus is not None and self.cpu_quota is not None and self.cpu_quota > self.cpus:
            raise ValueError(
                f"a cpu_quota of {self.cpu_quota:g} CPUs is more than cpus: {self.cpus}; "
                "lower one or raise the other"
            )
        return self


class RoleLimits(Strict):
    """Limits of the server under test (`target`) and of the load tool (`generator`)."""

    target: Limits = Limits()
    generator: Limits = Limits()

    @model_validator(mode="before")
    @classmethod
    def _services_limit_themselves(cls, data: object) -> object:
        if isinstance(data, dict) and "backend" in data:
            raise ValueError("each service has its own limits; write them there")
        return data
