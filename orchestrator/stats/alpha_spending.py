"""Alpha spending: the thresholds of a verdict on blocks that several runs measured.

The blocks of all runs of two commits count together, and each run is followed by another verdict on
all of them. With one threshold for each verdict, one comparison in ten would claim a change at some
time. Therefore the runs share one error rate. By Bonferroni the shares bound the probability of a
false claim, for any number of runs and of blocks.
"""

from dataclasses import dataclass

from orchestrator.stats.comparison import EQUIVALENCE_ALPHA

#: The error rate of all verdicts on the same blocks: the false discovery rate of changes.
ERROR_RATE = 0.05
#: The share of the error rate for the first run. Most comparisons consist of one run.
FIRST_SHARE = 0.8
#: The alpha of equivalence for that of a change. The analyses of a run share most of their blocks,
#: so their false proofs often coincide. Simulated (`make bench-detection`): 4.3 to 4.6 % of runs
#: until decided call a change of just the margin unimportant, at any small noise.
EQUIVALENCE_FACTOR = 1.75


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """The verdicts on the same blocks up to this one.

    `runs`: the number of runs that measured them, at least 1. `analyses`: the planned number of
    analyses of the newest run, 1 without interim analyses.
    """

    runs: int = 1
    analyses: int = 1

    @property
    def share(self) -> float:
        """The share of this verdict in the error rate. The shares of any sequence add up to 1."""
        left = (1 - FIRST_SHARE) / (self.runs * (self.runs - 1)) if self.runs > 1 else FIRST_SHARE
        return left / self.analyses

    @property
    def penalty(self) -> float:
        """The factor for a p value when it is compared with the whole error rate."""
        return 1 / self.share

    @property
    def alpha(self) -> float:
        """The largest p value of a change in a comparison of one metric."""
        return ERROR_RATE * self.share

    @property
    def equivalence_alpha(self) -> float:
        """The largest p value of a proof of equivalence, if the true difference is the margin."""
        return min(EQUIVALENCE_ALPHA, EQUIVALENCE_FACTOR * self.alpha)

    def after_another_run(self) -> "Spending":
        """Return that of the verdict after one more run with a fixed number of rounds."""
        return Spending(runs=self.runs + 1)
