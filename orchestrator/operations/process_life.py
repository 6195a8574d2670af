"""What each process does when it starts and when it ends."""

from django.conf import settings

from orchestrator.operations.database_limits import limit_sessions
from orchestrator.operations.freed_memory import configure_malloc
from orchestrator.operations.garbage import limit_garbage
from orchestrator.operations.heartbeat_thread import start_heartbeats, stop_heartbeats
from orchestrator.operations.tracing import start_tracing, stop_tracing


def begin_process(process: str) -> None:
    """Initialise a `web`, `worker`, `background` or `beat` after its fork."""
    configure_malloc()
    # First, because missing packages end the process.
    if settings.TRACES:
        start_tracing(process)
    limit_sessions(process)
    limit_garbage(process)
    # Web processes need no heartbeat: they answer requests.
    start_heartbeats(None if process == "web" else process)


def end_process() -> None:
    stop_tracing()
    stop_heartbeats()
