"""One trial: all its data, and its raw files."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from orchestrator.accounts.members import Member
from orchestrator.accounts.visitors import Visitor
from orchestrator.core.errors import GoneError, InvalidRequestError, NotFoundError
from orchestrator.loadtools.metrics import LATENCY_LABELS, Metric
from orchestrator.loadtools.model import PROTOCOL_TITLES
from orchestrator.loadtools.registry import TOOLS
from orchestrator.loadtools.sampled_answers import describe_first_answer, select_during
from orchestrator.loadtools.thresholds import THRESHOLDS
from orchestrator.measurements.distributions import (
    compute_curve,
    encode_histogram,
    load_distribution,
    parse_percentiles,
    read_percentiles,
)
from orchestrator.measurements.emulated_networks import list_network_rows
from orchestrator.measurements.environment import build_environments, list_applied_limits
from orchestrator.measurements.placements import list_placements
from orchestrator.measurements.prepare_steps import read_prepared_steps
from orchestrator.measurements.prices import list_costs
from orchestrator.measurements.selectors import TrialDetails, load_artifact, load_trial_details
from orchestrator.measurements.trial_files import Facts, load_result, load_rows
from orchestrator.measurements.trial_outcomes import read_load_outcome
from orchestrator.measurements.validity_issues import parse_code
from orchestrator.results.models import HistogramKind
from orchestrator.runs.models import Trial
from orchestrator.runs.selectors import load_run, load_trial
from orchestrator.web.access import for_member, open_to_visitors
from orchestrator.web.hosts.facts import group_facts
from orchestrator.web.trials.charts import (
    build_latency_chart,
    build_loads_chart,
    build_seconds,
    build_seconds_chart,
    describe_outcome,
)
from orchestrator.web.trials.environment import build_host_environments

#: Shown separately, above the rest of the provenance.
_SHOWN_SEPARATELY = frozenset(
    {
        "argv", "server_argv", "tool", "commit", "host", "hosts", "limits", "checks", "answers",
        "protocol", "prepare", "placement", "network",
    }
)  # fmt: skip
#: Default percentiles of a distribution.
_DEFAULT_PERCENTILES = "50, 90, 99, 99.9"
#: Labels for protocols as the agent and the load tools name them.
_PROTOCOL_NAMES = {"h1": "HTTP/1.1", "h2": "HTTP/2", "h3": "HTTP/3", "grpc": "gRPC"}


@open_to_visitors
@for_member
def trial(request: HttpRequest, member: Member, trial_id: UUID) -> HttpResponse:
    record = load_trial(member, trial_id)
    details = load_trial_details(record)
    if isinstance(member, Visitor):
        return render(
            request, "trials/public.html", _build_visitor_context(request, member, details)
        )
    result = load_result(record)
    rest = {key: value for key, value in record.provenance.items() if key not in _SHOWN_SEPARATELY}
    context = {
        "trial": record,
        "run": load_run(member, record.job.run_id),
        "details": details,
        "provenance": record.provenance,
        "rest": rest,
        "limits": list_applied_limits(record),
        "placements": list_placements(record),
        "network_rows": list_network_rows(record.provenance),
        "prepare_steps": read_prepared_steps(record.provenance.get("prepare")),
        "snapshot": record.job.snapshot,
        "fact_groups": group_facts(record.job.snapshot.facts) if record.job.snapshot else [],
        "label": LATENCY_LABELS[details.model] if details.model else None,
        **_build_metric_context(details),
        **_build_protocol_context(details),
        **_build_answers_context(record.provenance),
        "costs": list_costs(record, details.values, result) if details.measurements else [],
        "hosts": build_host_environments(
            build_environments(record, result), {parse_code(r) for r in record.reasons}
        ),
        "loads": [(load, describe_outcome(load)) for load in details.loads],
        "loads_chart": build_loads_chart(details.loads),
        **_build_distribution_context(request, details),
        **_load_context(request, details, result),
    }
    return render(request, "trials/detail.html", context)


@for_member
def artifact(request: HttpRequest, member: Member, trial_id: UUID, name: str) -> HttpResponse:
    content = load_artifact(member, trial_id, name)
    return _download(content, f"{trial_id}-{name}")


@for_member
def histogram(request: HttpRequest, member: Member, trial_id: UUID, kind: str) -> HttpResponse:
    """Return a distribution in HdrHistogram's V2 encoding."""
    if kind not in HistogramKind.values:
        raise NotFoundError(f"there is no distribution {kind}; there are ok and other")
    content = encode_histogram(load_distribution(load_trial(member, trial_id), kind=kind))
    return _download(content, f"{trial_id}-{kind}.hdr")


