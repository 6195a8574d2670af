"""The settings of the load's host are part of the configuration of a trial."""

from pathlib import Path

from orchestrator.fleet.host_settings import set_host_settings
from orchestrator.fleet.models import Host
from orchestrator.fleet.services import record_snapshot
from orchestrator.measurements.comparability import hash_configuration, identify_tool
from orchestrator.measurements.generator_settings import (
    describe_settings,
    load_generator_settings,
)
from orchestrator.runs.models import Job, Placement
from tests.dispatch.support import leased
from tests.support.factories import DEFINITION, Personas


def report(host: Host, **static: object) -> None:
    host.refresh_from_db()
    record_snapshot(host=host, facts={"static": {"kernel": "6.1", **static}})


def hash_trials(job: Job) -> int:
    parameters = job.trials.first().case.parameters  # type: ignore[union-attr]
    tool = identify_tool("oha", "1.0", load_generator_settings(job))
    return hash_configuration(job.run.definition, parameters, tool)


def test_another_tuning_of_the_load_generator_is_another_configuration(
    personas: Personas, tmp_path: Path
) -> None:
    job = leased(personas, tmp_path, DEFINITION)
    server, generator = Host.objects.order_by("name")
    report(generator, governor="powersave", turbo="on", smt=None)
    assert describe_settings(load_generator_settings(job)) == "governor powersave, turbo on"
    untuned = hash_trials(job)
    # As with epochs: settings of the server's host, other facts, and a tuning to what the host has
    # anyway change nothing here.
    report(server, governor="performance")
    set_host_settings(member=personas.alice, host_id=generator.pk, tuning={"turbo": "on"})
    report(generator, governor="powersave", turbo="on", kernel="6.6")
    assert hash_trials(job) == untuned
    set_host_settings(member=personas.alice, host_id=generator.pk, tuning={"turbo": "off"})
    report(generator, governor="powersave", turbo="on")
    assert describe_settings(load_generator_settings(job)) == "governor powersave, turbo off"
    assert hash_trials(job) != untuned
    # A load on the server's host has no settings of its own.
    Placement.objects.filter(job=job, role="generator").update(host=server)
    assert load_generator_settings(job) == {}
