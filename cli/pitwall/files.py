"""`pitwall import` and `pitwall export`: results in files."""

from __future__ import annotations

import argparse
import json
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import quote

from .bar import Progress
from .client import Client
from .errors import PASS, NoAnswerError, RefusedError

#: Pause between two requests for the state of an import.
ASK_EVERY_S = 1.0
ENDINGS = (".jsonl", ".csv", ".jsonl.gz", ".csv.gz")


def send_files(args: argparse.Namespace, client: Client, progress: Progress) -> int:
    """Send files; each is imported completely or not at all, and a known one adds nothing."""
    for number, name in enumerate(args.files):
        path = _check_file(Path(name))
        progress.show(number, len(args.files), f"sending {path.name}")
        content_type, body = build_multipart(path.name, path.read_bytes())
        answer = client.ask(
            "POST",
            "results/files",
            query={"project": args.project},
            body=body,
            headers={"Content-Type": content_type},
        ).data()
        if "state" in answer:
            answer = wait_for_import(answer, path.name, client, progress)
        progress.end()
        print(f"{name}: {answer['accepted']} new, {answer['repeated']} already stored")
    return PASS


def wait_for_import(
    answer: dict[str, Any], name: str, client: Client, progress: Progress
) -> dict[str, Any]:
    """Wait until a worker of the server has imported a file, or written the preview of a history.

    Raise RefusedError if that fails.
    """
    while answer["state"] not in ("ready", "done", "failed"):
        if answer["total"] is None:
            progress.show(0, 1, f"{name}: checking")
        else:
            progress.show(answer["done"], answer["total"], f"{name}: storing")
        time.sleep(ASK_EVERY_S)
        answer = client.get(f"results/imports/{answer['id']}")
    if answer["state"] == "failed":
        faults = [": ".join(filter(None, each.values())) for each in answer["errors"][:20]]
        raise RefusedError("\n  ".join([f"{name} was not imported", *faults]))
    return answer


def export(args: argparse.Namespace, client: Client, progress: Progress) -> int:
    with _open_output(args.output) as file:
        if args.kind == "trials":
            _export_trials(args, client, progress, file)
        elif args.kind == "report":
            file.write(_report(args, client))
        else:
            file.write(_fetch_definition(args, client))
    return PASS


def _check_file(path: Path) -> Path:
    if not path.is_file():
        raise NoAnswerError(f"there is no file {path}")
    if not path.name.endswith(ENDINGS):
        raise NoAnswerError(f"{path.name}: its name must end with one of {', '.join(ENDINGS)}")
    return path


def build_multipart(name: str, content: bytes) -> tuple[str, bytes]:
    """Return content type and body as multipart/form-data; the standard library lacks it."""
    edge = uuid.uuid4().hex
    name = name.replace("\\", "_").replace('"', "_")
    head = (
        f'--{edge}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    )
    body = head.encode() + content + f"\r\n--{edge}--\r\n".encode()
    return f"multipart/form-data; boundary={edge}", body


@contextmanager
def _open_output(output: str) -> Iterator[TextIO]:
    if output == "-":
        yield sys.stdout
    else:
        with Path(output).open("w", encoding="utf-8", newline="") as file:
            yield file


def _export_trials(
    args: argparse.Namespace, client: Client, progress: Progress, file: TextIO
) -> None:
    """Write a line of JSON for each trial: values, provenance, and the URLs of its files."""
    trials = list(_download_trials(args, client))
    for number, trial in enumerate(trials, 1):
        file.write(json.dumps(client.get(f"trials/{trial['id']}"), ensure_ascii=False) + "\n")
        progress.show(number, len(trials), f"trial {number} of {len(trials)}")
    progress.end()


def _download_trials(args: argparse.Namespace, client: Client) -> Iterator[Any]:
    query = {"invalid": "true" if args.invalid else None}
    return client.pages(f"runs/{args.run}/trials", "trials", query)


def _report(args: argparse.Namespace, client: Client) -> str:
    ending = "" if args.format == "json" else f"/{args.format}"
    return client.text(f"reports/{quote(args.name)}{ending}")


def _fetch_definition(args: argparse.Namespace, client: Client) -> str:
    project, _, benchmark = args.benchmark.partition("/")
    if not benchmark:
        raise NoAnswerError(f"{args.benchmark}: name it as PROJECT/BENCHMARK")
    path = f"benchmarks/{quote(project)}/{quote(benchmark)}/definitions"
    version = args.version
    if version is None:
        version = next(client.pages(path, "definitions"))["version"]
    return str(client.get(f"{path}/{version}")["source"])
