"""The deployed configuration of gunicorn with shorter time limits for slow clients.

The lowest rate is so low that fast bytes would be credit for minutes.
"""

from orchestrator.config.serving import *  # noqa: F403
from orchestrator.serving import pace

pace.HEAD_S = 1.0
pace.GRACE_S = 1.0
pace.SILENT_S = 1.0
pace.UPLOAD_WAIT_S = 1.0
pace.LEAST_BYTES_A_SECOND = 4 * 1024
