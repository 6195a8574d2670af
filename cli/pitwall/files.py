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
from typing import Any, Optional, TextIO
from urllib.parse import quote

from .bar import Progress
from .client import Client
from .errors import NoAnswerError, RefusedError
from .output import Output, Result

#: Pause between two requests for the state of an import.
ASK_EVERY_S = 1.0
ENDINGS = (".jsonl", ".csv", ".jsonl.gz", ".csv.gz")


def send_files(
    args: argparse.Namespace, client: Client, progress: Progress, output: Output
) -> Result:
    """Send files; each is imported completely or not at all, and a known one adds nothing."""
    stored = []
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
        stored.append(describe_import(name, answer, output))
    return Result({"files": stored})


def describe_import(
    name: str, answer: dict[str, Any], output: Output, preview: Optional[Any] = None
) -> dict[str, Any]:
    """Return the result of one file, and print it; a preview has stored nothing."""
    accepted, repeated = answer["accepted"], answer["repeated"]
    if accepted is not None:
        output.print_text(f"{name}: {accepted} new, {repeated} already stored")
    return {"file": name, "accepted": accepted, "repeated": repeated, "preview": preview}


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


def export(args: argparse.Namespace, client: Client, progress: Progress, output: Output) -> Result:
    if output.as_json:
        return Result(_load_document(args, client, progress))
    with _open_output(args.output) as file:
        if args.kind == "trials":
            for trial in _download_trials(args, client, progress):
                file.write(json.dumps(trial, ensure_ascii=False) + "\n")
        elif args.kind == "report":
            file.write(client.text(f"reports/{quote(args.name)}/{args.text_format or 'csv'}"))
        else:
            file.write(str(_fetch_definition(args, client)["source"]))
    return Result(None)


def _load_document(args: argparse.Namespace, client: Client, progress: Progress) -> Any:
    if args.output != "-":
        raise NoAnswerError("--json writes to standard output; redirect it, without --output")
    if args.kind == "trials":
        return {"trials": list(_download_trials(args, client, progress))}
    if args.kind == "report":
        return client.get(f"reports/{quote(args.name)}")
    return _fetch_definition(args, client)


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


def _download_trials(args: argparse.Namespace, client: Client, progress: Progress) -> Iterator[Any]:
    """Yield each trial with its values, its provenance, and the URLs of its files."""
    query = {"invalid": "true" if args.invalid else None}
    trials = list(client.pages(f"runs/{args.run}/trials", "trials", query))
    for number, trial in enumerate(trials, 1):
        yield client.get(f"trials/{trial['id']}")
        progress.show(number, len(trials), f"trial {number} of {len(trials)}")
    progress.end()


def _fetch_definition(args: argparse.Namespace, client: Client) -> Any:
    project, _, benchmark = args.benchmark.partition("/")
    if not benchmark:
        raise NoAnswerError(f"{args.benchmark}: name it as PROJECT/BENCHMARK")
    path = f"benchmarks/{quote(project)}/{quote(benchmark)}/definitions"
    version = args.version
    if version is None:
        version = next(client.pages(path, "definitions"))["version"]
    return client.get(f"{path}/{version}")
