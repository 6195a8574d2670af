"""`pitwall import --as-history`: the results of another tool, with a preview before the import."""

from __future__ import annotations

import argparse
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .bar import Progress
from .client import Client
from .errors import NoAnswerError, RefusedError
from .files import build_multipart, describe_import, wait_for_import
from .output import Output, Result

OPTIONS = ("project", "format", "benchmark", "host", "commit", "better")


def send_histories(
    args: argparse.Namespace, client: Client, progress: Progress, output: Output
) -> Result:
    """Import each file, or show its preview; a stored result is not stored again."""
    if not args.project:
        raise NoAnswerError("--as-history needs --project: the commits are those of its repository")
    sent = [_send_history(name, args, client, progress, output) for name in args.files]
    return Result({"files": sent})


def _send_history(
    name: str, args: argparse.Namespace, client: Client, progress: Progress, output: Output
) -> dict[str, Any]:
    path = Path(name)
    progress.show(0, 1, f"sending {path.name}")
    content_type, body = build_multipart(*_read_content(path))
    answer = client.ask(
        "POST",
        "results/histories",
        query={key: getattr(args, key) for key in OPTIONS},
        body=body,
        headers={"Content-Type": content_type},
    ).data()
    answer = wait_for_import(answer, path.name, client, progress)
    progress.end()
    preview = answer["preview"]
    output.print_text("\n".join(_describe(name, args.project, preview)))
    if args.preview:
        client.ask("DELETE", f"results/imports/{answer['id']}")
        return describe_import(name, {"accepted": None, "repeated": None}, output, preview)
    choice = _choose(args, answer, client)
    answer = client.post(f"results/imports/{answer['id']}/start", {"unknown_commits": choice})
    answer = wait_for_import(answer, path.name, client, progress)
    progress.end()
    return describe_import(name, answer, output, preview)


def _read_content(path: Path) -> tuple[str, bytes]:
    """Return name and content of a file, or of a .zip of the JSON files in a folder."""
    if path.is_file():
        return path.name, path.read_bytes()
    if not path.is_dir():
        raise NoAnswerError(f"there is no file {path}")
    files = sorted(path.rglob("*.json"))
    if not files:
        raise NoAnswerError(f"{path} has no .json file")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            archive.writestr(file.relative_to(path).as_posix(), file.read_bytes())
    return f"{path.resolve().name}.zip", packed.getvalue()


def _choose(args: argparse.Namespace, answer: dict[str, Any], client: Client) -> str:
    """Return what to do with unknown commits.

    Raise RefusedError if all are unknown and no option decides.
    """
    if args.unknown_commits:
        return str(args.unknown_commits)
    preview = answer["preview"]
    if preview["has_repository"] and not preview["matched"]:
        client.ask("DELETE", f"results/imports/{answer['id']}")
        raise RefusedError(
            f"no commit of the file is in the repository of {args.project}, so "
            "nothing was imported; is it the right project? If so, give --unknown-commits keep"
        )
    return "keep"


def _describe(name: str, project: str, preview: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of a preview."""
    values = f"{preview['values']} values in {preview['series']} series"
    if preview["first_at"]:
        values += f", {preview['first_at'][:10]} to {preview['last_at'][:10]}"
    yield f"{name}: {preview['format']}, {values}"
    for each in preview["benchmarks"]:
        new = "" if each["exists"] else " (new)"
        yield f"  {project}/{each['slug']}{new}: {each['series']} series, {each['values']} values"
    commits = f"  commits: {preview['matched']} of {preview['commits']} are known"
    yield commits + (f", {preview['by_date']} of them by date" if preview["by_date"] else "")
    for each in preview["unknown_commits"]:
        yield f"    unknown: {each['name']} {each['subject']}".rstrip()
    more = preview["commits"] - preview["matched"] - len(preview["unknown_commits"])
    if more:
        yield f"    and {more} more"
    if preview["unknown"] or preview["spread"]:
        yield (
            f"  skipped: {preview['unknown']} results without a value, {preview['spread']} values "
            "about the spread of others"
        )
    if preview["undirected"]:
        yield (
            f"  {preview['undirected']} series have no known better direction, so no changes are "
            "searched in them; --better gives one"
        )
    if preview["fetch_problem"]:
        yield f"  the repository could not be fetched: {preview['fetch_problem']}"
