"""Deletes data beyond its retention, as the tasks do automatically; see docs/retention.md.

`prune --dry-run` lists what would be deleted and changes nothing.
"""

from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db.models import Sum

from orchestrator.benchmarks.models import Project
from orchestrator.core.clock import utc_now
from orchestrator.core.progress import Progress, add_quiet, build_progress
from orchestrator.results.models import Removal
from orchestrator.retention.pruning import DueRemoval, list_due, prune


class Command(BaseCommand):
    help = __doc__
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--project", help="slug, or team/slug; all projects without it")
        parser.add_argument("--dry-run", action="store_true", help="list what would be deleted")

        add_quiet(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        now = utc_now()
        for project in _load_projects(options["project"]):
            due = [each for each in list_due(project, now) if each.rows]
            for each in due:
                of_runs = f" of {each.runs} runs" if each.runs else ""
                self.stdout.write(
                    f"{project.team.slug}/{project.slug}: {each.kind.label.lower()}{of_runs}, "
                    f"after {each.after_days} days: {each.rows} rows, {each.bytes} bytes"
                )
            if not due:
                self.stdout.write(f"{project.team.slug}/{project.slug}: nothing is due")
            elif not options["dry_run"]:
                with build_progress(options, f"Pruning {project.slug}") as show:
                    batches = prune(project, now, progress=_build_row_progress(project, due, show))
                self.stdout.write(f"{project.team.slug}/{project.slug}: done in {batches} batches")


def _build_row_progress(
    project: Project, due: list[DueRemoval], show: Progress
) -> Callable[[], None]:
    """Return a callback that shows after each batch how many of the due rows are deleted."""
    total, before = sum(each.rows for each in due), _count_rows_removed(project)

    def show_rows() -> None:
        gone = _count_rows_removed(project) - before
        show(min(gone, total), total)

    return show_rows


def _count_rows_removed(project: Project) -> int:
    return int(Removal.objects.filter(project=project).aggregate(rows=Sum("rows"))["rows"] or 0)


def _load_projects(name: str | None) -> list[Project]:
    projects = Project.objects.select_related("team").order_by("pk")
    if not name:
        return list(projects)
    team, _, slug = name.rpartition("/")
    matches = projects.filter(slug=slug)
    if team:
        matches = matches.filter(team__slug=team)
    if not matches:
        raise CommandError(f"there is no project {name}")
    return list(matches)
