"""Plan entries of HTTP checks: until a server is ready, and before and after each load."""

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orchestrator.benchmarks.load import ANY_PATH, Check
from orchestrator.benchmarks.matrix import fill
from orchestrator.benchmarks.spec import Scalar, Spec
from orchestrator.loadtools.model import LoadSpec
from orchestrator.loadtools.registry import Adapter

_SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}


def build_checks(
    spec: Spec, parameters: Mapping[str, Scalar], tool: Adapter, load: LoadSpec
) -> list[dict[str, Any]]:
    """Return CHECKs of protocol.py: the load's own request first, then those of the definition."""
    return [*_build_own_check(tool, load), *_list_definition_checks(spec, load, parameters)]


def build_ready_check(spec: Spec, load: LoadSpec) -> dict[str, Any]:
    """Return the request that is repeated until the server is ready.

    An HTTP/3 server also listens on TCP at the same port, or clients would not find it.
    """
    ready = spec.subject.ready
    return {
        "path": None if load.protocol == "grpc" else ready.path,
        "status": ready.status,
        "body": ready.body,
        "timeout_s": ready.timeout_s,
        "protocol": "h1" if load.protocol == "h3" else load.protocol,
        "tls": load.tls,
    }


def _build_own_check(tool: Adapter, load: LoadSpec) -> list[dict[str, Any]]:
    """Return the load's own request as a check, whose answer is reported.

    For a random path, `path` is an example if there is one. The answer to a gRPC message cannot be
    known in advance, so it is not checked.
    """
    without_example = load.random_path is not None and load.path == ANY_PATH
    if without_example or load.protocol == "grpc":
        return []
    own = Check(
        path=load.path,
        method=load.method,  # type: ignore[arg-type]  # checked with the load
        headers=dict(load.headers),
        body=load.body,
        timeout_s=load.request_timeout_s,
    )
    coding = ", ".join(load.compression or ()) or "identity"
    entry = _check("load", own, load, coding=coding, probe=tool.probe(load))
    is_sampled = not load.command and entry["argv"] is None
    return [
        {
            **entry,
            "statuses": _choose_statuses(tool, load),
            "during_load": is_sampled and not load.client_measured,
            "volatile": list(load.volatile or ()),
        }
    ]


def _choose_statuses(tool: Adapter, load: LoadSpec) -> list[int] | None:
    """Return the statuses that the load's own request may have; None if the tool reports each.

    A script decides itself.
    """
    is_reported = bool(load.command) or tool.sheet.status_codes == "yes"
    return None if is_reported else list(load.good_statuses)


def _list_definition_checks(
    spec: Spec, load: LoadSpec, parameters: Mapping[str, Scalar]
) -> list[dict[str, Any]]:
    """Return the checks of the definition, with the values of the case in its texts.

    Only the load tool can send HTTP/3, and it does not report the answer, so these use TCP.
    """
    by_tcp = replace(load, protocol="h1") if load.protocol == "h3" else load
    return [
        _check(str(number), _fill_check(check, parameters), by_tcp, coding="identity", probe=None)
        for number, check in enumerate(spec.checks, 1)
    ]


def _is_repeatable(check: Check, load: LoadSpec) -> bool:
    """Return whether a check of the definition may also be sent during the load.

    A request that changes something may not, and a client that is measured must not be disturbed.
    """
    is_safe = check.method in _SAFE_METHODS or load.protocol == "grpc"
    return is_safe and not load.client_measured


def _fill_check(check: Check, parameters: Mapping[str, Scalar]) -> Check:
    texts = {
        name: fill(getattr(check, name), parameters)
        for name in ("path", "body", "text", "matches", "encoding")
        if getattr(check, name) is not None
    }
    headers = {name: fill(value, parameters) for name, value in check.headers.items()}
    return check.model_copy(update={**texts, "headers": headers})


def _check(
    name: str, check: Check, load: LoadSpec, *, coding: str, probe: tuple[str, ...] | None
) -> dict[str, Any]:
    headers = list(check.headers.items())
    if not any(each.lower() == "accept-encoding" for each, _ in headers):
        headers.insert(0, ("accept-encoding", coding))
    body = check.message_base64
    if check.body is not None:
        body = b64encode(check.body.encode()).decode()
    return {
        "name": name,
        "method": "POST" if load.protocol == "grpc" else check.method,
        "path": check.path,
        "headers": headers,
        "body": body,
        "protocol": load.protocol,
        "tls": load.tls,
        "argv": probe,
        "timeout_s": check.timeout_s,
        "statuses": None if check.status is None else [check.status],
        "response_headers": {each.lower(): value for each, value in check.response_headers.items()},
        "response": check.response,
        "encoding": check.encoding,
        "grpc_status": check.grpc_status,
        "during_load": _is_repeatable(check, load),
        "volatile": [],
    }
