"""Prepare steps of a definition: commands that create data before the load. No Django."""

from typing import Annotated, Literal

from pydantic import Field, field_validator

from orchestrator.benchmarks.fields import Command, Environment, Strict, TreePath, check_folder

MAX_PREPARE_STEPS = 10

Each = Literal["job", "commit", "trial"]
After = Literal["build", "services", "server"]


class PrepareStep(Strict):
    """A command that creates data, such as the rows of a database, before the load.

    It runs on the host of the server, as its user and within its limits. Its duration is recorded,
    and counts neither as build nor as load.
    """

    run: Command
    each: Each = "trial"
    after: After = "services"
    working_dir: TreePath | None = None
    env: Environment = {}
    timeout_s: Annotated[float, Field(gt=0, le=3600)] = 60

    @field_validator("working_dir")
    @classmethod
    def _is_plain(cls, path: str | None) -> str | None:
        return check_folder(path)
