"""What a schedule does when it is due: a run now, or a run for each new commit of its branch."""

from django.db import transaction

from orchestrator.accounts.selectors import member_for_user
from orchestrator.core.errors import PitwallError
from orchestrator.results.hosts.resolution import with_rounds
from orchestrator.runs import schedules
from orchestrator.runs.models import Schedule, Trigger
from orchestrator.runs.new_commits import NewCommits, new_commits
from orchestrator.runs.services import create_run


def start_scheduled(schedule: Schedule) -> None:
    """Starts what is due; what came of it stands beside the schedule."""
    if schedule.branch:
        _follow(schedule)
    else:
        schedules.note_outcome(schedule=schedule, message=_start_run(schedule))


def _follow(schedule: Schedule) -> None:
    try:
        found = new_commits(schedule)
    except PitwallError as error:
        message = f"the branch {schedule.branch} could not be looked at: {error}"
        schedules.note_outcome(schedule=schedule, message=message)
        return
    messages = [text for sha in found.shas if (text := _start_for(schedule, sha))]
    if not messages:
        schedules.take_commit(schedule, found.tip)
        return
    schedules.note_outcome(schedule=schedule, message="; ".join([*messages, *_left_out(found)]))


def _left_out(found: NewCommits) -> list[str]:
    many = f"{found.left_out} older commits came with the same push and were left out"
    return [many] if found.left_out else []


def _start_for(schedule: Schedule, sha: str) -> str:
    """What became of one commit; empty where another worker has it."""
    with transaction.atomic():
        if not schedules.take_commit(schedule, sha):
            return ""
        return f"{sha[:10]}: {_start_run(schedule, sha)}"


def _start_run(schedule: Schedule, contender: str = "") -> str:
    try:
        member = member_for_user(schedule.created_by, schedule.team.slug)
        request = schedules.request_of(schedule, contender=contender)
        if schedule.resolution is not None:
            request = with_rounds(member=member, request=request, change=schedule.resolution)
        run = create_run(
            member=member, request=request, trigger=Trigger.SCHEDULE, schedule=schedule
        )
    except PitwallError as error:
        return f"no run was started: {error}"
    return f"started run {run.pk}"
