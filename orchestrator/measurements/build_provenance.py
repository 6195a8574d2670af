"""Build provenance of a trial: programs on the target, digests of the build, and its log."""

import re
from collections.abc import Mapping
from typing import Any

from django.db.models.functions import Right

from orchestrator.benchmarks.matrix import resolve
from orchestrator.benchmarks.secret_names import list_secret_names
from orchestrator.benchmarks.selectors import read_spec
from orchestrator.fleet.programs import list_versions
from orchestrator.runs.models import Build, Job, Trial
from orchestrator.runs.pinned_repositories import PinnedCommit, read_pins, select_pins
from orchestrator.runs.trial_order import KEPT_BUILD, number_build

#: This much of the end of the install and build log is stored with a trial.
LOG_CHARS = 2_000
_DIGEST = re.compile(r"[0-9a-f]{64}")


def build_build_provenance(job: Job, trial: Trial, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the build provenance of a trial.

    `programs`: versions of the programs that the definition requires, as found on the target.
    `build`: the digests of the build, and whether the host confirmed that the server ran from it;
    with several builds of each commit also the number of the build, from 1.
    `secrets`: the versions of those that the trial's processes got; left out without any.
    `install`: the name of the installed build and the end of its log; None without a build.
    `repositories`: the commits of other repositories by name, only if there are any.
    """
    spec = resolve(read_spec(job.run.definition), trial.case.parameters)
    others = {name: pin._asdict() for name, pin in load_trial_pins(job, trial).items()}
    facts = job.snapshot.facts if job.snapshot else {}
    names = list_secret_names([spec])
    secrets = {name: job.secret_versions.get(name) for name in names}
    return {
        **({"secrets": secrets} if secrets else {}),
        "programs": list_versions(facts, spec.requires),
        "build": _build(result, number_build(trial.round, job.run.builds)),
        "install": _install(job, trial, result),
        **({"repositories": others} if others else {}),
    }


def load_trial_pins(job: Job, trial: Trial) -> dict[str, PinnedCommit]:
    """Return the commits of other repositories that a trial was measured with, by name."""
    spec = read_spec(job.run.definition)
    return select_pins(read_pins(job.run.repositories), spec, trial.case.parameters)


def read_digest(value: object) -> str:
    """Return a SHA-256 in hexadecimal digits, as a host reported it; empty for anything else."""
    return value if isinstance(value, str) and _DIGEST.fullmatch(value) else ""


def find_build_digest(result: Mapping[str, Any]) -> str:
    """Return the digest of the build that a trial measured; empty if it is unknown."""
    given = result.get("build")
    return read_digest(given.get("build")) if isinstance(given, Mapping) else ""


def _build(result: Mapping[str, Any], number: int) -> dict[str, Any] | None:
    given = result.get("build")
    if not isinstance(given, Mapping):
        return None
    return {
        "digest": find_build_digest(result),
        "source_digest": read_digest(given.get("source")),
        "checked": given.get("checked") is True,
        **({"number": number} if number != KEPT_BUILD else {}),
    }


def _install(job: Job, trial: Trial, result: Mapping[str, Any]) -> dict[str, str] | None:
    recipe = str(result.get("tree") or "").rpartition("-")[2]
    builds = Build.objects.filter(
        job=job, host=job.host, commit=trial.variant.commit_id, recipe=recipe
    ).exclude(installed="")
    build = builds.values_list("installed", Right("log", LOG_CHARS)).first()
    return None if build is None else {"name": build[0], "log": build[1]}
