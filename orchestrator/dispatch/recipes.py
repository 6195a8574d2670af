"""Recipes: how commits are built, with one recipe for all cases with the same steps."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from uuid import UUID

from orchestrator.benchmarks.fields import Scalar, format_axis_value
from orchestrator.benchmarks.matrix import fill, fill_env
from orchestrator.benchmarks.models import Case, Commit, Project
from orchestrator.benchmarks.placeholders import find_placeholders, list_repository_placeholders
from orchestrator.benchmarks.spec import Install, Spec
from orchestrator.core.ids import hash_value
from orchestrator.dispatch.requirements import build_path
from orchestrator.dispatch.sources import describe_source
from orchestrator.dispatch.stage import Facts, Stage, select_building_hosts
from orchestrator.fleet.programs import list_versions
from orchestrator.runs.models import HostRole, Job, Trial
from orchestrator.runs.pinned_repositories import PinnedCommit, select_pins
from orchestrator.runs.trial_order import KEPT_BUILD, number_build

MAX_LABEL = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The steps of installation and build for a commit, with the values of a case in place.

    `pins`: the commits of other repositories, by their names.
    """

    steps: list[list[str]]
    timeout_s: float
    env: dict[str, Any]
    install: dict[str, Any] | None
    working_dir: str | None
    requires: dict[str, str]
    pins: Mapping[str, PinnedCommit]
    inputs: str

    def name(self, sha: str) -> str:
        """Return the name of the build of a commit by this recipe."""
        return f"{sha}-{self.inputs}"

    def tree(self, sha: str) -> str:
        return f"builds/{self.name(sha)}"

    def build_again(self, run: UUID, number: int) -> "Recipe":
        """Return the recipe of a build that only this run uses. Its install is shared by all."""
        return replace(self, inputs=hash_value([self.inputs, str(run), number])[:16])


def resolve_recipe(
    spec: Spec,
    parameters: Mapping[str, Scalar],
    facts: Facts,
    pins: Sequence[PinnedCommit] = (),
) -> Recipe:
    """Return the recipe of a case; `spec` is its own definition, `facts` are those of the target.

    `pins` are those of the run. Cases with the same recipe and programs share a build. Environment
    variables that name an axis apply only to the server, or each case would have a separate build.
    """
    subject = spec.subject
    steps = [_fill_command(command, parameters) for command in subject.build]
    env = {
        key: value
        for key, value in fill_env(subject.env, {}).items()
        if not (isinstance(value, str) and find_placeholders(value) & set(spec.matrix))
    }
    machine = [facts.get(name) for name in ("system", "machine", "python")]
    programs = list_versions(facts, spec.requires)
    working_dir = fill_working_dir(spec, parameters)
    around = [env, machine, programs or _list_other_programs(facts), working_dir]
    own_pins = select_pins(pins, spec, parameters)
    install = _install(
        subject.install, parameters, around, _find_used(subject.install, env, own_pins)
    )
    languages = facts.get("languages")
    hashes = [{name: [pin.project, pin.sha] for name, pin in own_pins.items()}] if own_pins else []
    inputs = hash_value([steps, env, install, machine, programs, languages, working_dir, *hashes])
    return Recipe(
        steps=steps,
        timeout_s=subject.build_timeout_s,
        env=env,
        install=install,
        working_dir=working_dir,
        requires=dict(spec.requires),
        pins=own_pins,
        inputs=inputs[:16],
    )


def resolve_trial_recipe(trial: Trial, stage: Stage) -> Recipe:
    """Return the recipe of the build that a trial measures."""
    facts = stage.get_facts(HostRole.TARGET)
    spec = stage.specs[trial.case_id]
    recipe = resolve_recipe(spec, trial.case.parameters, facts, stage.pins)
    number = number_build(trial.round, stage.run.builds)
    return recipe if number == KEPT_BUILD else recipe.build_again(stage.run.pk, number)


def fill_working_dir(spec: Spec, parameters: Mapping[str, Scalar]) -> str | None:
    """Return the working directory of the subject's commands; None for the root of the commit."""
    working_dir = spec.subject.working_dir
    return None if working_dir is None else fill(working_dir, parameters)


def build_builds(job: Job, stage: Stage, trials: Sequence[Trial]) -> list[dict[str, Any]]:
    """Return the builds of a plan for these trials: one per commit, recipe and kind of host.

    Hosts differ in how they get the commit, by git or as an archive, and in the paths of their
    programs. All trials are of one round, so they measure the same build of a recipe.
    """
    wanted: dict[tuple[str, str], tuple[Commit, Recipe]] = {}
    users: dict[str, dict[int, Case]] = {}
    hosts: dict[tuple[str, str], dict[str, None]] = {}
    for trial in trials:
        spec, commit = stage.specs[trial.case_id], trial.variant.commit
        recipe = resolve_trial_recipe(trial, stage)
        wanted.setdefault((commit.sha, recipe.inputs), (commit, recipe))
        users.setdefault(recipe.inputs, {})[trial.case_id] = trial.case
        labels = [
            stage.job_hosts.label(host) for host in select_building_hosts([spec], stage.job_hosts)
        ]
        hosts.setdefault((commit.sha, recipe.inputs), {}).update(dict.fromkeys(labels))
    project = job.run.definition.benchmark.project
    named = _build_recipe_labels(
        stage.spec,
        {inputs: list(cases.values()) for inputs, cases in users.items()},
        _label_build(trials, stage),
    )
    return [
        _build_entry(recipe, commit.sha, kind, named[recipe.inputs])
        for key, (commit, recipe) in wanted.items()
        for kind in _list_host_kinds(recipe, commit, project, list(hosts[key]), stage)
    ]


