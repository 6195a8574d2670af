"""`pitwall propose`: a definition for the server in a project's repository."""

from __future__ import annotations

import argparse
from urllib.parse import quote

from .bar import Progress
from .client import Client
from .errors import NoAnswerError
from .output import Output, Result


def propose(args: argparse.Namespace, client: Client, progress: Progress, output: Output) -> Result:
    """Print the definition as YAML; the reasons are messages."""
    proposal = client.get(f"projects/{quote(args.project)}/proposal", {"ref": args.ref})
    commit = proposal["commit"]
    if output.as_json:
        return Result(proposal)
    if proposal["source"] is None:
        raise NoAnswerError(
            f"the files of {commit['short']} show no server: there is no Procfile, no start "
            "command in a Dockerfile, and no server of Python, Node.js, Go, Rust or Java at the "
            "root; write the definition by hand"
        )
    progress.print_line(
        f"from the files of {commit['short']} {commit['subject']}; check each part:"
    )
    for guess in proposal["guesses"]:
        mark = "check this: " if guess["doubtful"] else ""
        progress.print_line(f"  {guess['field']}: {mark}{guess['reason']}")
    output.print_text(f"# yaml-language-server: $schema={client.url}/schemas/definition.json")
    output.print_text(proposal["source"], end="")
    return Result(proposal)
