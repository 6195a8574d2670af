"""Recipes: how commits are built, with one recipe for all cases with the same steps."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.benchmarks.fields import Scalar, format_axis_value
from orchestrator.benchmarks.matrix import fill, fill_env
from orchestrator.benchmarks.models import Case, Project
from orchestrator.benchmarks.placeholders import find_placeholders
from orchestrator.benchmarks.spec import Install, Spec
from orchestrator.core.ids import hash_value
from orchestrator.dispatch.requirements import build_path
from orchestrator.dispatch.stage import Facts, Stage, select_building_hosts
from orchestrator.fleet.programs import list_versions
from orchestrator.runs.models import HostRole, Job, Trial

MAX_LABEL = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The steps of installation and build for a commit, with the values of a case in place."""

    steps: list[list[str]]
    timeout_s: float
    env: dict[str, Any]
    install: dict[str, Any] | None
    working_dir: str | None
    requires: dict[str, str]
    inputs: str

    def name(self, sha: str) -> str:
        """Return the name of the build of a commit by this recipe."""
        return f"{sha}-{self.inputs}"

    def tree(self, sha: str) -> str:
        return f"builds/{self.name(sha)}"


def build_source_path(sha: str) -> str:
    return f"sources/{sha}.tar.gz"


def build_repository_id(project: Project) -> str:
    """Return the name of a project's repository on hosts."""
    return hash_value(project.repository_url)[:16]


def has_git(facts: Facts) -> bool:
    return bool((facts.get("tools") or {}).get("git"))


def resolve_recipe(spec: Spec, parameters: Mapping[str, Scalar], facts: Facts) -> Recipe:
    """Return the recipe of a case; `spec` is its own definition, `facts` are those of the target.

    Cases with the same recipe and programs share a build. Environment variables that name an axis
    apply only to the server, or each case would have a separate build.
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
    install = _install(subject.install, parameters, around)
    languages = facts.get("languages")
    inputs = hash_value([steps, env, install, machine, programs, languages, working_dir])
    return Recipe(
        steps=steps,
        timeout_s=subject.build_timeout_s,
        env=env,
        install=install,
        working_dir=working_dir,
        requires=dict(spec.requires),
        inputs=inputs[:16],
    )


def fill_working_dir(spec: Spec, parameters: Mapping[str, Scalar]) -> str | None:
    """Return the working directory of the subject's commands; None for the root of the commit."""
    working_dir = spec.subject.working_dir
    return None if working_dir is None else fill(working_dir, parameters)


def build_builds(job: Job, stage: Stage, trials: Iterable[Trial]) -> list[dict[str, Any]]:
    """Return the builds of a plan for these trials: one per commit, recipe and kind of host.

    Hosts differ in how they get the commit, by git or as an archive, and in the paths of their
    programs.
    """
    wanted: dict[tuple[str, str], Recipe] = {}
    users: dict[str, dict[int, Case]] = {}
    hosts: dict[tuple[str, str], dict[str, None]] = {}
    for trial in trials:
        spec, sha = stage.specs[trial.case_id], trial.variant.commit.sha
        recipe = resolve_recipe(spec, trial.case.parameters, stage.get_facts(HostRole.TARGET))
        wanted.setdefault((sha, recipe.inputs), recipe)
        users.setdefault(recipe.inputs, {})[trial.case_id] = trial.case
        labels = [
            stage.job_hosts.label(host) for host in select_building_hosts([spec], stage.job_hosts)
        ]
        hosts.setdefault((sha, recipe.inputs), {}).update(dict.fromkeys(labels))
    repository = build_repository_id(job.run.definition.benchmark.project)
    named = _build_recipe_labels(
        stage.spec, {inputs: list(cases.values()) for inputs, cases in users.items()}
    )
    return [
        _build_entry(recipe, sha, on, path, source, named[inputs])
        for (sha, inputs), recipe in wanted.items()
        for source, path, on in _list_host_kinds(
            recipe, sha, list(hosts[sha, inputs]), stage, repository
        )
    ]


def _list_host_kinds(
    recipe: Recipe, sha: str, labels: list[str], stage: Stage, repository: str
) -> list[tuple[dict[str, str], list[str], list[str]]]:
    """Return the source and path of each kind of host, with the hosts of that kind."""
    kinds: dict[str, tuple[dict[str, str], list[str], list[str]]] = {}
    for label in labels:
        facts = stage.facts[label]
        own = {"repository": repository} if has_git(facts) else {"archive": build_source_path(sha)}
        path = build_path(facts, recipe.requires)
        kinds.setdefault(hash_value([own, path]), (own, path, []))[2].append(label)
    return list(kinds.values())


def _build_entry(
    recipe: Recipe, sha: str, on: list[str], path: list[str], source: dict[str, str], label: str
) -> dict[str, Any]:
    return {
        "id": recipe.name(sha),
        "label": label,
        "commit": sha,
        "source": source,
        "tree": recipe.tree(sha),
        "on": on,
        "path": path,
        "install": recipe.install,
        "working_dir": recipe.working_dir,
        "steps": recipe.steps,
        "env": recipe.env,
        "timeout_s": recipe.timeout_s,
    }


def _install(
    install: Install | None, parameters: Mapping[str, Scalar], around: list[Any]
) -> dict[str, Any] | None:
    if install is None:
        return None
    steps = [_fill_command(command, parameters) for command in install.steps]
    return {
        "key": hash_value([steps, *around]),
        "files": [fill(file, parameters) for file in install.files],
        "steps": steps,
        "timeout_s": install.timeout_s,
    }


def _list_other_programs(facts: Facts) -> dict[str, Any]:
    """Return all languages of the host: without requirements a definition may use any of them."""
    return list_versions(facts, facts.get("languages") or {})


def _fill_command(command: Iterable[str], parameters: Mapping[str, Scalar]) -> list[str]:
    return [fill(word, parameters) for word in command]


def _build_recipe_labels(spec: Spec, users: Mapping[str, list[Case]]) -> dict[str, str]:
    """Return a label for each recipe: the values of its cases in the axes that distinguish it."""
    every = [case for cases in users.values() for case in cases]
    return {inputs: _label(spec, cases, every) for inputs, cases in users.items()}


def _label(spec: Spec, cases: list[Case], every: list[Case]) -> str:
    parts = []
    for axis in spec.matrix:
        own, all_ = (
            list(dict.fromkeys(format_axis_value(case.parameters.get(axis, "")) for case in some))
            for some in (cases, every)
        )
        if set(own) != set(all_):
            parts.append(f"{axis} {', '.join(own)}")
    return "; ".join(parts)[:MAX_LABEL]
