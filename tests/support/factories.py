"""Plain functions that create test data through the product's own services."""

import os
import shutil
import subprocess
import sys
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import dedent
from typing import Any

from django.db import transaction

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Membership, Role, Team, User
from orchestrator.accounts.selectors import load_member
from orchestrator.accounts.services import create_team, create_user
from orchestrator.benchmarks.models import Benchmark, Case, Definition, Project
from orchestrator.benchmarks.selectors import get_stored_spec
from orchestrator.benchmarks.services import save_definition, store_case_rows
from orchestrator.core.clock import utc_now
from orchestrator.core.ids import sha256_hex
from orchestrator.fleet.host_settings import set_host_settings
from orchestrator.fleet.models import Host, HostSnapshot
from orchestrator.fleet.services import add_local_host, save_profile
from orchestrator.measurements import recording
from orchestrator.measurements.build_provenance import load_trial_pins
from orchestrator.measurements.comparability import (
    hash_block,
    hash_build,
    hash_configuration,
    hash_run,
    identify_tool,
)
from orchestrator.measurements.metrics import store_metrics
from orchestrator.measurements.readings import load_values
from orchestrator.measurements.recording import Ids, MeasuredRow
from orchestrator.results.models import Artifact, Histogram, Point, Reading
from orchestrator.runs.models import Job, Run, Schedule, Trial
from orchestrator.runs.schedules import NewSchedule, create_schedule
from orchestrator.runs.services import RunRequest, create_run
from orchestrator.runs.version_keys import NEXT_REVISION
from orchestrator.stats.histogram import Histogram as Distribution
from tests.support.copied_rows import RowTemplate
from tests.support.fetched_projects import FETCHED_REPOSITORIES

_PERSONAS = RowTemplate(Team, User, Membership)
PASSWORD = "correct horse battery"

DEFINITION = dedent(
    """\
    version: 1
    title: Hello
    subject:
      start: ["{python}", "server.py", "--port", "{port}"]
      ready: {path: /hello, body: "Hello, World!", timeout_s: 5}
    load:
      path: /hello
      connections: "{connections}"
      duration_s: 0.6
      warmup_s: 0.2
    matrix:
      connections: [4]
    rounds: 5
    cooldown_s: 0
    """
)

