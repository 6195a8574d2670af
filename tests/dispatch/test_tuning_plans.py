"""The tuning of hosts in the plan of a round."""

import json
from pathlib import Path

from orchestrator.dispatch.job_hosts import JobHosts
from orchestrator.dispatch.rounds import build_round_plans
from orchestrator.fleet.models import Host
from orchestrator.fleet.services import record_snapshot
from tests.dispatch.support import THEIR_OHA, facts, leased
from tests.support.factories import DEFINITION, Personas


def test_a_round_has_the_tuning_of_the_snapshot_and_not_a_later_one(
    personas: Personas, tmp_path: Path
) -> None:
    job = leased(personas, tmp_path, DEFINITION)
    host = Host.objects.get(name="two")
    host.tuning = {"turbo": "off"}
    record_snapshot(host=host, facts=facts(oha=THEIR_OHA))
    Host.objects.update(tuning={"turbo": "on"})
    plans = build_round_plans(job, JobHosts(job), ports={})
    assert json.loads(plans["b"])["tuning"] == {"turbo": "off"}
    assert json.loads(plans["a"])["tuning"] == {}
