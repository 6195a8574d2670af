"""The checks of a host: which there are, how each went, and what a host is after them.

Nothing is lost where one fails: the host is kept, and not used before it is fixed.
"""

from dataclasses import dataclass

from django.db import transaction

from orchestrator.fleet.models import (
    CheckOutcome,
    CheckRequest,
    CheckStep,
    Host,
    HostCheck,
    HostState,
    HostTransport,
)

#: After these the next step is tried; the others wait for somebody.
GOES_ON = frozenset({CheckOutcome.PASSED, CheckOutcome.WARNING})
#: The checks of the machine that the workers run on.
LOCAL_STEPS = (CheckStep.PYTHON, CheckStep.AGENT, CheckStep.TOOLS, CheckStep.QUIET)

#: What to do, and the command or line for it ("" where there is none).
Remedy = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What the try of a step found."""

    outcome: CheckOutcome
    message: str
    remedies: tuple[Remedy, ...] = ()
    shown_key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckList:
    """The steps of a host in their order, each with how it went; None where it was not tried.

    `running`: a worker goes on with them, or will in a moment.
    """

    rows: tuple[tuple[CheckStep, HostCheck | None], ...]
    running: bool = False

    @property
    def blocked(self) -> HostCheck | None:
        """What waits for somebody: nothing after it is tried."""
        tried = (check for _, check in self.rows if check is not None)
        return next((check for check in tried if check.outcome not in GOES_ON), None)

    @property
    def next_step(self) -> CheckStep | None:
        """The first that was not tried; None at the end, and while something is blocked."""
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


def steps_of(host: Host) -> tuple[CheckStep, ...]:
    return LOCAL_STEPS if host.transport == HostTransport.LOCAL else tuple(CheckStep)


def checks_of(host: Host) -> CheckList:
    """Get the host through `host_for`."""
    found = {check.step: check for check in host.checks.all()}
    rows = tuple((step, found.get(step)) for step in steps_of(host))
    return CheckList(rows=rows, running=CheckRequest.objects.filter(host=host).exists())


def begin_again(*, host: Host, step: CheckStep) -> None:
    """What was found from this step on is tried anew: the later ones rest on it."""
    steps = steps_of(host)
    later = steps[steps.index(step) :] if step in steps else ()
    HostCheck.objects.filter(host=host, step__in=later).delete()


def note_check(*, host: Host, step: CheckStep, finding: Finding, seconds: float) -> CheckList:
    """Keeps how a try went. A host that was being set up is ready once it is through."""
    with transaction.atomic():
        HostCheck.objects.update_or_create(
            host=host,
            step=step,
            defaults={
                "outcome": finding.outcome,
                "message": finding.message[:4000],
                "remedies": [list(remedy) for remedy in finding.remedies],
                "shown_key": finding.shown_key,
                "seconds": seconds,
            },
        )
        checks = checks_of(host)
        if checks.is_through:
            waiting = (HostState.UNCONFIRMED, HostState.UNREACHABLE)
            Host.objects.filter(pk=host.pk, state__in=waiting).update(
                state=HostState.READY, message="", unreachable_at=None
            )
    return checks
