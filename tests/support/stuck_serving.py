"""The deployed configuration of gunicorn with a short timeout for threads that hang."""

from orchestrator.config.serving import *  # noqa: F403
from orchestrator.operations import heartbeat_thread

heartbeat_thread.STUCK_S = 1.0
heartbeat_thread.EVERY_S = 0.2
