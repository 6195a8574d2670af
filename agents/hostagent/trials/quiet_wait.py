"""Wait before a trial until other processes leave the hosts alone."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Optional

from ..hosts.all_hosts import AllHosts
from ..step.plan import Trial
from .trial_progress import TrialProgress

#: Seconds between two measurements of a busy host. The first is short: most often the orchestrator
#: is still reading the results of the trial before. The next poll disturbs a trial that starts
#: much later than announced.
FIRST_PERIOD_S, LONGEST_PERIOD_S = 0.25, 1.0


class QuietWait:
    """The waits of all trials of a round, which share the time limit of the plan."""

    def __init__(self, all_hosts: AllHosts) -> None:
        self._all_hosts = all_hosts
        self._rule = all_hosts.plan.quiet
        self._left_s = self._rule.wait_s

    def prepare(self, trial: Trial, progress: TrialProgress) -> dict[str, Any]:
        """Prepare the trial on all hosts; return ENVIRONMENT by host when these are quiet.

        Also return it when the time is used up, or when the user wants to measure now.
        """
        hosts = self._all_hosts.prepare(trial)
        period_s = FIRST_PERIOD_S
        while (busy := self._find_busy(hosts)) and self._may_wait():
            progress.report_busy_host(busy, hosts[busy])
            began = time.monotonic()
            self._all_hosts.observe()
            self._all_hosts.sleep_until(began + min(period_s, self._left_s))
            hosts = self._all_hosts.measure_environment()
            self._left_s -= time.monotonic() - began
            period_s = min(LONGEST_PERIOD_S, 2 * period_s)
        return hosts

    def _find_busy(self, hosts: Mapping[str, Mapping[str, Any]]) -> Optional[str]:
        """Return the host with the highest use by others beyond the limit; unknown use is quiet."""
        shares = {label: facts["busy_share"] or 0.0 for label, facts in hosts.items()}
        label = max(shares, key=lambda each: shares[each])
        return label if shares[label] > self._rule.busy_share else None

    def _may_wait(self) -> bool:
        return self._left_s > 0 and not self._all_hosts.step.measure_now.exists()
