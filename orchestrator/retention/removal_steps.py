"""Steps that remove a run, a case or a project with all its rows, each in a small transaction.

Runs are removed before the cases and commits that they measured, and cases before their project.
"""

import shutil

from django.db import transaction

from orchestrator.benchmarks.models import Benchmark, Case, Project
from orchestrator.benchmarks.refs import get_mirror_path
from orchestrator.results.models import PointHistogram, Reading, Series
from orchestrator.runs.models import GoldenCheck, Run


@transaction.atomic
def remove_run(run: Run) -> None:
    run.delete()


@transaction.atomic
def remove_case(case: Case) -> None:
    """Delete a case with all its measurements; its runs are removed before."""
    Reading.objects.filter(case=case).delete()
    PointHistogram.objects.filter(case=case).delete()
    Series.objects.filter(case=case).delete()
    case.delete()


@transaction.atomic
def remove_benchmark(benchmark: Benchmark) -> None:
    """Delete the rest of a benchmark; its commits stay, because other benchmarks may share them."""
    GoldenCheck.objects.filter(benchmark=benchmark).delete()
    benchmark.delete()


def remove_project(project: Project) -> None:
    mirror = get_mirror_path(project)
    project.delete()
    shutil.rmtree(mirror, ignore_errors=True)
    mirror.with_name(f"{mirror.name}.lock").unlink(missing_ok=True)
