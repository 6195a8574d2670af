"""Requirements of all cases of a definition for its hosts. No Django."""

from orchestrator.benchmarks.auxiliary import Role
from orchestrator.benchmarks.loads import whole_shapes_of
from orchestrator.benchmarks.spec import Spec


def roles_of(spec: Spec) -> frozenset[Role]:
    """Return the roles that a run of this definition needs hosts for."""
    return frozenset().union(*(shape.roles for shape in whole_shapes_of(spec)))


def unbound_of(spec: Spec) -> tuple[str, ...]:
    """Return the subject and the services that lack `{bind}` in some case (see Spec.unbound)."""
    return tuple(dict.fromkeys(name for shape in whole_shapes_of(spec) for name in shape.unbound))
