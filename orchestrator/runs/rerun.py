"""Reruns: the request of an existing run."""

from orchestrator.runs.models import HostRole, Job, Run
from orchestrator.runs.plans import RunRequest
from orchestrator.runs.wait_limits import get_wait_limit_s


def request_again(run: Run) -> RunRequest:
    """Return a request with the same commits, cases and placements; get the run through
    `load_run`."""
    shas = [variant.commit.sha for variant in run.variants.all()]
    benchmark = run.definition.benchmark
    return RunRequest(
        project=benchmark.project.slug,
        benchmark=benchmark.slug,
        baseline=shas[0],
        contenders=tuple(shas[1:]),
        cases=run.cases,
        pairwise=run.pairwise,
        placements=tuple(load_requested_placements(run)),
        rounds=run.rounds,
        builds=run.builds,
        until=run.until,
        places=run.places,
        budget_s=run.budget_s,
        wait_for_quiet=run.wait_for_quiet,
        wait_limit_s=get_wait_limit_s(run),
        priority=run.get_priority_display().lower(),
    )


def load_requested_placements(run: Run) -> list[dict[str, str]]:
    """Return the request of each placement of a run; jobs of the same placement count once."""
    placements = [_build_requested_placement(job) for job in load_ordered_jobs(run)]
    return list({tuple(sorted(each.items())): each for each in placements if each}.values())


def load_ordered_jobs(run: Run) -> list[Job]:
    return sorted(run.jobs.all(), key=lambda job: (job.created_at, job.pk))


def _build_requested_placement(job: Job) -> dict[str, str]:
    wanted = {
        place.role: place.host_selector.removeprefix("host:") for place in job.placements.all()
    }
    if not wanted and job.host is not None:
        return {HostRole.TARGET.value: job.host.name}
    return wanted
