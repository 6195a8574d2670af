"""`pitwall hosts` lists the team's hosts; `pitwall reserve` keeps one free of new jobs."""

from __future__ import annotations

import argparse
from typing import Any

from .bar import Progress
from .client import Client
from .errors import NoAnswerError
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


def reserve_host(
    args: argparse.Namespace, client: Client, progress: Progress, output: Output
) -> Result:
    host = _find_host(client, args.host)
    path = f"hosts/{host['id']}/reservation"
    if args.end:
        host = client.ask("DELETE", path).data()
    else:
        host = client.post(path, {"duration_s": round(args.time), "reason": args.reason})
    output.print_text(f"{host['name']}: {_describe_now(host)}")
    return Result(host)


def _find_host(client: Client, name: str) -> Any:
    for host in client.pages("hosts", "hosts"):
        if host["name"] == name:
            return host
    raise NoAnswerError(f"the team has no host named {name}; `pitwall hosts` lists them")


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
    reservation = host["reservation"]
    if reservation:
        why = f": {reservation['reason']}" if reservation["reason"] else ""
        return f"reserved by {reservation['by']} until {reservation['until']}{why}"
    if host["message"]:
        return str(host["message"]).splitlines()[0]
    return "free" if host["open_now"] else f"closed until {host['hours_change_at'] or 'opened'}"
