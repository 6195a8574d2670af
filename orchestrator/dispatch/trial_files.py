"""The files of a finished trial, fetched from its host within limits.

The plan determines the number of files, whatever the host reports. Their total size is limited.
"""

from collections.abc import Iterable

from agents.hostagent.protocol import PREPARE_LOG, TRIAL_FILES, load_files
from orchestrator.benchmarks.load_specs import count_measured_loads, has_prepare_steps
from orchestrator.benchmarks.selectors import read_spec
from orchestrator.core.errors import NotFoundError, PitwallError
from orchestrator.core.untrusted_json import parse_json
from orchestrator.runs.models import Trial
from orchestrator.transport.base import TooLargeError, Transport

#: The limit of all files of one trial together.
TRIAL_LIMIT_BYTES = 128 * 1024 * 1024
#: The time limit in seconds for fetching them: 128 KiB/s is enough for the maximum size.
FILES_S = TRIAL_LIMIT_BYTES / (128 * 1024)
#: The limit of one file.
FILE_LIMIT_BYTES = 64 * 1024 * 1024
#: The limit of result.json and the tool's output, which are read as a whole: then each byte takes
#: many more in memory.
RESULT_LIMIT_BYTES = 16 * 1024 * 1024


class TrialFilesError(PitwallError):
    """The host's files of a trial do not match its plan. A retry would not help."""


def fetch_files(transport: Transport, folder: str, trial: Trial) -> dict[str, bytes]:
    """Return all files of the trial, by name. `folder`: that of the step's trials.

    TrialFilesError if there are more loads or bytes than allowed.
    """
    fetched = _FetchedFiles(transport, f"{folder}/{trial.pk}")
    fetched.add(TRIAL_FILES)
    if has_prepare_steps(read_spec(trial.job.run.definition)):
        fetched.add([PREPARE_LOG])
    for number in range(1, _count_loads(fetched.files.get("result.json"), trial)):
        fetched.add(load_files(number))
    return fetched.files


class _FetchedFiles:
    """The fetched files, and the remaining bytes."""

    def __init__(self, transport: Transport, folder: str) -> None:
        self.files: dict[str, bytes] = {}
        self._transport, self._folder = transport, folder
        self._left = TRIAL_LIMIT_BYTES

    def add(self, names: Iterable[str]) -> None:
        """Fetch those of the files that exist."""
        for name in names:
            most = RESULT_LIMIT_BYTES if name == "result.json" else FILE_LIMIT_BYTES
            try:
                content = self._transport.get(f"{self._folder}/{name}", limit=min(most, self._left))
            except NotFoundError:
                continue
            except TooLargeError as error:
                raise TrialFilesError(
                    f"{error} The files of a trial may have {TRIAL_LIMIT_BYTES} bytes together, "
                    f"{name} {most}; measure for a shorter time, or with fewer steps or probes."
                ) from error
            self.files[name] = content
            self._left -= len(content)


def _count_loads(result: bytes | None, trial: Trial) -> int:
    """Return the number of measured loads; 0 for an invalid result, which is reported later."""
    try:
        loads = parse_json(result or b"")["loads"]
    except (ValueError, KeyError, TypeError):
        return 0
    most = count_measured_loads(read_spec(trial.job.run.definition), trial.case.parameters)
    if not isinstance(loads, list) or len(loads) > most:
        what = f"{len(loads)} loads" if isinstance(loads, list) else "no list of loads"
        raise TrialFilesError(
            f"result.json has {what}, and the plan asked for {most}; was it written by the agent?"
        )
    return len(loads)
