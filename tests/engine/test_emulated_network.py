"""An emulated network from the definition to the page of a trial, and one that is not applied."""

import os
import shutil
from pathlib import Path
from textwrap import dedent

import pytest
from django.test import Client
from django.urls import reverse

from agents.hostagent.network.capability import check_capability
from orchestrator.runs.models import Trial
from tests.support.engine import assert_measured, running_engine, server
from tests.support.factories import (
    Personas,
    make_definition,
    make_project,
    make_run,
    make_shared_host,
)
from tests.support.planted_faults import codes, reason

pytestmark = [pytest.mark.engine, pytest.mark.quiet]

DEFINITION = dedent(
    """\
    version: 1
    title: Links
    subject:
      start: ["{python}", server.py, --bind, "{bind}", --port, "{port}"]
    load: {path: /, connections: 2, duration_s: 0.5, warmup_s: 0.2}
    matrix: {link: [limited, delayed]}
    options:
      link:
        limited: {network: {rate: 20 Mbit/s}}
        delayed: {network: {delay: 20 ms}}
    rounds: 1
    cooldown_s: 0
    """
)
#: Does all but netem, and does not say so.
LYING_TC = """#!/bin/sh
case "$*" in *netem*) exit 0 ;; esac
exec {tc} "$@"
"""


def test_a_network_that_is_not_applied_makes_its_trial_invalid(
    team: Personas, tmp_path: Path, client: Client
) -> None:
    tc = shutil.which("tc") or "/usr/sbin/tc"
    if "rate" not in check_capability()[0]:
        pytest.skip("this machine emulates no network")
    program = tmp_path / "bin/tc"
    program.parent.mkdir()
    program.write_text(LYING_TC.format(tc=tc))
    program.chmod(0o755)
    with running_engine(tmp_path, PATH=f"{program.parent}:{os.environ['PATH']}") as engine:
        project, shas = make_project(team.alice, tmp_path / "origin", [server()])
        make_definition(team.alice, project, source=DEFINITION)
        make_shared_host(team.alice)
        run = engine.finish(make_run(team.alice, shas))
    assert_measured(run)
    trials = {trial.case.parameters["link"]: trial for trial in Trial.objects.filter(job__run=run)}
    limited, delayed = trials["limited"], trials["delayed"]
    assert delayed.validity == "invalid"
    assert "requested was 20.0 ms round trip, but a round trip took" in reason(
        delayed, "network_differs"
    )
    assert "network_differs" not in codes(limited)
    network = limited.provenance["network"]
    assert network["title"] == "no delay, 20 Mbit/s"
    assert network["measured"]["rate_bps"]["responses"] == pytest.approx(20e6, rel=0.05)
    client.force_login(team.alice.user)
    page = client.get(reverse("trial", args=[limited.pk])).content.decode()
    assert "Emulated network" in page
    assert "Rate of responses" in page
