"""The checks of a host: their steps and results, and the state of the host after them.

A failed check loses nothing: the host is kept, but not used until it is fixed.
"""

from dataclasses import dataclass

from django.db import transaction

from orchestrator.fleet.absence import ANSWERING
from orchestrator.fleet.models import (
    CheckOutcome,
    CheckRequest,
    CheckStep,
    Host,
    HostCheck,
    HostState,
    HostTransport,
)

#: After these outcomes the next step is tried; the others wait for a person.
GOES_ON = frozenset({CheckOutcome.PASSED, CheckOutcome.WARNING})
#: The checks of the machine that the workers run on.
LOCAL_STEPS = (
    CheckStep.PYTHON,
    CheckStep.AGENT,
    CheckStep.LIMITS,
    CheckStep.TOOLS,
    CheckStep.QUIET,
)

#: What to do, and the command or line for it ("" if there is none).
Remedy = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of one try of a step."""

    outcome: CheckOutcome
    message: str
    remedies: tuple[Remedy, ...] = ()
    shown_key: str = ""
    other_host: Host | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckList:
    """The steps of a host in order, each with its result; None if it was not tried.

    `running`: a worker executes them now or soon.
    """

    rows: tuple[tuple[CheckStep, HostCheck | None], ...]
    running: bool = False

    @property
    def blocked(self) -> HostCheck | None:
        """The check that waits for a person; no later step is tried."""
        tried = (check for _, check in self.rows if check is not None)
        return next((check for check in tried if check.outcome not in GOES_ON), None)

    @property
    def next_step(self) -> CheckStep | None:
        """The first step that was not tried; None at the end, and while a step is blocked."""
        if self.blocked:
            return None
        return next((step for step, check in self.rows if check is None), None)

    @property
    def is_through(self) -> bool:
        return self.blocked is None and self.next_step is None

    @property
    def done(self) -> int:
        return sum(check is not None and check.outcome in GOES_ON for _, check in self.rows)

    @property
    def warned(self) -> int:
        return sum(
            check is not None and check.outcome == CheckOutcome.WARNING for _, check in self.rows
        )


def list_check_steps(host: Host) -> tuple[CheckStep, ...]:
    return LOCAL_STEPS if host.transport == HostTransport.LOCAL else tuple(CheckStep)


def load_checks(host: Host) -> CheckList:
    """Return the checks of a host. Get the host through `load_host`."""
    checks = {check.step: check for check in host.checks.select_related("other_host")}
    rows = tuple((step, checks.get(step)) for step in list_check_steps(host))
    return CheckList(rows=rows, running=CheckRequest.objects.filter(host=host).exists())


def begin_again(*, host: Host, step: CheckStep) -> None:
    """Discard the results from this step on, so that it and later steps are tried again."""
    steps = list_check_steps(host)
    later = steps[steps.index(step) :] if step in steps else ()
    HostCheck.objects.filter(host=host, step__in=later).delete()


def record_check(*, host: Host, step: CheckStep, finding: Finding, seconds: float) -> CheckList:
    """Store the result of a try.

    When all steps have passed, a host that was being set up is ready.
    """
    with transaction.atomic():
        HostCheck.objects.update_or_create(
            host=host,
            step=step,
            defaults={
                "outcome": finding.outcome,
                "message": finding.message[:4000],
                "remedies": [list(remedy) for remedy in finding.remedies],
                "shown_key": finding.shown_key,
                "other_host": finding.other_host,
                "seconds": seconds,
            },
        )
        checks = load_checks(host)
        if checks.is_through:
            waiting = (HostState.UNCONFIRMED, HostState.UNREACHABLE)
            Host.objects.filter(pk=host.pk, state__in=waiting).update(
                state=HostState.READY, message="", **ANSWERING
            )
    return checks
