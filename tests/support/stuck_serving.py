"""The deployed configuration of gunicorn with a short patience for threads that hang."""

from orchestrator.config.serving import *  # noqa: F403
from orchestrator.operations import pulse

pulse.STUCK_S = 1.0
pulse.EVERY_S = 0.2
