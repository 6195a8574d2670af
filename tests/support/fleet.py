"""Add the hosts of tests to Pitwall, and confirm them as a maintainer does."""

from collections.abc import Iterable

from orchestrator.accounts.members import Member
from orchestrator.fleet.host_settings import set_host_settings
from orchestrator.fleet.models import Host
from orchestrator.fleet.services import (
    NewHost,
    add_credential,
    add_host,
    confirm_host_key,
    save_profile,
)
from tests.support.factories import DEFINITION
from tests.support.netns import NamespaceHost

#: The swappiness of the hosts while they measure.
TUNED = "10"
#: The tests' usual definition, with a server that other hosts can reach.
ANYWHERE = DEFINITION.replace('"--port"', '"--bind", "{bind}", "--port"')


def add_hosts(
    member: Member, hosts: Iterable[NamespaceHost], *, profile: str = "any"
) -> list[Host]:
    """Add each host under its own name, ready to be used; all have the key of the first one.

    They are tuned while they measure.
    """
    hosts = list(hosts)
    save_profile(member=member, slug=profile, name="Any machine")
    credential = add_credential(
        member=member, name=f"key of {profile}", private_key=hosts[0].client_private_key
    )
    added = []
    for host in hosts:
        new = NewHost(
            name=host.name,
            profile_slug=profile,
            address=host.address,
            port=host.port,
            login=host.user,
            credential_id=credential.pk,
            work_dir=str(host.work_dir),
            python=host.python,
        )
        row, shown = add_host(member=member, new=new)
        assert shown.line == host.host_key
        confirm_host_key(member=member, host_id=row.pk, host_key=shown.line)
        added.append(set_host_settings(member=member, host_id=row.pk, tuning={"swappiness": TUNED}))
    return added
