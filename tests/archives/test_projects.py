"""A project goes to another team whole, once, without secrets; a damaged file leaves nothing."""

import hashlib
import json
import re
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client

from orchestrator.accounts.members import Member
from orchestrator.accounts.services import create_token
from orchestrator.archives.projects.kinds import BY_NAME, KINDS
from orchestrator.archives.projects.new_ids import NewIds
from orchestrator.benchmarks.models import Project
from orchestrator.core.page_cache import forget_parts
from orchestrator.fleet.models import Host
from orchestrator.histories.annotations import annotate
from orchestrator.measurements.ingest import forget_cached
from orchestrator.results.models import Artifact, Histogram, LoadResult, Reading, Series
from orchestrator.runs.models import Job, Trial
from tests.support.demo_team import DemoTeam, make_demo_team

#: What answers of two teams differ in; accounts are not exported. Intervals of single quantiles
#: are drawn by chance, with a fixed seed, from blocks in the order of their ids.
OWN = {"author", "id", "run", "runs", "job", "url", "web_url", "history_url", "series", "series_id"}
DRAWN = {"interval", "band"}
#: Which trial it is, in whichever team.
OF_TRIAL = (
    "trial__job__run__created_at", "trial__case__key", "trial__variant__commit__sha", "trial__round"
)  # fmt: skip


@pytest.fixture
def demo_team(transactional_db: None, tmp_path: Path, data_dir: Path) -> DemoTeam:
    return make_demo_team(tmp_path)


@pytest.fixture
def archive(demo_team: DemoTeam, tmp_path: Path) -> Path:
    alice = demo_team.personas.alice
    project = Project.objects.get(slug="server")
    annotate(member=alice, commit=project.commits.all()[0], text="a note that goes along")
    path = tmp_path / "server.pitwall"
    call_command("export_project", "red", "server", path, quiet=True, stdout=StringIO())
    return path


def take(path: Path, **options: Any) -> str:
    output = StringIO()
    call_command("import_project", path, team="blue", quiet=True, stdout=output, **options)
    return output.getvalue()


def test_an_imported_project_gives_the_same_responses_and_exists_once(
    demo_team: DemoTeam, archive: Path
) -> None:
    red, blue = demo_team.personas.alice, demo_team.personas.mallory
    assert re.match(r"blue/server: [\d\s]+ rows", take(archive))
    assert answers(blue, demo_team.shas) == answers(red, demo_team.shas)
    before = rows()
    assert "nothing was changed" in take(archive)
    assert rows() == before
    host = Host.objects.get(team=blue.team, name="here")
    assert (host.state, host.address, host.credential) == ("external", "", None)
    assert stored(blue) == stored(red)
    assert min(len(entries) for entries in stored(blue).values()) > 5
    assert "red/other" not in take(archive, slug="another")
    assert Project.objects.filter(team=blue.team).count() == 2
    with pytest.raises(CommandError, match="which was not imported from this file"):
        call_command("import_project", archive, team="red", quiet=True)


def answers(member: Member, shas: list[str]) -> list[Any]:
    """A comparison and all histories from the API, without what differs between the teams."""
    forget_cached()
    forget_parts()
    secret = create_token(member=member, name=f"asks {create_token}").secret
    client = Client(headers={"Authorization": f"Bearer {secret}"})
    sides = f"project=server&benchmark=many&baseline={shas[0]}&contender={shas[1]}"
    paths = [f"/api/v1/comparisons?{sides}"]
    series = Series.objects.filter(benchmark__project__team=member.team, benchmark__slug="long")
    named = series.order_by("case__key", "metric__key")
    paths += [
        f"/api/v1/history?benchmark=long&case={each.case.key}&host=here&metric={each.metric.key}"
        for each in named.select_related("case", "metric")
    ]
    responses = [client.get(path) for path in paths]
    assert len(paths) > 2
    assert [each.status_code for each in responses] == [200] * len(paths)
    return [plain(each.json()) for each in responses]


def stored(member: Member) -> dict[str, dict[tuple[Any, ...], Any]]:
    """Each histogram, load and file to its last byte by the trial that left it, and each reading to
    the last bit of its numbers."""
    contents = {
        model.__name__: {
            tuple(key): bytes(content)
            for *key, content in model.objects.filter(
                trial__job__run__team=member.team
            ).values_list(*OF_TRIAL, which, content)
        }
        for model, which, content in (
            (Histogram, "kind", "encoded"),
            (LoadResult, "number", "encoded"),
            (Artifact, "name", "compressed"),
        )
    }
    readings = Reading.objects.filter(case__benchmark__project__team=member.team)
    kept = ("case__key", "commit__sha", "at", "validity", "metrics", "values", "provenance")
    rows = Counter(str(row) for row in readings.values_list(*kept))
    return {**contents, "Reading": {(row,): times for row, times in rows.items()}}


