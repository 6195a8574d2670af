"""`python -m orchestrator.config.background_worker`: the worker of all that may take long.

It fetches from git servers (PITWALL_FETCH_SLOTS at a time), and has PITWALL_BACKGROUND_SLOTS
threads more for other background tasks. Any number of these workers may run.
"""

from django.conf import settings

from orchestrator.benchmarks.git_access import remove_stale_files
from orchestrator.config import celery_app


def main() -> None:
    remove_stale_files()
    celery_app.worker_main(build_command())


def build_command() -> list[str]:
    """Return the command of Celery."""
    return [
        "worker", "--queues", ",".join(settings.LONG_QUEUES),
        "--concurrency", str(settings.BACKGROUND_THREADS),
        "--hostname", "background@%h", "--loglevel", "info",
        "--without-gossip", "--without-mingle", "--without-heartbeat",
    ]  # fmt: skip


if __name__ == "__main__":
    main()
