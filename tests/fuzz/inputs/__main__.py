"""Fuzzing of all parsers of foreign data: `make fuzz`.

Real samples are changed at random, in several processes. A finding is an error that the parser does
not document, a file or a program that it may not write or start, or too much time or memory. It is
stored below `.pitwall/fuzz` with the command that repeats it. The last line is one JSON object.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "orchestrator.config.settings")
# Do not ask load tools of this machine for their versions.
os.environ.update(dict.fromkeys(("PITWALL_OHA", "PITWALL_GHZ", "PITWALL_K6"), ""))
os.environ.update(dict.fromkeys(("PITWALL_WRK", "PITWALL_H2LOAD"), ""))
import perf.harness.django_setup  # noqa: F401

# isort: split
from devstack.places import CHECKOUT
from tests.fuzz import git_servers
from tests.fuzz.inputs.registry import TARGETS
from tests.fuzz.inputs.watching import Finding, attempt, begin, encode_input, made

KEPT = CHECKOUT / ".pitwall" / "fuzz"
CHUNK = 500
#: After this many findings a target is skipped.
MOST_FINDINGS = 5


@dataclass(slots=True)
class Tally:
    inputs: int = 0
    seconds: float = 0.0
    findings: list[Finding] = field(default_factory=list)


def main() -> int:
    options = parse()
    names = [name for name in TARGETS if not options.target or name in options.target]
    if options.input is not None:
        return again(names, options)
    tallies = {name: Tally() for name in names}
    began = time.monotonic()
    for name, chunk in done(planned(names, options.inputs), options):
        tally = tallies[name]
        tally.inputs += chunk.inputs
        tally.seconds += chunk.seconds
        tally.findings += chunk.findings
        for finding in chunk.findings:
            print_finding(finding, options.seed)
        progress(sum(each.inputs for each in tallies.values()), options.inputs, began)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    more: dict[str, dict[str, Any]] = {}
    if not options.target and options.requests:
        more["visitors"] = visitors(options)
    if not options.target and options.polls:
        more["hosts"] = hostile_hosts(options)
    if not options.target and options.git_servers:
        more["git_servers"] = hostile_git_servers(options)
    return print_summary(tallies, time.monotonic() - began, more)


def hostile_git_servers(options: argparse.Namespace) -> dict[str, Any]:
    """Return the result of fetches from the servers of `tests/fuzz/git_servers.py`."""
    with tempfile.TemporaryDirectory(prefix="pwz-") as folder:
        seen = git_servers.fuzz(Path(folder), options.git_servers, options.seed)
    for fault in seen.faults:
        print(f"git server: {fault}")
    return {
        "cases": seen.cases,
        "kinds": len(seen.kinds),
        "fetched": seen.fetched,
        "refused": seen.refused,
        "slowest_s": round(seen.slowest_s, 2),
        "grown_mib": round(seen.most_memory_bytes / 2**20),
        "findings": len(seen.faults),
    }


def visitors(options: argparse.Namespace) -> dict[str, Any]:
    """Return the result of the hostile visitor of `tests/fuzz/visitors.py`."""
    words = ("--requests", str(options.requests), "--seed", str(options.seed))
    return _on_own_database("tests.fuzz.visitors_body", *words) or {"requests": 0, "findings": 1}


def hostile_hosts(options: argparse.Namespace) -> dict[str, Any]:
    """Return the result of the hostile agent of `tests/fuzz/hostile_hosts.py`."""
    words = ("--polls", str(options.polls), "--seed", str(options.seed))
    return _on_own_database("tests.fuzz.hostile_hosts_body", *words) or {"polls": 0, "findings": 1}


def _on_own_database(module: str, *words: str) -> dict[str, Any]:
    """Return the JSON of a module's last line; {} if it has none."""
    body = (sys.executable, "-m", module, *words)
    servers = (sys.executable, "-m", "devstack", "exec", "--name", "fuzz", "--without-oha", "--")
    done = subprocess.run([*servers, *body], cwd=CHECKOUT, stdout=subprocess.PIPE, text=True)
    lines = done.stdout.splitlines()
    if not lines or not lines[-1].startswith("{"):
        return {}
    return dict(json.loads(lines[-1]))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.inputs")
    parser.add_argument("--inputs", type=int, default=1_000_000, help="over all targets")
    parser.add_argument("--requests", type=int, default=22_000, help="of the hostile visitor")
    parser.add_argument("--polls", type=int, default=300, help="of a hostile agent")
    parser.add_argument("--git-servers", type=int, default=300, help="hostile ones to fetch from")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", action="append", choices=TARGETS, help="may be repeated")
    parser.add_argument("--input", type=int, help="only this one, of the targets that are named")
    parser.add_argument("--show", action="store_true", help="and what it is")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    return parser.parse_args()


