"""`pitwall hosts`: list the team's hosts, and which of them are free."""

from __future__ import annotations

import argparse
from typing import Any

from .bar import Progress
from .client import Client
from .output import Output, Result
from .tables import render_table

HEADS = ("host", "state", "profile", "tags", "now")


def list_hosts(
    args: argparse.Namespace, client: Client, progress: Progress, output: Output
) -> Result:
    hosts = list(client.pages("hosts", "hosts"))
    if hosts:
        output.print_text(render_table(HEADS, [_build_row(host) for host in hosts]))
    else:
        output.print_text(f"The team has no host yet: add one at {client.url}/hosts/new")
    return Result({"hosts": hosts})


def _build_row(host: Any) -> tuple[str, ...]:
    return (
        host["name"],
        host["state"],
        host["profile"]["slug"],
        ",".join(host["tags"]),
        _describe_now(host),
    )


def _describe_now(host: Any) -> str:
    if host["run"]:
        return f"measures run {host['run']}"
    if host["message"]:
        return str(host["message"]).splitlines()[0]
    return "free" if host["open_now"] else f"closed until {host['hours_change_at'] or 'opened'}"
