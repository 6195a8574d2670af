"""Open a transport to a host from its row."""

from pathlib import Path

from django.conf import settings

from orchestrator.core.errors import HostSetupError
from orchestrator.fleet import vault
from orchestrator.fleet.models import UNUSABLE, Host, HostTransport
from orchestrator.transport.address import JumpHost
from orchestrator.transport.base import Transport
from orchestrator.transport.local import LocalTransport
from orchestrator.transport.ssh import SshAddress, SshTransport


def connect(host: Host) -> Transport:
    """Return an open transport to the host. Subclasses of HostError say why there is none."""
    if host.state in UNUSABLE:
        raise HostSetupError(
            f"the host {host.name}: {host.get_state_display().lower()}; see the host's page"
        )
    if host.transport == HostTransport.LOCAL:
        return LocalTransport(get_local_work_dir(host))
    return SshTransport(build_ssh_address(host))


def get_local_work_dir(host: Host) -> Path:
    return Path(settings.DATA_DIR) / "hosts" / str(host.pk)


def build_ssh_address(host: Host) -> SshAddress:
    if host.credential is None or not host.host_key:
        problem = f"the host {host.name} has no key to log in with or no confirmed host key"
        raise HostSetupError(problem)
    return SshAddress(
        host=host.address,
        port=host.port,
        user=host.login,
        host_key=host.host_key,
        private_key=vault.unseal(host.credential, "sealed_private_key"),
        certificate=host.credential.certificate,
        work_dir=host.work_dir,
        networks=tuple(settings.HOST_NETWORKS),
        jumps=list_jumps(host),
    )


def list_jumps(host: Host) -> tuple[JumpHost, ...]:
    return tuple(map(JumpHost.parse, host.jump_hosts))


def load_jump_key(host: Host) -> str:
    """Return the private key that logs in to the jump hosts; empty without any."""
    if not host.jump_hosts or host.credential is None:
        return ""
    return vault.unseal(host.credential, "sealed_private_key")
