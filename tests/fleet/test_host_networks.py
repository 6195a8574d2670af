"""Hosts are only in the networks that the administrator allows."""

from typing import Any

import pytest

from orchestrator.core.errors import InvalidRequestError
from orchestrator.fleet.connect import connect
from orchestrator.fleet.models import Host
from orchestrator.fleet.services import NewHost, add_credential, enter_host
from orchestrator.transport.keys import generate_key
from orchestrator.transport.networks import ForbiddenHostError
from tests.support.factories import Personas


def test_a_host_outside_of_the_allowed_networks_is_neither_saved_nor_reached(
    host: Host, personas: Personas, settings: Any
) -> None:
    settings.HOST_NETWORKS = []
    credential = add_credential(member=personas.alice, name="key")

    def enter(address: str) -> Host:
        new = NewHost(
            name="new",
            profile_slug=host.profile.slug,
            address=address,
            port=22,
            login="root",
            credential_id=credential.pk,
        )
        return enter_host(member=personas.alice, new=new)

    with pytest.raises(InvalidRequestError, match="PITWALL_HOST_NETWORKS") as refused:
        enter("127.0.0.1")
    assert refused.value.field == "address"
    # What a name means is known when the host is reached.
    named = enter("localhost")
    named.state, named.host_key = "ready", generate_key().public_openssh
    with pytest.raises(ForbiddenHostError, match="localhost"):
        connect(named)
