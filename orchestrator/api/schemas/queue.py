"""Schemas of the queue."""

from datetime import datetime
from uuid import UUID

from ninja import Schema
from pydantic import Field

from orchestrator.api.schemas.common import build_api_url, build_web_url
from orchestrator.api.schemas.runs import PriorityName
from orchestrator.runs.queue_forecast import QueueEntry


class QueueEntryOut(Schema):
    """A queued job. `hosts` maps each role to the requested host, profile or tag."""

    job: UUID
    run: UUID
    benchmark: str
    project: str
    position: int = Field(description="Among all queued jobs of the team; 1 is the next one.")
    priority: PriorityName
    hosts: dict[str, str]
    queued_at: datetime
    waits_until: datetime = Field(description="If the job is still queued then, it fails.")
    waiting: str = Field(description="Why it waits.")
    expected_start_at: datetime | None = Field(description="A rough forecast.")
    no_forecast: str = Field(description="Why there is no expected start; otherwise empty.")
    url: str
    web_url: str


class QueuePage(Schema):
    jobs: list[QueueEntryOut]
    next: str | None


def build_queue_entry_out(entry: QueueEntry) -> QueueEntryOut:
    place, job, waiting = entry
    run = job.run
    benchmark = run.definition.benchmark
    return QueueEntryOut(
        job=job.pk,
        run=run.pk,
        benchmark=benchmark.slug,
        project=benchmark.project.slug,
        position=place.position,
        priority=PriorityName(run.get_priority_display().lower()),
        hosts={each.role: each.host_selector for each in job.placements.all()},
        queued_at=job.created_at,
        waits_until=run.waits_until,
        waiting=waiting,
        expected_start_at=place.starts_at,
        no_forecast=place.unknown,
        url=build_api_url(f"runs/{run.pk}"),
        web_url=build_web_url("run", run.pk),
    )
