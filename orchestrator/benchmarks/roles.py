"""What any case of a definition asks of its hosts. No Django."""

from orchestrator.benchmarks.auxiliary import Role
from orchestrator.benchmarks.loads import whole_shapes_of
from orchestrator.benchmarks.spec import Spec


def roles_of(spec: Spec) -> frozenset[Role]:
    """The roles that some host has to play in a run of this definition."""
    return frozenset().union(*(shape.roles for shape in whole_shapes_of(spec)))


def unbound_of(spec: Spec) -> tuple[str, ...]:
    """The subject and the services that in some case do not say `{bind}` (see Spec.unbound)."""
    return tuple(dict.fromkeys(name for shape in whole_shapes_of(spec) for name in shape.unbound))