#: A closed and an open loop in one matrix.
MIXED_LOOPS = DEFINITION.replace(
    "  connections: [4]\n",
    "  loop: [closed, open]\n  connections: [4]\noptions: {loop: {open: {load: {rate: 100}}}}\n",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Personas:
    alice: Member
    bob: Member
    mallory: Member


def make_personas() -> Personas:
    if _PERSONAS.rows is None:
        with _PERSONAS.reading():
            return _make_first_personas()
    copies = _PERSONAS.copy()
    teams, users = ({row.pk: row for row in copies[model]} for model in (Team, User))
    for membership in copies[Membership]:
        membership.team, membership.user = teams[membership.team_id], users[membership.user_id]
        membership.user.known_memberships = (membership,)
    alice, bob, mallory = users.values()
    return Personas(alice=load_member(alice), bob=load_member(bob), mallory=load_member(mallory))


def _make_first_personas() -> Personas:
    red = create_team(slug="red", name="Red")
    blue = create_team(slug="blue", name="Blue")
    alice = create_user(username="alice", password=PASSWORD, team=red, role=Role.OWNER)
    bob = create_user(username="bob", password=PASSWORD, team=red, role=Role.VIEWER)
    mallory = create_user(username="mallory", password=PASSWORD, team=blue, role=Role.OWNER)
    return Personas(alice=load_member(alice), bob=load_member(bob), mallory=load_member(mallory))


def add_member(member: Member, username: str, role: str) -> Member:
    user = User.objects.create_user(username=username, password=PASSWORD)
    Membership.objects.create(team=member.team, user=user, role=role)
    return load_member(user)


def git(folder: Path, *args: str, at: int = 0) -> str:
    """Run git in `folder` as a fixed author, `at` seconds after a fixed instant."""
    when = f"{1_700_000_000 + at} +0000"
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "GIT_AUTHOR_NAME": "Ada",
        "GIT_AUTHOR_EMAIL": "ada@example.org",
        "GIT_COMMITTER_NAME": "Ada",
        "GIT_COMMITTER_EMAIL": "ada@example.org",
        "GIT_AUTHOR_DATE": when,
        "GIT_COMMITTER_DATE": when,
    }
    done = subprocess.run(
        ["git", *args], cwd=folder, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


#: Three commits.
WITHOUT_SERVER = tuple({"file.txt": f"{number}\n"} for number in range(3))


def make_repository(folder: Path, versions: Sequence[dict[str, str]]) -> list[str]:
    """Create a git repository with one commit per version (file → content); return the hashes."""
    made, shas = _build_repository(tuple(tuple(files.items()) for files in versions))
    shutil.copytree(made, folder)
    return list(shas)


@cache
def _build_repository(versions: tuple[tuple[tuple[str, str], ...], ...]) -> tuple[Path, list[str]]:
    """Cached to be copied: most tests need the same one, and git is one process per step."""
    folder = Path(_repositories().name) / str(len(os.listdir(_repositories().name)))
    folder.mkdir()
    git(folder, "init", "--quiet", "--template=", "--initial-branch=main")
    return folder, [
        commit_files(folder, dict(files), number) for number, files in enumerate(versions, start=1)
    ]


@cache
def _repositories() -> TemporaryDirectory[str]:
    """Return a folder that is removed with the process."""
    return TemporaryDirectory(prefix="pitwall-repositories-")


def commit_files(folder: Path, files: dict[str, str], number: int) -> str:
    for name, content in files.items():
        (folder / name).write_text(content)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", f"version {number}", at=number * 60)
    return git(folder, "rev-parse", "HEAD")


def make_project(
    member: Member, folder: Path, versions: Sequence[dict[str, str]] | None = None
) -> tuple[Project, list[str]]:
    """Create a project over a real repository; by default three commits without a server."""
    shas = make_repository(folder, versions or WITHOUT_SERVER)
    return FETCHED_REPOSITORIES.create_project(member, folder, shas), shas


def make_definition(
    member: Member, project: Project, *, slug: str = "hello", source: str = DEFINITION
) -> Definition:
    return save_definition(member=member, project=project, slug=slug, source=source)


def store_cases(definition: Definition) -> list[Case]:
    """Return the rows of all cases, in the order of the matrix."""
    benchmark = definition.benchmark
    ids = store_case_rows(benchmark=benchmark, cases=get_stored_spec(definition).cases)
    rows = benchmark.cases.in_bulk(ids)
    return [rows[pk] for pk in ids]


def make_local_host(member: Member, name: str = "here") -> Host:
    profile = save_profile(member=member, slug="any", name="Any machine")
    return add_local_host(member=member, name=name, profile=profile, python=sys.executable)


def make_shared_host(member: Member, name: str = "here") -> Host:
    """Return a local host whose trials stay usable next to other tests."""
    host = make_local_host(member, name)
    return set_host_settings(member=member, host_id=host.pk, is_shared=True)


def noise(sigma: float) -> dict[str, float]:
    """Return what a calibration of ten pairs stores about one metric."""
    spread = {"pairs": 10, "sigma": sigma, "low": 0.7 * sigma, "high": 1.8 * sigma}
    return {**spread, "mean": 0.0, "mean_low": -sigma, "mean_high": sigma}


def make_run(member: Member, shas: Sequence[str], **changes: Any) -> Run:
    """Create a queued run of `hello` on the host `here`; the first hash is the baseline."""
    request = {"benchmark": "hello", "hosts": ("here",), **changes}
    return create_run(
        member=member,
        request=RunRequest(baseline=shas[0], contenders=tuple(shas[1:]), **request),
        seed=1,
    )


#: Each night, of what `make_definition` defines.
NIGHTLY = NewSchedule(
    name="nightly",
    cron="0 3 * * *",
    benchmark="hello",
    baseline_ref="main~1",
    contender_ref="main",
    hosts=("here",),
)


def make_nightly_schedule(member: Member) -> Schedule:
    return create_schedule(member=member, new=NIGHTLY)


def make_known(run: Run, known: Mapping[str, float]) -> None:
    """Give the run's definition a new version with these `known` facts about its server."""
    old = run.definition
    new = Definition.objects.create(
        benchmark=old.benchmark,
        version=old.version + 1,
        source=old.source,
        spec={**old.spec, "known": dict(known)},
        axes=old.axes,
        digest=old.digest,
    )
    Run.objects.filter(pk=run.pk).update(definition=new)


def finish_run(
    run: Run, rates: Sequence[float], *, wobble: float = 0.002, factors: Mapping[str, float] = {}
) -> Run:
    """Fill in a run as if it had been measured: `rates` are requests/s of its variants in order.

    It is for tests of how results are shown; tests of measuring measure. Each round varies a little
    in a fixed pattern, so that intervals have a width. `factors`: label of a case → factor of the
    last variant's rate there.
    """
    now = utc_now()
    for job in run.jobs.all():
        snapshot = HostSnapshot.objects.create(
            host=job.host, facts={"cpu_model": "Test CPU", "threads": 2}, fingerprint="f" * 64
        )
        wanted = {}
        for trial in job.trials.select_related("variant", "case"):
            drift = 1 + wobble * ((trial.round * 7 + trial.variant.position * 3) % 5 - 2)
            if trial.variant.position == len(rates) - 1:
                drift *= factors.get(trial.case.label, 1)
            wanted[trial] = rates[trial.variant.position] * drift
        _fill_trials(job, wanted, now)
        run.jobs.filter(pk=job.pk).update(
            state="finished",
            snapshot=snapshot,
            started_at=now,
            ended_at=now,
            revision=NEXT_REVISION,
        )
    Run.objects.filter(pk=run.pk).update(
        state="finished", started_at=now, ended_at=now + timedelta(seconds=60)
    )
    run.refresh_from_db()
    return run


def record_trial(trial: Any, readings: Mapping[str, float], **changes: Any) -> None:
    """Record the readings of one of our trials, and their points, as if it had just been stored."""
    with transaction.atomic():
        record([_measured(trial, readings, **changes)])


def _measured(trial: Any, readings: Mapping[str, float], **changes: Any) -> MeasuredRow:
    if "epoch" not in changes:
        changes["epoch"] = trial.job.host.changes.count()
    measured = {
        "id": trial.pk,
        "benchmark": trial.case.benchmark_id,
        "case": trial.case_id,
        "host": trial.job.host_id,
        "commit": trial.variant.commit_id,
        "at": utc_now(),
        "validity": "valid",
        "readings": readings,
        "block": hash_block(trial.job_id, trial.round),
        "place": trial.position + 1,
        "run": hash_run(trial.job.run_id),
        "build": hash_build((trial.provenance.get("build") or {}).get("digest", "")),
        "configuration": hash_configuration(
            trial.job.run.definition,
            trial.case.parameters,
            identify_tool("oha", "1.0", trial.provenance.get("generator_settings")),
            {name: pin.sha for name, pin in load_trial_pins(trial.job, trial).items()},
        ),
        **changes,
    }
    return MeasuredRow(**measured)


def record_again(changed: Mapping[Any, Mapping[str, float]] | None = None) -> None:
    """Record readings and points again, after a test has changed rows of trials directly.

    `changed`: trial id → its new readings.
    """
    kept = load_values(Reading.objects.values_list("pk", flat=True))
    Point.objects.all().delete()
    Reading.objects.all().delete()
    teams: dict[Any, list[MeasuredRow]] = {}
    trials = Trial.objects.filter(pk__in=kept).select_related(
        "case__benchmark__project", "variant", "job__host", "job__run__definition"
    )
    for trial in trials.order_by("position"):
        readings = {**kept[trial.pk], **(changed or {}).get(trial.pk, {})}
        row = _measured(trial, readings, validity=trial.validity)
        teams.setdefault(trial.case.benchmark.project.team_id, []).append(row)
    with transaction.atomic():
        for rows in teams.values():
            record(rows)


def _fill_trials(job: Job, rates: Mapping[Trial, float], now: datetime) -> None:
    """Use few statements: most tests of results begin with this."""
    job.trials.update(
        state="measured",
        validity="valid",
        host=job.host_id,
        attempt=1,
        started_at=now,
        ended_at=now,
        provenance={
            "argv": ["oha", "http://127.0.0.1:1/"],
            "tool": {"name": "oha", "version": "1.0"},
            # Without an axis, all trials have the same commits of other repositories.
            "repositories": {pin["name"]: pin for pin in job.run.repositories},
        },
    )
    epoch = job.host.changes.count()
    with transaction.atomic():
        record(
            [
                _measured(trial, _build_readings(rate), at=now, epoch=epoch)
                for trial, rate in rates.items()
            ]
        )
    Histogram.objects.bulk_create(_histogram(trial, rate) for trial, rate in rates.items())
    Artifact.objects.bulk_create(
        Artifact(
            trial=trial,
            name="tool.json",
            sha256=sha256_hex(b"{}"),
            size=2,
            compressed=zlib.compress(b"{}"),
        )
        for trial in rates
    )


def _build_readings(rate: float) -> dict[str, float]:
    return {
        "requests.rate": rate,
        "latency.p50": 4 / rate,
        "latency.p99": 12 / rate,
        "cpu.seconds_per_1k": 900 / rate,
    }


def _histogram(trial: Trial, rate: float) -> Histogram:
    encoded, count = _encode_latencies(rate)
    return Histogram(trial=trial, kind="ok", encoded=encoded, count=count)


@cache
def _encode_latencies(rate: float) -> tuple[bytes, int]:
    """Return an encoded histogram and its count. Most tests use the same few rates."""
    values = sorted({max(1, int(4 / rate * 1e6 * (0.6 + share / 50))) for share in range(100)})
    distribution = Distribution.from_counts(values, [20] * len(values))
    return distribution.encode(), distribution.total_count


def record(rows: Sequence[MeasuredRow], ids: Ids | None = None) -> int:
    """Return how many of the rows, all of one team, were new."""
    if not rows:
        return 0
    team = Benchmark.objects.select_related("project").get(pk=rows[0].benchmark).project.team_id
    metrics = store_metrics(team, {key for row in rows for key in row.readings})
    return len(recording.record(rows, metrics, ids))