def planned(names: Sequence[str], inputs: int) -> list[tuple[str, int, int]]:
    """Return pieces of work (target, first, count) by share, with at least a few per target."""
    shares = sum(TARGETS[name].share for name in names)
    pieces = []
    for name in names:
        count = max(1, -(-inputs * TARGETS[name].share // shares))
        pieces += [(name, at, min(CHUNK, count - at)) for at in range(0, count, CHUNK)]
    # Start all targets from the beginning.
    return sorted(pieces, key=lambda piece: piece[1])


def done(
    pieces: list[tuple[str, int, int]], options: argparse.Namespace
) -> Iterator[tuple[str, Tally]]:
    """Yield the result of each piece when it is done; a process that dies is a finding."""
    with tempfile.TemporaryDirectory(prefix="pwz-") as folder:
        left = pieces[::-1]
        while left:
            context = get_context("fork")
            with ProcessPoolExecutor(options.processes, context, begin) as pool:
                lost = yield from _fed(pool, left, options, folder)
            yield from ((name, _died(name, first)) for name, first, _ in lost)


def _fed(
    pool: ProcessPoolExecutor,
    left: list[tuple[str, int, int]],
    options: argparse.Namespace,
    folder: str,
) -> Iterator[tuple[str, Tally]]:
    running: dict[Future[Tally], tuple[str, int, int]] = {}
    finding_counts: dict[str, int] = {}
    while left or running:
        while left and len(running) < 2 * options.processes:
            piece = left.pop()
            if finding_counts.get(piece[0], 0) < MOST_FINDINGS:
                running[pool.submit(work, *piece, options.seed, folder)] = piece
        ready, _ = wait(running, return_when=FIRST_COMPLETED)
        for each in ready:
            piece = running.pop(each)
            try:
                tally = each.result()
            except BrokenProcessPool:
                return [piece, *running.values()]
            finding_counts[piece[0]] = finding_counts.get(piece[0], 0) + len(tally.findings)
            yield piece[0], tally
    return []


def _died(name: str, first: int) -> Tally:
    words = f"a process died in the inputs from {first} on"
    return Tally(findings=[Finding(target=name, number=first, report_text=words, shown=b"")])


@cache
def load_samples(name: str) -> Sequence[Any]:
    return TARGETS[name].samples()


def work(name: str, first: int, count: int, seed: int, below: str) -> Tally:
    """Runs in a separate process."""
    target, tally = TARGETS[name], Tally()
    began = time.monotonic()
    samples = load_samples(name)
    with tempfile.TemporaryDirectory(dir=below) as folder:
        for number in range(first, first + count):
            finding = attempt(target, samples, seed, number, Path(folder))
            tally.inputs += 1
            if finding is not None:
                tally.findings.append(finding)
                if len(tally.findings) >= MOST_FINDINGS:
                    break  # Leave time for other targets.
    tally.seconds = time.monotonic() - began
    return tally


def again(names: Sequence[str], options: argparse.Namespace) -> int:
    """Repeat one input of each target. Return whether all succeed."""
    begin()
    status, seed, number = 0, options.seed, options.input
    for name in names:
        target, samples = TARGETS[name], load_samples(name)
        with tempfile.TemporaryDirectory() as folder:
            finding = attempt(target, samples, seed, number, Path(folder))
        print(
            f"{name} {number}: {finding.report_text if finding else 'read, or refused with words'}"
        )
        if finding or options.show:
            print(encode_input(made(target, samples, seed, number))[:4000])
        status = status or int(finding is not None)
    return status


def progress(inputs: int, wanted: int, began: float) -> None:
    if sys.stderr.isatty():
        rate = inputs / max(0.001, time.monotonic() - began)
        print(f"\r{inputs:,} of {wanted:,} inputs, {rate:,.0f} a second ", end="", file=sys.stderr)


def print_summary(
    tallies: dict[str, Tally], seconds: float, more: dict[str, dict[str, Any]]
) -> int:
    print(f"{'target':28}{'inputs':>10}{'seconds':>10}{'findings':>10}")
    for name, tally in tallies.items():
        print(f"{name:28}{tally.inputs:>10,}{tally.seconds:>10.1f}{len(tally.findings):>10}")
    inputs = sum(tally.inputs for tally in tallies.values())
    findings = sum(len(tally.findings) for tally in tallies.values())
    answer: dict[str, Any] = {
        "inputs": inputs,
        "targets": len(tallies),
        "seconds": round(seconds, 1),
    }
    for name, counts in more.items():
        answer[name] = counts
        findings += counts["findings"]
    print(json.dumps({**answer, "findings": findings, "passed": not findings}))
    return 1 if findings else 0


def print_finding(finding: Finding, seed: int) -> None:
    KEPT.mkdir(parents=True, exist_ok=True)
    path = KEPT / f"{finding.target}-{seed}-{finding.number}.input"
    path.write_bytes(finding.shown)
    words = f"--seed {seed} --target {finding.target} --input {finding.number}"
    print(f'\n{finding.report_text.strip()}\n  {path}\n  make fuzz ARGS="{words}"', flush=True)


if __name__ == "__main__":
    sys.exit(main())
