"""How long the orchestrator should not poll: a poll starts a program, which disturbs a load."""

from __future__ import annotations

import statistics
import time
from collections import deque
from typing import Optional

from ..protocol import compute_build_poll_s
from ..step.plan import Trial

#: From the start of a trial to its loads, and from their expected end to the end of the trial,
#: until one has shown it.
FIRST_START_S, FIRST_END_S = 1.0, 0.5
#: The longest such time, since the next trial may have a smaller output to read.
LONGEST_END_S = 2.0
#: The next start and end are expected to take as long as the median of this many. Cases of one
#: round differ, and one slow case must not delay the polls of the others into their loads.
REMEMBERED = 5
#: A poll needs 0.06 to 0.14 s of CPU time, which is too much for shorter loads.
LONG_LOAD_S = 10.0
#: A poll before the end of a trial finds nothing, and is repeated half a second later. Ends vary,
#: so polls come later if there is a cooldown, by a share of it. The rest of the cooldown is for
#: reading the results.
SLACK_S, LONGEST_SLACK_S = 0.05, 0.3
SLACK_SHARE = 0.15
#: A poll that is due has ended its program after this time.
POLL_TAKES_S = 0.5


class PollPause:
    """The pauses of the polls in a round.

    The orchestrator polls when a trial has ended, to read its results before the next one starts,
    and when loads have begun, to show them, unless that would disturb them. It does not poll in
    between.
    """

    def __init__(self) -> None:
        self._starts_s: deque[float] = deque(maxlen=REMEMBERED)
        self._ends_s: deque[float] = deque(maxlen=REMEMBERED)
        self._loads_end: Optional[float] = None
        self._began = time.monotonic()
        self._poll_at = self._began

    def announce(self, trial: Optional[Trial], after_s: float) -> None:
        """Predict when the next trial can be polled, which starts after that time.

        None: there is no further trial.
        """
        self._loads_end = None
        self._began = self._poll_at = time.monotonic() + after_s
        if trial:
            self._poll_at += statistics.median_high(self._starts_s or [FIRST_START_S])
            if is_disturbed_by_polls(trial):
                self._poll_at += compute_loads_s(trial) + self._estimate_end_s(trial)

    def end(self, following: Optional[Trial], after_s: float) -> None:
        """A trial has ended; `following` starts after that time."""
        if self._loads_end is not None:
            self._ends_s.append(max(0.0, time.monotonic() - self._loads_end))
        self.announce(following, after_s)

    def exclude(self, seconds: float) -> None:
        """Leave out this part of the start, which the next trial does not repeat."""
        self._began += seconds

    def begin_loads(self, trial: Trial) -> None:
        """The loads of the trial start now; polls pause until its end."""
        now = time.monotonic()
        self._starts_s.append(max(0.0, now - self._began))
        self._loads_end = now + compute_loads_s(trial)
        self._poll_at = self._loads_end + self._estimate_end_s(trial)

    def left_s(self) -> float:
        return round(max(0.0, self._poll_at - time.monotonic()), 3)

    def _estimate_end_s(self, trial: Trial) -> float:
        """Return the time from the expected end of the loads to the poll after the trial."""
        median_s = statistics.median_high(self._ends_s or [FIRST_END_S])
        return min(median_s, LONGEST_END_S) + compute_slack_s(trial)


def is_disturbed_by_polls(trial: Trial) -> bool:
    """Return whether a poll at the beginning of the loads would make the trial suspect."""
    return compute_loads_s(trial) < LONG_LOAD_S


def compute_wait_for_poll_s(built_s: float) -> float:
    """Return the longest time to the end of the next poll after builds that took `built_s`."""
    return compute_build_poll_s(built_s) + POLL_TAKES_S


def compute_slack_s(trial: Trial) -> float:
    """Return the time from the expected end of a trial to the next poll."""
    return max(SLACK_S, min(LONGEST_SLACK_S, SLACK_SHARE * trial.cooldown_s))


def compute_loads_s(trial: Trial) -> float:
    """Return the expected duration of the loads of a trial, or of the first probe of a search."""
    expected_s = trial.expected_s
    if trial.search:
        expected_s = sum(load.warmup_s for load in trial.loads) + trial.search.duration_s
    limit_s = sum(load.wall_limit_s for load in trial.loads)
    return min(expected_s, limit_s)
