"""`python -m orchestrator.config.fetch_worker`: the worker that fetches from git servers.

It runs PITWALL_FETCH_SLOTS fetches at a time. Any number of these workers may run.
"""

from django.conf import settings

from orchestrator.benchmarks.git_access import remove_stale_files
from orchestrator.config import celery_app


def main() -> None:
    remove_stale_files()
    celery_app.worker_main(
        [
            "worker", "--queues", settings.FETCH_QUEUE, "--concurrency", str(settings.FETCH_SLOTS),
            "--hostname", "fetcher@%h", "--loglevel", "info",
            "--without-gossip", "--without-mingle", "--without-heartbeat",
        ]
    )  # fmt: skip


if __name__ == "__main__":
    main()
