"""The hosts of one job: the host of each role, and the connection to each."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from orchestrator.core.errors import HostSetupError
from orchestrator.core.heartbeat import Claim, build_unlimited_claim
from orchestrator.core.logs import logging_about
from orchestrator.dispatch.agent import Agent
from orchestrator.dispatch.connections import CONNECTIONS, Connections
from orchestrator.dispatch.guarded_transport import GuardedTransport
from orchestrator.fleet.models import Host, HostTransport
from orchestrator.runs.models import HostRole, Job
from orchestrator.transport.base import Transport

LABELS = "abc"


@dataclass(frozen=True, slots=True)
class HostSession:
    """One host of a job with an open transport to it."""

    host: Host
    label: str
    transport: Transport
    agent: Agent
    claim: Claim = field(default_factory=build_unlimited_claim)


@dataclass(slots=True)
class JobHosts:
    """The hosts of a leased job. `last` is the last host that was contacted, to blame for an error.

    `reached_last`: whether there was a connection to it. Hosts are not contacted after the `claim`
    of the job is lost, or its step is late.
    """

    job: Job
    claim: Claim = field(default_factory=build_unlimited_claim)
    connections: Connections = field(default_factory=lambda: CONNECTIONS)
    last: Host | None = None
    reached_last: bool = False

    @property
    def roles(self) -> dict[str, Host]:
        """Return the host of each role; the target's host plays roles without a placement."""
        target = self.job.host
        assert target is not None
        placed = {place.role: place.host for place in self.job.placements.all() if place.host}
        return {role: placed.get(role, target) for role in HostRole.values}

    @property
    def hosts(self) -> list[Host]:
        """Return each host once, the target's first."""
        by_key = {host.pk: host for host in self.roles.values()}
        return list(by_key.values())

    @property
    def lead(self) -> Host:
        """Return the host that creates the load; its supervisor executes the round."""
        return self.roles[HostRole.GENERATOR]

    @property
    def followers(self) -> list[Host]:
        return [host for host in self.hosts if host.pk != self.lead.pk]

    def label(self, host: Host) -> str:
        return LABELS[[each.pk for each in self.hosts].index(host.pk)]

    def get_role_label(self, role: str) -> str:
        return self.label(self.roles[role])

    @property
    def role_labels(self) -> dict[str, str]:
        return {str(role): self.label(host) for role, host in self.roles.items()}

    def address(self, host: Host) -> str:
        """Return the address at which the job's other hosts reach this one."""
        if len(self.hosts) == 1:
            return "127.0.0.1"
        local = host.transport == HostTransport.LOCAL
        address = host.data_address or ("" if local else host.address)
        if not address:
            raise HostSetupError(
                f"the host {host.name} has no address at which the job's other hosts reach it; "
                "set its data address on the host's page"
            )
        return address

    @contextlib.contextmanager
    def open_session(self, host: Host) -> Iterator[HostSession]:
        """Lend a session with one host for the block."""
        self.last, self.reached_last = host, False
        self.claim.check()
        with (
            logging_about(host=host.name),
            self.connections.to(host) as transport,
            self.claim.closing(transport.close),
        ):
            self.reached_last = True
            guarded = GuardedTransport(transport, self.claim)
            agent = Agent(guarded, python=host.python)
            yield HostSession(host, self.label(host), guarded, agent, self.claim)
