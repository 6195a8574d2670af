"""What a team may use: clear refusals, where it is shown, and who changes it."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from orchestrator.accounts.models import AuditEntry, TeamQuota
from orchestrator.accounts.quotas import QuotaExceededError, load_quotas
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import InvalidRequestError
from orchestrator.fleet.host_settings import release_host, retire_host
from orchestrator.fleet.models import HardwareProfile
from orchestrator.fleet.services import save_profile
from orchestrator.measurements.bulk_import import import_file
from orchestrator.measurements.incoming import ResultIn
from orchestrator.measurements.ingest import ingest_results
from orchestrator.reports.reference_import import NewImport, import_results
from orchestrator.results.models import Artifact, Reading
from orchestrator.retention.storage import measure_stale, measure_storage
from orchestrator.runs.models import Run
from tests.support.factories import make_local_host, make_run
from tests.support.world import World


def quota(*words: str) -> str:
    out = StringIO()
    call_command("quota", "red", *words, stdout=out)
    return out.getvalue()


def test_a_host_above_the_quota_is_refused(world: World, settings: Any) -> None:
    settings.QUOTAS = {**settings.QUOTAS, "hosts": 1}
    with pytest.raises(QuotaExceededError, match="may have 1 host and has 1; retire one"):
        make_local_host(world.alice, name="another")
    assert not world.alice.team.hosts.filter(name="another").exists()
    retire_host(member=world.alice, host_id=world.host.pk)
    make_local_host(world.alice, name="another")
    with pytest.raises(QuotaExceededError):
        release_host(member=world.alice, host_id=world.host.pk)


def test_a_run_above_the_queue_quota_is_refused(world: World, alice: Client, settings: Any) -> None:
    settings.QUOTAS = {**settings.QUOTAS, "queued_minutes": 1}
    make_run(world.alice, world.shas, rounds=2)
    before = Run.objects.count()
    with pytest.raises(QuotaExceededError, match=r"would queue .* may have 1 min 00 s .* and has"):
        make_run(world.alice, world.shas, rounds=30)
    assert Run.objects.count() == before
    form = {"benchmark": "server/hello", "baseline": world.shas[0], "contenders": world.shas[1]}
    data = {**form, "hosts": ["here"], "rounds": "90", "until": "rounds", "when": "now"}
    answer = alice.post(reverse("run-new"), data)
    assert "in the queue and has" in answer.content.decode()
    assert Run.objects.count() == before


def test_a_run_above_the_storage_quota_is_refused(world: World) -> None:
    trial = world.run.jobs.get().trials.first()
    Artifact.objects.create(
        trial=trial, name="big", sha256="0" * 64, size=2**21, compressed=b"x" * 2**20
    )
    assert "storage_mib: 1" in quota("--storage-mib", "1")
    measure_stale(utc_now())
    with pytest.raises(QuotaExceededError, match="shorten how long projects keep raw files"):
        make_run(world.alice, world.shas)
    assert "custom quotas" in quota("--storage-mib", "2")
    make_run(world.alice, world.shas)
    assert "default quotas" in quota("--usual")


def sent(world: World, *marks: str) -> list[ResultIn]:
    return [
        ResultIn(
            project="server", benchmark="hello", host="laptop", commit=world.shas[0], id=mark,
            parameters={"connections": 4}, metrics={"requests.rate": 1000.0}, note="n" * 900,
        )
        for mark in marks
    ]  # fmt: skip


def test_an_import_above_the_quota_is_refused(world: World, tmp_path: Path) -> None:
    quota("--storage-mib", "1")
    team, before = world.alice.team, Reading.objects.count()
    raw = measure_storage(team)
    TeamQuota.objects.filter(team=team).update(storage_used=2**20 - 2_500)
    ingest_results(member=world.alice, results=sent(world, "a"))
    # What was taken in since the last count counts as well, and what is sent again does not.
    ingest_results(member=world.alice, results=sent(world, "a"))
    ingest_results(member=world.alice, results=sent(world, "b"))
    refused = "use 1.024 KiB of a quota of 1.00 MiB, and this would add 1.08 KiB; shorten"
    with pytest.raises(QuotaExceededError, match=refused):
        ingest_results(member=world.alice, results=sent(world, "c"))
    file = tmp_path / "more.jsonl"
    file.write_text("\n".join(each.model_dump_json() for each in sent(world, "d", "e")))
    with pytest.raises(QuotaExceededError, match="would add"):
        import_file(member=world.alice, path=file)
    rows = "".join(f"s,box,{number},requests.rate,1/s,1\n" for number in range(9))
    figures = NewImport(
        name="theirs",
        format="csv",
        content=f"suite,profile,case.system,metric,unit,value\n{rows}".encode(),
    )
    with pytest.raises(QuotaExceededError, match="would add"):
        import_results(member=world.alice, new=figures)
    assert Reading.objects.count() == before + 2
    assert not team.reference_sources.exists()
    # What they really take is found out by the next count.
    counted = measure_storage(team)
    assert 2_000 < counted - raw < 3_000
    assert import_file(member=world.alice, path=file).accepted == 2
    with_file = measure_storage(team)
    assert 2_000 < with_file - counted < 3_000
    import_results(member=world.alice, new=figures)
    assert 9 * 150 < measure_storage(team) - with_file < 9 * 450


def test_use_of_quotas_is_shown(
    world: World, alice: Client, bob: Client, mallory: Client, client: Client
) -> None:
    quota("--hosts", "4")
    address = reverse("settings-quotas")
    page = bob.get(address).content.decode()
    assert "These quotas apply only to this team." in page
    assert "25 %" in page
    assert "25 %" not in mallory.get(address).content.decode()
    assert address in alice.get(reverse("settings")).content.decode()
    assert client.get(address).status_code == 302
    assert AuditEntry.objects.filter(action="quota.set", team=world.alice.team).exists()
    with pytest.raises(CommandError, match="expected a number or none"):
        quota("--hosts", "many")


def test_the_trials_of_a_run_are_limited_over_all_hosts(world: World, settings: Any) -> None:
    settings.MAX_TRIALS = 10
    make_local_host(world.alice, name="second")
    assert make_run(world.alice, world.shas[:2], rounds=5)
    with pytest.raises(InvalidRequestError, match="would be 20 trials; a run has at most 10"):
        make_run(world.alice, world.shas[:2], rounds=5, hosts=("here", "second"))


def test_names_of_other_machines_and_profiles_are_limited(world: World, settings: Any) -> None:
    settings.MAX_EXTERNAL_HOSTS = 3
    names = [f"ci-{number}" for number in range(5)]
    results = [
        each.model_copy(update={"host": name})
        for name, each in zip(names, sent(world, *names), strict=True)
    ]
    ingest_results(member=world.alice, results=results[:3])
    with pytest.raises(QuotaExceededError, match="may have 3 external hosts"):
        ingest_results(member=world.alice, results=results)
    assert world.alice.team.hosts.filter(transport="external").count() == 3
    settings.MAX_PROFILES = HardwareProfile.objects.filter(team=world.alice.team).count()
    save_profile(member=world.alice, slug="any", name="Any machine")
    with pytest.raises(QuotaExceededError, match="hardware profiles"):
        save_profile(member=world.alice, slug="one-more", name="One more")
    assert not HardwareProfile.objects.filter(slug="one-more").exists()


def test_every_team_has_quotas_from_the_start(world: World) -> None:
    quotas = load_quotas(world.alice.team)
    assert (quotas.hosts, quotas.queued_minutes, quotas.storage_mib) == (50, 20_160, 51_200)
    assert quotas.mirrors_mib == 51_200
