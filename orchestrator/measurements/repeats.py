"""Repeated results: an equal repeat adds nothing; other content under the same id is refused.

The id of a sender is unique for a case, host and commit. The token does not matter: tokens are
replaced, and an exported file may be sent with another one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from orchestrator.core.errors import ConflictError
from orchestrator.measurements.recording import MeasuredRow
from orchestrator.results.models import Metric, Reading

#: In addition to the values, these fields are compared.
_KEPT = ("block", "reasons", "url", "note")
MOST_FAULTS = 100


class ResultConflictError(ConflictError):
    """Other results have the same ids; `faults` are (path, problem) of each."""

    def __init__(self, faults: Sequence[tuple[str, str]]) -> None:
        field, message = faults[0]
        super().__init__(f"{field}: {message}")
        self.field = field
        self.faults = tuple(faults[:MOST_FAULTS])


@dataclass(frozen=True, slots=True, kw_only=True)
class SentResult:
    """A result to be recorded. `place` identifies it for its sender, for example results[3].

    `timed`: the sender gave the time.
    """

    place: str
    row: MeasuredRow
    timed: bool


@dataclass(frozen=True, slots=True)
class _Content:
    """The content that must be equal in repeats of a result; None is not compared.

    `removed`: the sorted values of further readings, whose metrics were removed since.
    """

    validity: str
    readings: Mapping[str, float]
    at: datetime | None
    kept: Mapping[str, Any] | None
    removed: Sequence[float] = ()


def check_alike(sent: Iterable[SentResult]) -> None:
    """Raise ResultConflictError if two results of a post have the same id but other content."""
    first: dict[UUID, SentResult] = {}
    faults = []
    for each in sent:
        known = first.setdefault(each.row.id, each)
        if known is not each and (
            other := _describe_difference(_build_content(known), _build_content(each))
        ):
            faults.append((each.place, _describe_conflict(each, f"{known.place} has", other)))
    if faults:
        raise ResultConflictError(faults)


def check_repeats(sent: Sequence[SentResult], stored: set[UUID]) -> None:
    """Raise ResultConflictError if a result that was not `stored` differs from the stored one."""
    repeated = [each for each in sent if each.row.id not in stored]
    if not repeated:
        return
    there = _load_stored({each.row.id for each in repeated})
    faults = []
    for each in repeated:
        known = there.get(each.row.id)
        if known is not None and (other := _describe_difference(known, _build_content(each))):
            faults.append(
                (each.place, _describe_conflict(each, "a result that was sent before has", other))
            )
    if faults:
        raise ResultConflictError(faults)


def _load_stored(ids: set[UUID]) -> dict[UUID, _Content]:
    rows = list(
        Reading.objects.filter(pk__in=ids).values_list(
            "pk", "validity", "at", "metrics", "values", "provenance"
        )
    )
    numbers = {number for row in rows for number in row[3]}
    keys = dict(Metric.objects.filter(pk__in=numbers).values_list("pk", "key"))
    return {
        pk: _Content(
            validity,
            {
                keys[number]: value
                for number, value in zip(metrics, values, strict=True)
                if number in keys
            },
            at,
            _select_provenance(provenance),
            removed=sorted(
                value for number, value in zip(metrics, values, strict=True) if number not in keys
            ),
        )
        for pk, validity, at, metrics, values, provenance in rows
    }


def _build_content(sent: SentResult) -> _Content:
    row = sent.row
    return _Content(
        row.validity,
        row.readings,
        row.at if sent.timed else None,
        _select_provenance(row.provenance),
    )


def _select_provenance(provenance: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the fields to compare; None for trials of this Pitwall, which store them elsewhere."""
    if provenance is None:
        return None
    return {name: provenance[name] for name in _KEPT if name in provenance}


def _describe_difference(one: _Content, other: _Content) -> str:
    """Name the fields that differ; empty if the contents are equal."""
    # The names of removed metrics are no longer known.
    more = sorted(value for key, value in other.readings.items() if key not in one.readings)
    if not one.readings.items() <= other.readings.items() or more != list(one.removed):
        names = sorted({key for key, _ in one.readings.items() ^ other.readings.items()})
        return f"metrics ({', '.join(names[:3])}{', …' if len(names) > 3 else ''})"
    if one.validity != other.validity:
        return f"validity ({one.validity})"
    if one.at is not None and other.at is not None and one.at != other.at:
        return f"time ({one.at.isoformat()})"
    if one.kept is not None and other.kept is not None and one.kept != other.kept:
        names = [name for name in _KEPT if one.kept.get(name) != other.kept.get(name)]
        return f"{' and '.join(names)}"
    return ""


def _describe_conflict(sent: SentResult, owner: str, other: str) -> str:
    given = (sent.row.provenance or {}).get("id", "")
    return (
        f"{owner} the id {given[:60]!r} for the same case, host and commit, with other {other}; "
        "give each result a different id"
    )
