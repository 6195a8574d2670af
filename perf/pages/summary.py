"""The summary of the audits: medians by screen, and the worst of them next to the targets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import median
from typing import Any

from perf.harness.report import Requirement, render_table

SCORES = ("performance", "accessibility", "best_practices")
FIGURES = (*SCORES, "shift", "blocked_ms", "first_ms", "largest_ms", "bytes")

#: (screen, form) → metric → median
Medians = dict[tuple[str, str], dict[str, float]]


def compute_medians(audits: Sequence[dict[str, Any]]) -> Medians:
    groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for audit in audits:
        groups[audit["name"], audit["form"]].append(audit)
    return {
        key: {figure: median(audit[figure] for audit in several) for figure in FIGURES}
        for key, several in groups.items()
    }


def get_measured(medians: Medians) -> dict[str, float]:
    """Return the worst screen of each form."""
    worst = {}
    for form in sorted({form for _, form in medians}):
        of_form = [figures for (_, each), figures in medians.items() if each == form]
        for figure in FIGURES:
            pick = min if figure in SCORES else max
            worst[f"{form}_{figure}_worst"] = pick(figures[figure] for figures in of_form)
    return worst


def list_missed(
    addresses: Sequence[dict[str, str]], audits: Sequence[dict[str, Any]]
) -> list[dict[str, str]]:
    """Return the addresses whose audits miss a target."""
    missed = {
        key
        for key, figures in compute_medians(audits).items()
        for figure, value in figures.items()
        if (requirement := _build_requirement(figure)) and not requirement.holds(value)
    }
    return [each for each in addresses if (each["name"], each["form"]) in missed]


def build_requirements(measured: dict[str, float]) -> dict[str, Requirement | None]:
    return {
        key: _build_requirement(key.partition("_")[2].removesuffix("_worst")) for key in measured
    }


def _build_requirement(figure: str) -> Requirement | None:
    if figure in SCORES:
        return Requirement(relation=">=", limit=95)
    # Lighthouse rounds nothing: a caret or a late font may cost half a thousandth.
    limits = {"shift": Requirement(relation="<=", limit=0.0005)}
    return limits.get(figure) or (
        Requirement(relation="<", limit=150_000) if figure == "bytes" else None
    )


def format_text(medians: Medians) -> str:
    head = [
        "screen",
        "form",
        "perf.",
        "access.",
        "practices",
        "shift",
        "blocked",
        "first",
        "largest",
        "kB",
    ]
    rows = [
        [
            *(name, form),
            *(f"{figures[score]:g}" for score in SCORES),
            f"{figures['shift']:.4f}",
            *(f"{figures[key]:.0f} ms" for key in ("blocked_ms", "first_ms", "largest_ms")),
            f"{figures['bytes'] / 1000:.0f}",
        ]
        for (name, form), figures in sorted(medians.items())
    ]  # fmt: skip
    return render_table(head, rows)


def list_details(audits: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return by screen and form the medians, and the audits that were not passed in full."""
    return {
        f"{name} {form}": {
            **{key: round(value, 4) for key, value in figures.items()},
            "failed": sorted({
                audit
                for audit in audits
                if (audit["name"], audit["form"]) == (name, form)
                for audit in audit["failed"]
            }),
        }
        for (name, form), figures in sorted(compute_medians(audits).items())
    }  # fmt: skip
