"""Parse the trials of plan.json."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Optional, Union

from ..errors import BadArgument, BadPlan
from ..paths import resolve_below
from ..platform.placement import Share
from .json_node import Node
from .plan import (
    Check,
    Expected,
    Limits,
    Load,
    Network,
    Objective,
    PrepareStep,
    Ready,
    Search,
    SecretName,
    Server,
    Service,
    Tool,
    Trial,
)

_KINDS = ("primer", "warmup", "measure")
_PROTOCOLS = ("h1", "h2", "h3", "grpc")
_OPS = ("<", "<=", ">", ">=")
_EACH = ("job", "commit", "trial")
_AFTER = ("build", "services", "server")
#: Each trial waits for some round trips.
MOST_DELAY_S = 2.0
_EXPECTED = ("text", "length", "sha256", "matches")


def parse_label(node: Node, labels: tuple[str, ...]) -> str:
    """Return the label of one of the plan's hosts."""
    return _parse_choice(node, labels, "plan.hosts")


def parse_folders(node: Node) -> tuple[str, ...]:
    """Return folders of a host's PATH."""
    folders = node.texts()
    if not all(os.path.isabs(folder) and os.pathsep not in folder for folder in folders):
        raise node.wrong("absolute paths of folders")
    return folders


def parse_environment(node: Node) -> dict[str, Union[str, SecretName]]:
    """Return variables, each with a text or the name of a secret."""
    return {
        key: SecretName(value["secret"].text()) if value.has("secret") else value.text()
        for key, value in node.fields().items()
    }


def parse_trial(node: Node, labels: tuple[str, ...], texts: Mapping[str, str]) -> Trial:
    """Return the checked trial; BadPlan names the path in the plan and the expectation.

    `texts`: those of the plan, by their hashes.
    """
    server = _parse_server(node["server"], labels)
    trial = Trial(
        id=node["id"].text(),
        tree=node["tree"].text(),
        commit=node["commit"].text(),
        path=_parse_path(node["path"], labels),
        server=server,
        ready=_parse_ready(node["ready"], ("h1", "h2", "grpc")),
        checks=tuple(map(_check, node["checks"].items())),
        services=_parse_services(node["services"], labels),
        prepare=tuple(_parse_prepare_step(item, server) for item in node["prepare"].items()),
        loads=tuple(map(_load, node["loads"].items())),
        search=node["search"].optional(_search),
        files={path: _find_text(item, texts) for path, item in node["files"].fields().items()},
        tool=_parse_tool(node["tool"]),
        cooldown_s=node["cooldown_s"].number(),
        expected_s=node["expected_s"].number(),
        shares=_parse_shares(node["shares"], labels),
        network=node["network"].optional(parse_network) if node.has("network") else None,
    )
    if trial.network is not None and len(labels) > 1:
        raise node["network"].wrong("null, as there are several hosts")
    _check_shares(node, trial)
    if not trial.measured or (trial.search and trial.measured > 1):
        raise BadPlan(
            f"trial {trial.id}: expected a load of kind 'measure', and with a search exactly one"
        )
    return trial


def _parse_shares(node: Node, labels: tuple[str, ...]) -> dict[str, tuple[Share, ...]]:
    shares = {
        label: tuple(map(_parse_share, item.items())) for label, item in node.fields().items()
    }
    if not set(shares) <= set(labels):
        raise node.wrong(f"labels of plan.hosts ({', '.join(labels)})")
    return shares


def _parse_share(node: Node) -> Share:
    return Share(node["name"].text(), node["cpus"].optional(_parse_positive_whole))


def _check_shares(node: Node, trial: Trial) -> None:
    """Raise BadPlan if the limits of a process name a share that does not exist."""
    names = {share.name for shares in trial.shares.values() for share in shares}
    limits = (trial.server.limits, trial.tool.limits, *(each.limits for each in trial.services))
    for share in {each.share for each in limits if each.share is not None}:
        if share not in names:
            raise node["shares"].wrong(f"the share {share!r}, which limits name")


def parse_network(node: Node) -> Network:
    network = Network(
        delay_s=node["delay_s"].number(),
        jitter_s=node["jitter_s"].number(),
        loss=node["loss"].number(),
        rate_bps=node["rate_bps"].optional(_parse_positive),
    )
    if not (0 <= network.jitter_s <= network.delay_s <= MOST_DELAY_S and 0 <= network.loss < 1):
        raise node.wrong(f"0 <= jitter <= delay <= {MOST_DELAY_S:g} s, and a share of lost packets")
    return network


def _find_text(node: Node, texts: Mapping[str, str]) -> str:
    name = node.text()
    if name not in texts:
        raise node.wrong("a hash of plan.texts")
    return texts[name]


def _parse_choice(node: Node, known: tuple[str, ...], name: str = "") -> str:
    text = node.text()
    if text not in known:
        raise node.wrong(f"one of {name} ({', '.join(known)})" if name else " or ".join(known))
    return text


