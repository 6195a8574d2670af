"""Prometheus's text format, version 0.0.4, from families and back."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from orchestrator.operations.families import Family, Kind

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = tuple[tuple[str, str], ...]


def render_exposition(families: Iterable[Family]) -> str:
    """Return the families as text, without those that have no samples: their values are unknown."""
    lines: list[str] = []
    for family in families:
        if family.samples:
            lines += [
                f"# HELP {family.name} {family.help}",
                f"# TYPE {family.name} {family.kind}",
                *_format_samples(family),
            ]
    return "\n".join(lines) + "\n"


def _format_samples(family: Family) -> Iterator[str]:
    if family.kind == Kind.HISTOGRAM:
        yield from _format_histogram(family)
        return
    for labels, value in sorted(family.samples.items()):
        yield _format_sample(family.name, labels, value)


def _format_histogram(family: Family) -> Iterator[str]:
    """Yield the lines of a histogram from its buckets (`le` → number, `sum` → sum)."""
    by_labels: dict[Labels, dict[str, float]] = defaultdict(dict)
    for labels, value in family.samples.items():
        others = tuple(pair for pair in labels if pair[0] != "le")
        by_labels[others][dict(labels)["le"]] = value
    for labels, classes in sorted(by_labels.items()):
        total = 0.0
        bounds = sorted((bound for bound in classes if bound != "sum"), key=float)
        for bound in [*(bound for bound in bounds if bound != "+Inf"), "+Inf"]:
            total += classes.get(bound, 0.0)
            yield _format_sample(f"{family.name}_bucket", (*labels, ("le", bound)), total)
        yield _format_sample(f"{family.name}_sum", labels, classes.get("sum", 0.0))
        yield _format_sample(f"{family.name}_count", labels, total)


def _format_sample(name: str, labels: Labels, value: float) -> str:
    pairs = ",".join(f'{label}="{_escape_label(text)}"' for label, text in labels)
    return f"{name}{{{pairs}}} {value:.10g}" if pairs else f"{name} {value:.10g}"


def _escape_label(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def group_counts(counts: Mapping[tuple[str, Labels], float]) -> dict[str, dict[Labels, float]]:
    """Return counts by the name of their metric; histograms in the form that `_format_histogram`
    takes."""
    groups: dict[str, dict[Labels, float]] = defaultdict(dict)
    for (name, labels), value in counts.items():
        if name.endswith("_bucket"):
            groups[name.removesuffix("_bucket")][labels] = value
        elif name.endswith("_sum"):
            groups[name.removesuffix("_sum")][(*labels, ("le", "sum"))] = value
        else:
            groups[name][labels] = value
    return groups
