"""Prometheus's text format, version 0.0.4, from families and back."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from orchestrator.operations.families import Family, Kind

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = tuple[tuple[str, str], ...]


def exposition(families: Iterable[Family]) -> str:
    """Return the families as text, without those that have no samples: their values are unknown."""
    lines: list[str] = []
    for family in families:
        if family.samples:
            lines += [
                f"# HELP {family.name} {family.help}",
                f"# TYPE {family.name} {family.kind}",
                *_samples(family),
            ]
    return "\n".join(lines) + "\n"


def _samples(family: Family) -> Iterator[str]:
    if family.kind == Kind.HISTOGRAM:
        yield from _histogram(family)
        return
    for labels, value in sorted(family.samples.items()):
        yield _line(family.name, labels, value)


def _histogram(family: Family) -> Iterator[str]:
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
            yield _line(f"{family.name}_bucket", (*labels, ("le", bound)), total)
        yield _line(f"{family.name}_sum", labels, classes.get("sum", 0.0))
        yield _line(f"{family.name}_count", labels, total)


def _line(name: str, labels: Labels, value: float) -> str:
    told = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels)
    return f"{name}{{{told}}} {value:.10g}" if told else f"{name} {value:.10g}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def grouped(counts: Mapping[tuple[str, Labels], float]) -> dict[str, dict[Labels, float]]:
    """Return counts by the name of their metric; histograms in the form that `_histogram` takes."""
    found: dict[str, dict[Labels, float]] = defaultdict(dict)
    for (name, labels), value in counts.items():
        if name.endswith("_bucket"):
            found[name.removesuffix("_bucket")][labels] = value
        elif name.endswith("_sum"):
            found[name.removesuffix("_sum")][(*labels, ("le", "sum"))] = value
        else:
            found[name][labels] = value
    return found