def _parse_path(node: Node, labels: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    path = {label: parse_folders(item) for label, item in node.fields().items()}
    if not set(path) <= set(labels):
        raise node.wrong(f"labels of plan.hosts ({', '.join(labels)})")
    return path


def _parse_server(node: Node, labels: tuple[str, ...]) -> Server:
    return Server(
        on=parse_label(node["on"], labels),
        working_dir=parse_working_dir(node["working_dir"]),
        argv=node["argv"].texts(),
        env=parse_environment(node["env"]),
        limits=_parse_limits(node["limits"]),
        port=node["port"].optional(Node.whole),
    )


def parse_working_dir(node: Node) -> Optional[str]:
    name = node.optional(Node.text)
    if name is not None:
        try:
            resolve_below(Path("/"), name)
        except BadArgument:
            raise node.wrong("a folder of the commit, or null") from None
    return name


def _parse_services(node: Node, labels: tuple[str, ...]) -> tuple[Service, ...]:
    services = tuple(_parse_service(item, labels) for item in node.items())
    if len({service.name for service in services}) != len(services):
        raise node.wrong("a unique name for each service")
    return services


def _parse_service(node: Node, labels: tuple[str, ...]) -> Service:
    service = Service(
        name=node["name"].text(),
        on=parse_label(node["on"], labels),
        processes=node["count"].whole(),
        argv=node["argv"].texts(),
        env=parse_environment(node["env"]),
        limits=_parse_limits(node["limits"]),
        port=node["port"].optional(Node.whole),
        ready=_parse_ready(node["ready"], ("h1",)),
    )
    if service.processes < 1:
        raise node["count"].wrong("1 or more")
    if service.processes > 1 and service.port is not None:
        raise node["port"].wrong("null, as there are several processes")
    return service


def _parse_prepare_step(node: Node, server: Server) -> PrepareStep:
    return PrepareStep(
        on=server.on,
        key=node["key"].text(),
        argv=node["argv"].texts(),
        env=parse_environment(node["env"]),
        working_dir=parse_working_dir(node["working_dir"]),
        limits=server.limits,
        timeout_s=_parse_positive(node["timeout_s"]),
        each=_parse_choice(node["each"], _EACH),
        after=_parse_choice(node["after"], _AFTER),
    )


def _parse_ready(node: Node, protocols: tuple[str, ...]) -> Ready:
    return Ready(
        path=node["path"].optional(Node.text),
        status=node["status"].whole(),
        body=node["body"].optional(Node.text) if node.has("body") else None,
        timeout_s=node["timeout_s"].number(),
        protocol=_parse_choice(node["protocol"], protocols) if node.has("protocol") else "h1",
        tls=node["tls"].truth() if node.has("tls") else False,
    )


def _check(node: Node) -> Check:
    return Check(
        name=node["name"].text(),
        method=node["method"].text(),
        path=node["path"].text(),
        headers=tuple(map(_parse_header, node["headers"].items())),
        body=node["body"].optional(_parse_bytes),
        protocol=_parse_choice(node["protocol"], _PROTOCOLS),
        tls=node["tls"].truth(),
        timeout_s=node["timeout_s"].number(),
        argv=node["argv"].optional(Node.texts),
        statuses=node["statuses"].optional(Node.wholes),
        response_headers=node["response_headers"].mapping(),
        response=node["response"].optional(_parse_expected),
        encoding=node["encoding"].optional(Node.text),
        grpc_status=node["grpc_status"].optional(Node.whole),
        during_load=node["during_load"].truth(),
        volatile=node["volatile"].texts(),
    )


def _parse_header(node: Node) -> tuple[str, str]:
    words = node.texts()
    if len(words) != 2:
        raise node.wrong("a name and a value")
    return words[0], words[1]


def _parse_bytes(node: Node) -> bytes:
    try:
        return base64.b64decode(node.text(), validate=True)
    except binascii.Error as error:
        raise node.wrong("base64") from error


def _parse_expected(node: Node) -> Expected:
    fields = node.fields()
    if len(fields) != 1 or not set(fields) <= set(_EXPECTED):
        raise node.wrong(f"one of {', '.join(_EXPECTED)}")
    ((kind, value),) = fields.items()
    return Expected(kind, value.whole() if kind == "length" else value.text())


def _load(node: Node) -> Load:
    return Load(
        argv=node["argv"].texts(),
        env=parse_environment(node["env"]),
        kind=_parse_choice(node["kind"], _KINDS),
        wall_limit_s=node["wall_limit_s"].number(),
        warmup_s=node["warmup_s"].number(),
        good_statuses=node["good_statuses"].wholes(),
        rate=node["rate"].optional(_parse_positive),
        at_once=_parse_positive_whole(node["at_once"]),
    )


def _parse_positive(node: Node) -> float:
    value = node.number()
    if value <= 0:
        raise node.wrong("more than 0")
    return value


def _parse_positive_whole(node: Node) -> int:
    value = node.whole()
    if value < 1:
        raise node.wrong("1 or more")
    return value


def _search(node: Node) -> Search:
    return Search(
        objective=tuple(map(_parse_objective, node["objective"].items())),
        low=node["low"].number(),
        high=node["high"].number(),
        duration_s=node["duration_s"].number(),
        requests=node["requests"].whole(),
        max_probes=node["max_probes"].whole(),
        confirmations=node["confirmations"].whole(),
    )


def _parse_objective(node: Node) -> Objective:
    return Objective(
        metric=node["metric"].text(),
        op=_parse_choice(node["op"], _OPS),
        value=node["value"].number(),
    )


def _parse_tool(node: Node) -> Tool:
    return Tool(
        name=node["name"].text(),
        path=node["path"].text(),
        limits=_parse_limits(node["limits"]),
        reader=node["reader"].text(),
        cpus=node["cpus"].whole(),
    )


def _parse_limits(node: Node) -> Limits:
    return Limits(
        share=node["share"].optional(Node.text),
        cpu_quota=node["cpu_quota"].optional(Node.number),
        memory_bytes=node["memory_bytes"].optional(Node.whole),
        open_files=node["open_files"].optional(Node.whole),
    )