def plain(value: Any, *, without: frozenset[str] = frozenset(OWN)) -> Any:
    """Without what is each team's own, and numbers as far as the order of a sum does not matter."""
    if isinstance(value, dict):
        more = {"quantiles": without | DRAWN}
        return {
            key: plain(value, without=more.get(key, without))
            for key, value in value.items()
            if key not in without
        }
    if isinstance(value, list):
        return [plain(value, without=without) for value in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


def rows() -> dict[str, int]:
    return {kind.name: kind.model._base_manager.count() for kind in KINDS}


def test_a_project_export_has_all_kinds_of_rows_and_no_secret(
    demo_team: DemoTeam, archive: Path
) -> None:
    with zipfile.ZipFile(archive) as opened:
        manifest = json.loads(opened.read("manifest.json"))
        text = b"".join(opened.read(name) for name in opened.namelist())
        jobs = [json.loads(line) for line in opened.read("jobs.jsonl").splitlines()]
    empty = {name for name, each in manifest["members"].items() if not each["rows"]}
    assert empty <= {"snapshots.jsonl", "builds.jsonl", "host_changes.jsonl",
                     "interim_analyses.jsonl",
                     "baselines.jsonl",
                     "point_histograms.jsonl", "point_histograms.bin", "removals.jsonl",
                     "retention.jsonl", "golden_outcomes.jsonl", "build_noises.jsonl",
                     "runs_of_alerts.jsonl"}  # fmt: skip
    assert all({"sealed_secret", "tls", "claim"}.isdisjoint(job) for job in jobs)
    with connection.cursor() as cursor:
        query = "SELECT password FROM accounts_user UNION SELECT digest FROM accounts_apitoken"
        cursor.execute(query)
        secrets = [str(secret).encode() for (secret,) in cursor.fetchall()]
    assert len(secrets) > 5
    assert not [secret for secret in secrets if secret in text]
    assert manifest["excluded_runs"] == 4, "one runs, one waits, and two of a backfill wait"


def damaged(path: Path, name: str, change: Callable[[bytes], bytes], *, in_manifest: bool) -> Path:
    """The archive with another content of a member; `told`: the manifest is changed as well."""
    other = path.with_name("damaged.pitwall")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(other, "w") as new:
        manifest = json.loads(old.read("manifest.json"))
        for each in old.namelist():
            content = change(old.read(each)) if each == name else old.read(each)
            if each != "manifest.json":
                new.writestr(each, content)
            elif name == each:
                manifest = json.loads(content)
            if each == name and in_manifest and each != "manifest.json":
                digest = hashlib.sha256(content).hexdigest()
                manifest["members"][each] |= {"bytes": len(content), "sha256": digest}
        new.writestr("manifest.json", json.dumps(manifest))
    return other


@pytest.fixture
def nothing_changes_after(archive: Path) -> Iterator[None]:
    before = rows()
    yield
    assert rows() == before
    assert Project.objects.filter(team__slug="blue").count() == 0


@pytest.mark.usefixtures("nothing_changes_after")
def test_rows_of_an_export_refer_only_to_rows_of_the_file(
    demo_team: DemoTeam, archive: Path
) -> None:
    """Ids of another team's rows may be known: they stand in links that were shared."""
    theirs = Job.objects.filter(run__state="queued")[0]
    job = f'"job": "{theirs.pk}"'.encode()
    crafted = damaged(
        archive,
        "trials.jsonl",
        lambda text: re.sub(rb'"job": "[^"]+"', job, text, count=1),
        in_manifest=True,
    )
    before = Trial.objects.count()
    with pytest.raises(CommandError, match=f"job: there is no '{theirs.pk}'"):
        take(crafted)
    assert Trial.objects.count() == before
    # Also where no row of the file is here yet, so that its ids stay what they are.
    ids = NewIds(team=demo_team.personas.mallory.team, slug="server", definitions=[])
    with pytest.raises(KeyError):
        ids.get_id("jobs", str(theirs.pk))
    own = "0199aaaa-0000-7000-8000-000000000000"
    ids.register_id(BY_NAME["jobs"], own)
    assert str(ids.get_id("jobs", own)) == own
    with pytest.raises(KeyError):
        ids.get_id("runs", own)
    assert ids.replace_ids({"run": str(theirs.run_id)}) != {"run": str(theirs.run_id)}


def test_an_export_needs_disk_space_only_next_to_its_target(
    demo_team: DemoTeam, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "no such folder"))
    path = tmp_path / "out.pitwall"
    call_command("export_project", "red", "server", path, quiet=True, stdout=StringIO())
    assert zipfile.is_zipfile(path)


def test_import_of_a_damaged_file_changes_nothing(archive: Path) -> None:
    wrong = [
        ("histograms.bin", lambda text: text[:-1] + b"x", False, "histograms.bin differs from"),
        ("trials.jsonl", lambda text: text + b"{}\n", False, "trials.jsonl differs from"),
        ("cases.jsonl", lambda text: text.replace(b'"id"', b'"of"', 1), True, "exactly the fields"),
        ("trials.jsonl", lambda text: text.replace(b'"case": ', b'"case": 9', 1), True, "case: th"),
        ("runs.jsonl", lambda text: text.replace(b"finished", b"vanished", 1), True, "run_state_"),
        ("hosts.jsonl", lambda text: text.replace(b'"here"', b'"../h"', 1), True, "name: Enter"),
        ("definitions.jsonl", lambda text: re.sub(rb'(gest": ").', rb"\1z", text), True, "digest"),
        ("manifest.json", lambda text: text.replace(b'version": 1', b'version": 2'), True, "newer"),
        ("manifest.json", lambda text: text.replace(b"commits.jsonl", b"../x.jsonl"), True, "../x"),
    ]  # fmt: skip
    for name, change, update_manifest, message in wrong:
        with pytest.raises(CommandError, match=re.escape(message)):
            take(damaged(archive, name, change, in_manifest=update_manifest))
    whole = archive.read_bytes()
    archive.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CommandError, match="damaged, or not an exported project"):
        take(archive)
