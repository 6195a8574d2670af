"""Whether a build passes: the server decides the verdicts, this module which of them count."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Optional

from .errors import FOUND, NO_DATA, PASS
from .units import format_claim, format_interval

#: Each of the first three includes those before it: what is worse fails a build as well.
WORSE = ("broken", "saturated", "regressed")
VERDICTS = (*WORSE, "inconclusive", "improved")
NEVER = "never"
#: The code of a case whose blocks are mostly excluded.
_TOO_MANY_EXCLUDED = "too_many_excluded"
#: The code of the side that causes the verdict.
_FAILED = {
    "broken": "contender_failed",
    "saturated": "contender_failed",
    "fixed": "baseline_failed",
}


class Judgement(NamedTuple):
    """`because`: why the build fails. `spared`: regressions that may be too small to count.
    `unknown`: cases without a usable result, and why."""

    status: int
    because: tuple[str, ...]
    spared: tuple[str, ...]
    unknown: tuple[str, ...]


def parse_failing_verdicts(text: str) -> tuple[str, ...]:
    """Parse `--fail-on regressed,inconclusive`; `never` gives none."""
    wanted = tuple(word.strip() for word in text.split(","))
    if wanted == (NEVER,):
        return ()
    strange = [word for word in wanted if word not in VERDICTS]
    if strange:
        known = ", ".join((*VERDICTS, NEVER))
        raise argparse.ArgumentTypeError(f"{strange[0]!r} is not among {known}")
    least = max((WORSE.index(word) + 1 for word in wanted if word in WORSE), default=0)
    return tuple(dict.fromkeys((*WORSE[:least], *wanted)))


def judge(report: Any, fail_on: Sequence[str], min_change: Optional[float] = None) -> Judgement:
    """The status is 1 if a case has one of `fail_on`, 4 if one has no usable result, else 0.

    With `min_change` a regression or improvement counts only if the whole 95 % interval of one of
    the metrics with this verdict is beyond it. It never adds a change that is within the margin of
    its metric.
    """
    because: list[str] = []
    spared: list[str] = []
    for case in report["cases"]:
        if case["verdict"] not in fail_on:
            continue
        if case["verdict"] in _FAILED:
            because.append(f"{_name(case)}: {case['verdict']}, {_describe_failure(case)}")
            continue
        named = list(_iter_deciding_metrics(case))
        counted = [metric for metric in named if _is_counted(metric, case["verdict"], min_change)]
        words = [
            f"{_name(case)}: {_describe_metric(metric, case['verdict'])}"
            for metric in counted or named
        ]
        (because if counted else spared).extend(words)
    unknown = tuple(
        f"{_name(case)}: {why}" for case in report["cases"] if (why := _explain_unknown(case))
    )
    if not report["cases"]:
        unknown = ("no case was measured",)
    status = PASS
    if fail_on:
        status = FOUND if because else NO_DATA if unknown else PASS
    return Judgement(status, tuple(because), tuple(spared), unknown)


def _iter_deciding_metrics(case: Any) -> Iterator[Any]:
    """Yield the primary metrics that determine the verdict of the case."""
    for metric in case["metrics"]:
        if metric["primary"] and metric["verdict"] == case["verdict"]:
            yield metric


def _is_counted(metric: Any, verdict: str, min_change: Optional[float]) -> bool:
    if min_change is None or verdict == "inconclusive":
        return True
    return metric["interval"] is not None and _compute_least_change(metric, verdict) >= min_change


def _compute_least_change(metric: Any, verdict: str) -> float:
    """Return the smallest possible size of the change, in the direction of the verdict."""
    low, high = metric["interval"]
    upwards = (metric["better"] == "higher") == (verdict == "improved")
    return float(low) if upwards else -float(high)


def _explain_unknown(case: Any) -> str:
    """Return why the result of a case is unusable; "" if it is usable, whatever its verdict."""
    if case["verdict"] in _FAILED:
        return ""
    blocks = max((metric["blocks"] for metric in case["metrics"]), default=0)
    excluded = case["excluded_blocks"]
    if any(reason["code"] == _TOO_MANY_EXCLUDED for reason in case["reasons"]):
        return f"{excluded} of {excluded + blocks} blocks were excluded"
    if not any(metric["change"] is not None for metric in case["metrics"]):
        return "nothing could be compared"
    return ""


def _describe_failure(case: Any) -> str:
    """Return `the contender failed in 3 of 10 blocks`."""
    code = _FAILED[case["verdict"]]
    return "; ".join(reason["text"] for reason in case["reasons"] if reason["code"] == code)


def _name(case: Any) -> str:
    label = case["case"]["label"] or "the only case"
    return f"{label} on {case['host']}" if case.get("host") else label


def _describe_metric(metric: Any, verdict: str) -> str:
    text = f"{metric['title']} {verdict}"
    if metric["change"] is not None:
        text += f", {format_claim(metric['change'], metric['likely_change'])}"
    if metric["interval"] is not None:
        text += f" ({format_interval(metric['interval'])})"
    return text
