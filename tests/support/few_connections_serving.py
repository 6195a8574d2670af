"""The deployed configuration of gunicorn with room for few connections."""

from orchestrator.config.serving import *  # noqa: F403
from orchestrator.serving import pace

worker_connections = 4
pace.ENTRY_S = 0.2
