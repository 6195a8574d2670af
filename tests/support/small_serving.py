"""The deployed configuration of gunicorn with room for few requests."""

from orchestrator.config.serving import *  # noqa: F403
from orchestrator.serving import pace, shares

pace.UPLOAD_WAIT_S = 0.5
shares.MOST_REQUESTS = 4
shares.MOST_REQUEST_BYTES = 512 * 1024