@open_to_visitors
@for_member
def validity(request: HttpRequest, member: Member) -> HttpResponse:
    return render(request, "trials/validity.html", {"rules": THRESHOLDS.values()})


def _build_visitor_context(
    request: HttpRequest, member: Member, details: TrialDetails
) -> dict[str, Any]:
    """Return its numbers and its validity, without hosts, commands, files and messages."""
    return {
        "trial": details.trial,
        "run": load_run(member, details.trial.job.run_id),
        "details": details,
        "tool": details.trial.provenance.get("tool"),
        "label": LATENCY_LABELS[details.model] if details.model else None,
        **_build_metric_context(details),
        **_build_distribution_context(request, details),
    }


def _download(content: bytes, name: str) -> HttpResponse:
    response = HttpResponse(content, content_type="application/octet-stream")
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


def _build_metric_context(details: TrialDetails) -> Mapping[str, Any]:
    """Return metrics that only the tool distinguishes: nothing else depends on them."""
    own = [each for each in details.measurements if _is_tool_metric(each[0])]
    main = [each for each in details.measurements if not _is_tool_metric(each[0])]
    return {"main_figures": main, "tool_figures": own}


def _is_tool_metric(metric: Metric) -> bool:
    family = metric.key.partition(".")[0]
    return family in TOOLS or family in {"connect", "dns"} or "first_byte" in metric.key


def _build_protocol_context(details: TrialDetails) -> Mapping[str, Any]:
    """Return the requested protocol, and the spoken one as far as it was observed."""
    load = details.requested[0] if details.requested else None
    spoken = details.trial.provenance.get("protocol")
    return {
        "requested_protocol": PROTOCOL_TITLES[load.protocol, load.tls] if load else None,
        "protocol_spoken": _PROTOCOL_NAMES.get(spoken, spoken) if spoken else None,
        "other_protocol": bool(load and spoken and spoken != load.protocol),
    }


def _build_answers_context(provenance: Facts) -> Mapping[str, Any]:
    """Return the checks in the order of time, with the sampled answers of the first load."""
    answers, checks = provenance.get("answers") or {}, provenance.get("checks") or []
    before = [each for each in checks if each["when"] == "before"]
    sampled = [{**each, "name": each["check"]} for each in select_during(answers)]
    after = [each for each in checks if each["when"] != "before"]
    return {
        "checks": [*before, *sampled, *after],
        "answer_notes": describe_first_answer(answers),
        "sampled_count": answers.get("sent"),
        "unanswered_count": answers.get("unanswered"),
    }


def _load_number(request: HttpRequest, details: TrialDetails) -> int | None:
    """Return which of several loads is selected; None for the trial as a whole."""
    text = request.GET.get("load", "")
    known = {str(load.number): load.number for load in details.loads}
    return known.get(text)


def _build_distribution_context(request: HttpRequest, details: TrialDetails) -> Mapping[str, Any]:
    """Return the form of percentiles, and the values of the distribution at them."""
    text = request.GET.get("percentiles", "").strip() or _DEFAULT_PERCENTILES
    load = _load_number(request, details)
    try:
        distribution, gone = load_distribution(details.trial, load=load), ""
    except GoneError as error:
        distribution, gone = None, str(error)
    curve = compute_curve(distribution)
    context = {
        "distribution_gone": gone,
        "latency_chart": build_latency_chart(curve),
        "curve_rows": list(zip(curve.percentiles, curve.seconds, strict=True)) if curve else [],
        "percentiles_text": text,
        "shown_load": load,
        "requests": distribution.total_count if distribution else 0,
        "kinds": _list_kind_counts(details.trial),
        "percentile_error": "",
    }
    try:
        return context | {"percentiles": read_percentiles(distribution, parse_percentiles(text))}
    except InvalidRequestError as error:
        return context | {"percentiles": (), "percentile_error": str(error)}


def _list_kind_counts(trial: Trial) -> list[tuple[str, int]]:
    """Return the distributions that can be downloaded, and the number of requests in each."""
    return list(trial.histograms.order_by("kind").values_list("kind", "count"))


def _load_context(request: HttpRequest, details: TrialDetails, result: Facts) -> Mapping[str, Any]:
    """Return responses and seconds of the only load, or of the selected one."""
    load = _load_number(request, details)
    if details.loads and load is None:
        return {"outcome": None, "seconds": [], "seconds_chart": None}
    loads = details.requested or ()
    duration_s = loads[min(load or 0, len(loads) - 1)].duration_s if loads else None
    seconds = build_seconds(load_rows(details.trial, load or 0), duration_s)
    return {
        "outcome": read_load_outcome(details.trial, result, load or 0),
        "seconds": seconds,
        "seconds_chart": build_seconds_chart(seconds),
    }
