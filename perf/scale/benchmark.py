"""The benchmark itself; `python -m perf.scale` has started PostgreSQL and Redis before."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import perf.harness.django_setup  # noqa: F401

# isort: split
from perf.harness.machine import describe_machine
from perf.harness.report import judge_requirements, keep
from perf.harness.web_servers import Server, collect_static, serve_bare, serve_web
from perf.scale import summary
from perf.scale.databases import Postgres, fill
from perf.scale.extent import FULL, SHORT, Extent
from perf.scale.ingest import Load, Sender
from perf.scale.loading import Dataset
from perf.scale.page_requests import PageTimings
from perf.scale.summary import Measurements

NAME = "scale"
SITE = "orchestrator.config.wsgi"
LOADS = {
    summary.ONE: Load(clients=1, results_a_post=50),
    summary.FOUR: Load(clients=4, results_a_post=50),
    summary.SINGLE: Load(clients=1, results_a_post=1),
    summary.METRICS_4: Load(clients=1, results_a_post=50, metrics=4),
    summary.NEW_COMMIT: Load(clients=8, results_a_post=50, commits=False),
}


def main() -> None:
    options = parse()
    extent = SHORT if options.short else FULL
    came_from, began = describe_machine(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="pwb-") as name:
        data = measure(extent, Path(name))
    answer = judge_requirements(NAME, summary.get_measured(data), summary.build_requirements(data))
    print(f"\n{summary.format_text(data)}\n\n{time.monotonic() - began:.0f} s in all\n")
    if options.keep:
        more = {"machine": came_from, "details": summary.list_details(data)}
        print(f"kept in {keep(NAME, {**answer, **more})}")
    print(json.dumps(answer))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m perf.scale")
    parser.add_argument("--short", action="store_true", help="only check that it works")
    parser.add_argument("--keep", action="store_true", help="write the result to perf/results")
    return parser.parse_args()


def measure(extent: Extent, folder: Path) -> Measurements:
    postgres = Postgres.open_own_database()
    collect_static()
    urls = {size: postgres.database(f"scale_{size.lower()}") for size in extent.sizes}
    dataset = fill_databases(postgres, urls)
    data = Measurements(sites=dataset)
    with serve_sites(dataset, urls, folder) as sites, serve_bare(folder) as bare:
        timings = PageTimings(sites, bare, postgres, clients=extent.clients)
        print_indented("warming up")
        timings.warm_up()
        for number in range(extent.rounds):
            print_indented(f"pages, round {number + 1} of {extent.rounds}")
            timings.round(-(-extent.requests // extent.rounds))
        data.beside, data.first_s = timings.comparisons, timings.first_s
        print(f"\n{summary.format_pages(data)}\n", flush=True)
        for size in dict.fromkeys((extent.smallest, extent.largest)):
            sender = Sender(dataset[size], sites[size][1], postgres, urls[size])
            send(data, size, sender, extent)
        data.memory_bytes = {size: each.memory_bytes() for size, (_, each) in sites.items()}
    return data


def fill_databases(postgres: Postgres, urls: dict[str, str]) -> dict[str, Dataset]:
    dataset = {}
    with postgres.loading():
        for size, url in urls.items():
            print_indented(f"filling a database of {size} trials")
            dataset[size] = fill(url, size)
            print_indented(f"  {dataset[size].trials:,} trials: {dataset[size].seconds}")
    return dataset


@contextmanager
def serve_sites(
    dataset: dict[str, Dataset], urls: dict[str, str], folder: Path
) -> Iterator[dict[str, tuple[Dataset, Server]]]:
    with ExitStack() as stack:
        yield {
            size: (each, stack.enter_context(serve_web(SITE, folder, {"DATABASE_URL": urls[size]})))
            for size, each in dataset.items()
        }


def send(data: Measurements, size: str, sender: Sender, extent: Extent) -> None:
    sender.send(Load(clients=8, results_a_post=50, metrics=4), 1.0)
    for number in range(extent.ingest_rounds):
        print_indented(f"ingest at {size}, round {number + 1} of {extent.ingest_rounds}")
        for name, load in LOADS.items():
            data.sent.setdefault((name, size), []).append(sender.send(load, extent.ingest_s))
        again = sender.repeat(LOADS[summary.ONE], extent.ingest_s)
        data.sent.setdefault((summary.AGAIN, size), []).append(again)


def print_indented(text: str) -> None:
    print(f"  {text}", flush=True)


if __name__ == "__main__":
    main()
