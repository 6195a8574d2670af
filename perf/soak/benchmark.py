"""The benchmark itself; `python -m perf.soak` has started PostgreSQL and Redis before."""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import perf.harness.django_setup  # noqa: F401

# isort: split
from django.core.management import call_command

from devstack.demo_client import Client
from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.sharing import set_public
from orchestrator.core.progress import Progress
from perf.harness.machine import describe_machine
from perf.harness.report import Requirement, judge_requirements, keep, render_table
from perf.harness.repositories import build_server_repository
from perf.harness.seed import Account, add_benchmark, add_fleet, make_account
from perf.harness.ssh_hosts import run_fleet
from perf.harness.web_servers import collect_static
from perf.soak.faults import Faults
from perf.soak.losses import compare_trials, count_leftovers
from perf.soak.memory import Growth, Watch, estimate_growth
from perf.soak.services import Services, running_services
from perf.soak.simulated_users import Usage, wait_for_the_end

NAME = "soak"
HOSTS = 4
FULL_MINUTES = 60.0
END_S = 300.0
NONE = Requirement(relation="<=", limit=0)
ONCE = Requirement(relation=">=", limit=1)
WANTED = {
    "runs_not_finished": NONE,
    "trials_not_measured": NONE,
    "trials_without_an_end": NONE,
    "trials_lost": NONE,
    "trials_made_up": NONE,
    "trials_measured_twice": NONE,
    "trials_without_readings": NONE,
    "trials_in_no_point": NONE,
    "processes_left": NONE,
    "folders_left": NONE,
    "leases_left": NONE,
    "pages_with_another_answer": NONE,
    "processes_that_ended": NONE,
}
#: Growth per hour, from the second half of an hour. Shorter runs cannot show it.
FLAT = {
    "{}_growth_low": Requirement(relation="<=", limit=0.01),
    "{}_growth_high": Requirement(relation="<=", limit=0.10),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    minutes: float
    fault_every_s: float
    sample_every_s: float

    @property
    def judges_memory(self) -> bool:
        return self.minutes >= FULL_MINUTES


def main() -> None:
    options = parse()
    extent = build_extent(options)
    came_from, began = describe_machine(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="pws-") as name:
        result = soak(extent, options.seed, Path(name))
    struck = {f"struck_{'_'.join(name.lower().split())}": n for name, n in result.faults.items()}
    figures = {**result.counts, **struck, **build_memory_figures(result.memory)}
    wanted = {key: WANTED.get(key) for key in figures} | dict.fromkeys(struck, ONCE)
    if extent.judges_memory:
        wanted |= {key.format(each): want for key, want in FLAT.items() for each in result.memory}
    answer = judge_requirements(NAME, figures, wanted)
    print(f"\n{format_text(result)}\n\n{time.monotonic() - began:.0f} s in all\n")
    if options.keep:
        details = {
            "minutes": extent.minutes,
            "seed": options.seed,
            "pages": result.pages,
            "memory": {name: asdict(each) for name, each in result.memory.items()},
        }
        print(f"kept in {keep(NAME, {**answer, 'machine': came_from, 'details': details})}")
    print(json.dumps(answer))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m perf.soak")
    parser.add_argument("--minutes", type=float, default=FULL_MINUTES)
    parser.add_argument(
        "--short", action="store_true", help="half a minute, to check that it works"
    )
    parser.add_argument("--keep", action="store_true", help="write the result to perf/results")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="of the faults")
    return parser.parse_args()


def build_extent(options: argparse.Namespace) -> Extent:
    if options.short:
        return Extent(minutes=0.5, fault_every_s=3, sample_every_s=0.5)
    return Extent(minutes=options.minutes, fault_every_s=20, sample_every_s=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakResult:
    counts: dict[str, int]  # description of a problem
    faults: dict[str, int]  # how often each fault occurred
    pages: dict[str, int]  # by status
    memory: dict[str, Growth]


def soak(extent: Extent, seed: int, folder: Path) -> SoakResult:
    account, shas, project = prepare(folder)
    with run_fleet(folder, HOSTS) as fleet:
        add_fleet(account.member, fleet)
        with running_services(folder) as services:
            url = f"http://127.0.0.1:{services.web.port}"
            public = f"{url}/public/{account.member.team.slug}/{project.slug}/"
            usage = Usage(Client(url, account.token), fleet, shas, public)
            faults = Faults(services, fleet, seed=seed, every_s=extent.fault_every_s)
            watch = use_and_break(extent, services, usage, faults)
            wait_for_the_end(usage.requested, limit_s=END_S)
            counts = compare_trials(usage.requested, fleet)
        counts |= count_leftovers(fleet)
    counts["pages_with_another_answer"] = usage.wrong_answers
    counts["processes_that_ended"] = len(watch.ended)
    memory = {name: estimate_growth(samples) for name, samples in watch.own.items()}
    memory |= {f"{name}_rss": estimate_growth(samples) for name, samples in watch.rss.items()}
    pages = {str(status): number for status, number in sorted(usage.answers.items())}
    return SoakResult(counts=counts, faults=faults.struck, pages=pages, memory=memory)


def prepare(folder: Path) -> tuple[Account, tuple[str, str], Project]:
    """Return the user of the runs, the commits of the server, and their public project."""
    collect_static()
    call_command("migrate", verbosity=0)
    account = make_account()
    shas = build_server_repository(folder / "server")
    add_benchmark(
        account.member, folder / "server", "soak", duration_s=0.3, warmup_s=0.1, connections=[1, 4]
    )
    project = Project.objects.get()
    set_public(member=account.member, project=project, public=True)
    return account, shas, project


def use_and_break(extent: Extent, services: Services, usage: Usage, faults: Faults) -> Watch:
    """Generate runs, page views and faults for the extent's duration, and sample the memory."""
    began, length_s = time.monotonic(), 60 * extent.minutes
    with Progress("Soaking, seconds", out=sys.stderr) as show:

        def show_progress() -> None:
            note = f"{len(usage.requested)} runs, {sum(faults.struck.values())} faults"
            show(int(min(time.monotonic() - began, length_s)), int(length_s), note)

        watch = Watch(pids=services.steady, every_s=extent.sample_every_s, tick=show_progress)
        with watch, usage:
            faults.break_things(length_s)
    return watch


def build_memory_figures(memory: dict[str, Growth]) -> dict[str, float]:
    return {
        f"{name}_{key}": value
        for name, growth in memory.items()
        for key, value in (
            ("mib", growth.mean_bytes / 2**20),
            ("growth", growth.share_an_hour),
            ("growth_low", growth.low),
            ("growth_high", growth.high),
        )
    }


def format_text(result: SoakResult) -> str:
    counts = [[name.replace("_", " "), str(number)] for name, number in result.counts.items()]
    faults = [[name, str(number)] for name, number in sorted(result.faults.items())]
    sizes = [
        [name, f"{each.mean_bytes / 2**20:.1f}"]
        + [f"{100 * share:+.2f}" for share in (each.share_an_hour, each.low, each.high)]
        for name, each in result.memory.items()
    ]
    head = ["memory, second half", "MiB", "% an hour", "low", "high"]
    return "\n\n".join(
        [
            render_table(["faults", "struck"], faults),
            render_table(["", "number"], counts),
            render_table(head, sizes),
        ]
    )


if __name__ == "__main__":
    main()
