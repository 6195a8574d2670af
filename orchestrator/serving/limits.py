"""How many connections and waiting requests a process may have."""

import resource

from django.conf import settings

from orchestrator.core.waits import WaitLimits

#: Files that are not connections: of the database, of Redis, of the process itself.
_OTHER_FILES = 100


def limit_connections(wanted: int) -> int:
    """Raise the limit of open files if possible. Return `wanted`, or fewer if it is too low."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY or hard >= wanted + _OTHER_FILES:
        needed = wanted + _OTHER_FILES
    else:
        needed = hard
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
        soft = needed
    if soft == resource.RLIM_INFINITY:
        return wanted
    return max(1, min(wanted, soft - _OTHER_FILES))


def wait_limits() -> WaitLimits:
    return WaitLimits(
        token=settings.WAITS_A_TOKEN, team=settings.WAITS_A_TEAM, process=settings.WAITS_A_PROCESS
    )
