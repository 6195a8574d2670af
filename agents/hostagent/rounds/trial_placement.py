"""Assign CPUs to the processes of the trials on this host, by its topology after tuning."""

from __future__ import annotations

from typing import Optional

from ..errors import AgentError
from ..platform.placement import TooFewCpus, place
from ..platform.topology import Topology, build_unknown_topology
from ..step.plan import Limits, Plan, Trial


def place_trials(plan: Plan, topology: Optional[Topology]) -> Plan:
    """Return the plan with the CPUs of all processes on this host; AgentError with too few CPUs."""
    known = topology or build_unknown_topology(())
    return plan._replace(trials=tuple(_place_trial(plan.me, trial, known) for trial in plan.trials))


def _place_trial(me: str, trial: Trial, topology: Topology) -> Trial:
    try:
        placement = place(topology, trial.shares.get(me, ()))
    except TooFewCpus as error:
        raise AgentError(str(error)) from error

    def bind(limits: Limits) -> Limits:
        """A share of another host has no CPUs here."""
        return limits._replace(cpus=placement.cpus.get(limits.share or ""))

    return trial._replace(
        placement=placement,
        server=trial.server._replace(limits=bind(trial.server.limits)),
        services=tuple(each._replace(limits=bind(each.limits)) for each in trial.services),
        prepare=tuple(each._replace(limits=bind(each.limits)) for each in trial.prepare),
        tool=trial.tool._replace(limits=bind(trial.tool.limits)),
    )
