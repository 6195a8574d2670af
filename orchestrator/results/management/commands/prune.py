"""Takes away what projects keep no longer, as the tasks do by themselves; see docs/retention.md.

`prune --dry-run` says what would go and changes nothing.
"""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from orchestrator.benchmarks.models import Project
from orchestrator.core.clock import utc_now
from orchestrator.results.retention.pruning import prune, what_is_due


class Command(BaseCommand):
    help = __doc__
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--project", help="slug, or team/slug; all projects without it")
        parser.add_argument("--dry-run", action="store_true", help="say what would go")

    def handle(self, *args: Any, **options: Any) -> None:
        now = utc_now()
        for project in _projects(options["project"]):
            due = [each for each in what_is_due(project, now) if each.rows]
            for each in due:
                of_runs = f" of {each.runs} runs" if each.runs else ""
                self.stdout.write(
                    f"{project.team.slug}/{project.slug}: {each.what.label.lower()}{of_runs}, "
                    f"after {each.after_days} days: {each.rows} rows, {each.bytes} bytes"
                )
            if not due:
                self.stdout.write(f"{project.team.slug}/{project.slug}: nothing is due")
            elif not options["dry_run"]:
                batches = prune(project, now)
                self.stdout.write(f"{project.team.slug}/{project.slug}: done in {batches} batches")


def _projects(asked: str | None) -> list[Project]:
    projects = Project.objects.select_related("team").order_by("pk")
    if not asked:
        return list(projects)
    team, _, slug = asked.rpartition("/")
    found = projects.filter(slug=slug)
    if team:
        found = found.filter(team__slug=team)
    if not found:
        raise CommandError(f"there is no project {asked}")
    return list(found)
