"""The CPUs of each process of a trial on one host. No Django, no I/O."""

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.core.errors import HostSetupError


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A process and its number of CPUs in the definition; None leaves the choice to Pitwall."""

    name: str
    cpus: int | None = None


def assign_cpus(
    logical: int | None, shares: Sequence[Share], *, pin: bool
) -> dict[str, list[int] | None]:
    """Assign disjoint CPUs to each name, on a host with `logical` CPUs; None = anywhere.

    Numbers in the definition are used; HostSetupError if the host has too few. The others share the
    remaining CPUs evenly, if `pin` and if there is one for each. On hosts with at least three CPUs,
    CPU 0 is left to the rest of the machine if possible.
    """
    fixed = [share for share in shares if share.cpus is not None]
    open_ = [share for share in shares if share.cpus is None]
    wanted = sum(share.cpus or 0 for share in fixed)
    assignment: dict[str, list[int] | None] = {share.name: None for share in shares}
    if logical is None or logical < 2:
        if wanted > 1:
            raise HostSetupError(_explain_too_few(wanted, logical))
        return assignment
    spare = 1 if logical > max(2, wanted + len(open_)) else 0
    usable = list(range(spare, logical))
    if wanted > len(usable):
        raise HostSetupError(_explain_too_few(wanted, logical))
    for share in fixed:
        assignment[share.name], usable = usable[: share.cpus], usable[share.cpus :]
    pinned = pin and len(shares) > 1
    if open_ and usable and (pinned or fixed):
        assignment.update(_share_evenly(open_, usable) if pin else {s.name: usable for s in open_})
    return assignment


def _share_evenly(shares: Sequence[Share], cpus: list[int]) -> dict[str, list[int] | None]:
    """Give each the same number; if there are too few, all share all of them."""
    each = len(cpus) // len(shares)
    if not each:
        return {share.name: list(cpus) for share in shares}
    parts: dict[str, list[int] | None] = {}
    for at, share in enumerate(shares):
        last = at == len(shares) - 1
        parts[share.name] = cpus[at * each : None if last else (at + 1) * each]
    return parts


def _explain_too_few(wanted: int, logical: int | None) -> str:
    return (
        f"the definition's limits want {wanted} CPUs of one host, and it has {logical or 'unknown'}"
        "; take a larger host, another placement, or fewer CPUs"
    )