class HostKind(NamedTuple):
    """Hosts `on` which a build has the same sources and folders of programs."""

    source: dict[str, Any]
    repositories: dict[str, Any]
    path: list[str]
    on: list[str]


def _list_host_kinds(
    recipe: Recipe, commit: Commit, project: Project, labels: list[str], stage: Stage
) -> list[HostKind]:
    """Return each kind of host of a build."""
    kinds: dict[str, HostKind] = {}
    for label in labels:
        facts = stage.facts[label]
        own = describe_source(facts, project, commit.sha, stage.sources.get(commit.pk))
        others = {name: _describe_pinned(facts, pin, stage) for name, pin in recipe.pins.items()}
        path = build_path(facts, recipe.requires)
        kind = HostKind(own, others, path, [])
        kinds.setdefault(hash_value(kind), kind).on.append(label)
    return list(kinds.values())


def _describe_pinned(facts: Facts, pin: PinnedCommit, stage: Stage) -> dict[str, Any]:
    commit = stage.pinned[pin]
    source = describe_source(facts, commit.project, pin.sha, stage.sources.get(commit.pk))
    if "problem" in source:
        source = {"problem": f"the repository {pin.name} at {pin.ref}: {source['problem']}"}
    return {"commit": pin.sha, "source": source}


def _build_entry(recipe: Recipe, sha: str, kind: HostKind, label: str) -> dict[str, Any]:
    return {
        "id": recipe.name(sha),
        "label": label,
        "commit": sha,
        "source": kind.source,
        "repositories": kind.repositories,
        "tree": recipe.tree(sha),
        "on": kind.on,
        "path": kind.path,
        "install": recipe.install,
        "working_dir": recipe.working_dir,
        "steps": recipe.steps,
        "env": recipe.env,
        "timeout_s": recipe.timeout_s,
    }


def _find_used(
    install: Install | None, env: Mapping[str, Any], pins: Mapping[str, PinnedCommit]
) -> dict[str, PinnedCommit]:
    """Return the repositories that the steps of an install or their environment name."""
    steps = [] if install is None else [word for step in install.steps for word in step]
    texts = [value for value in env.values() if isinstance(value, str)]
    words = set().union(*map(find_placeholders, [*steps, *texts]))
    return {
        name: pin
        for name, pin in pins.items()
        if words.intersection(list_repository_placeholders([name]))
    }


def _install(
    install: Install | None,
    parameters: Mapping[str, Scalar],
    around: list[Any],
    used: Mapping[str, PinnedCommit],
) -> dict[str, Any] | None:
    """Return the install of a plan; its key depends on the commits of `used`."""
    if install is None:
        return None
    steps = [_fill_command(command, parameters) for command in install.steps]
    hashes = [{name: pin.sha for name, pin in used.items()}] if used else []
    return {
        "key": hash_value([steps, *around, *hashes]),
        "repositories": list(used),
        "files": [fill(file, parameters) for file in install.files],
        "steps": steps,
        "timeout_s": install.timeout_s,
    }


def _list_other_programs(facts: Facts) -> dict[str, Any]:
    """Return all languages of the host: without requirements a definition may use any of them."""
    return list_versions(facts, facts.get("languages") or {})


def _fill_command(command: Iterable[str], parameters: Mapping[str, Scalar]) -> list[str]:
    return [fill(word, parameters) for word in command]


def _label_build(trials: Sequence[Trial], stage: Stage) -> list[str]:
    """Return which build of a commit the trials of a round measure, if there are several."""
    numbers = {number_build(trial.round, stage.run.builds) for trial in trials} - {KEPT_BUILD}
    return [f"build {number} of {stage.run.builds}" for number in numbers]


def _build_recipe_labels(
    spec: Spec, users: Mapping[str, list[Case]], first: list[str]
) -> dict[str, str]:
    """Return a label for each recipe: the values of its cases in the axes that distinguish it.

    It begins with the parts in `first`.
    """
    every = [case for cases in users.values() for case in cases]
    return {inputs: _label(spec, cases, every, first) for inputs, cases in users.items()}


def _label(spec: Spec, cases: list[Case], every: list[Case], first: list[str]) -> str:
    parts = [*first]
    for axis in spec.matrix:
        own, all_ = (
            list(dict.fromkeys(format_axis_value(case.parameters.get(axis, "")) for case in some))
            for some in (cases, every)
        )
        if set(own) != set(all_):
            parts.append(f"{axis} {', '.join(own)}")
    return "; ".join(parts)[:MAX_LABEL]
