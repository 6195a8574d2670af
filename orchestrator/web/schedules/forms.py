"""The form of a run, for an existing schedule."""

import re
from typing import Any

from orchestrator.runs.models import Schedule
from orchestrator.web.forms import build_benchmark_key
from orchestrator.web.runs.forms import RunForm
from orchestrator.web.runs.placements import build_placements_form_data

_EACH_NIGHT = re.compile(r"(\d{1,2}) (\d{1,2}) \* \* \*")


class ScheduleForm(RunForm):
    """A schedule cannot become a single run that starts now."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        when = self._field("when")
        when.choices = [choice for choice in when.choices if choice[0] != "now"]
        when.required = True


def build_initial_schedule(schedule: Schedule) -> dict[str, Any]:
    """Return the form's values for a schedule."""
    budget_s, resolution = schedule.budget_s, schedule.resolution
    wait_limit_s = schedule.wait_limit_s
    return {
        "benchmark": build_benchmark_key(schedule.benchmark),
        "baseline": schedule.baseline_ref,
        "contender": schedule.contender_ref,
        "second_contender": schedule.second_contender_ref,
        "cases": schedule.cases,
        "pairwise": schedule.pairwise,
        "rounds": schedule.rounds,
        "builds": schedule.builds,
        "until": "resolution" if resolution is not None else schedule.until,
        "resolution": 2 if resolution is None else round(100 * resolution, 4),
        "budget": None if budget_s is None else budget_s / 60,
        "wait_limit": None if wait_limit_s is None else wait_limit_s / 3600,
        "priority": schedule.get_priority_display().lower(),
        "name": schedule.name,
        **_build_start_fields(schedule),
        **build_placements_form_data(_list_placements(schedule)),
    }


def _build_start_fields(schedule: Schedule) -> dict[str, str]:
    if schedule.branch:
        return {"when": "commits", "branch": schedule.branch}
    if schedule.tags:
        return {"when": "tags", "tags": schedule.tags}
    nightly = _EACH_NIGHT.fullmatch(schedule.cron)
    if nightly:
        minute, hour = nightly.groups()
        at = f"{int(hour):02}:{int(minute):02}"
        return {"when": "nightly", "at": at, "cron": schedule.cron}
    return {"when": "cron", "cron": schedule.cron}


def _list_placements(schedule: Schedule) -> list[dict[str, str]]:
    return [*({"target": host.name} for host in schedule.hosts.all()), *schedule.placements]
