"""The secrets that a definition names. No Django."""

from collections.abc import Iterable

from orchestrator.benchmarks.spec import Spec


def list_secret_names(specs: Iterable[Spec]) -> list[str]:
    """Return the names in the definitions of cases (see `resolve`), sorted."""
    envs = (
        env
        for spec in specs
        for env in (
            spec.subject.env,
            spec.load.env,
            *(service.env for service in spec.services.values()),
            *(step.env for step in spec.prepare),
        )
    )
    return sorted(
        {value.secret for env in envs for value in env.values() if not isinstance(value, str)}
    )
