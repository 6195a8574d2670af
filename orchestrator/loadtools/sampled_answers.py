"""Reasons against a trial from the answers that the agent itself got before, during and after it.

A load tool counts answers, and does not compare them. See ANSWERS in agents/hostagent/protocol.py.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from cli.pitwall.units import format_seconds
from orchestrator.loadtools.evidence import Evidence
from orchestrator.loadtools.model import Reason
from orchestrator.loadtools.thresholds import THRESHOLDS

#: The check with the request of the load.
OWN = "load"
#: The first answer is slow if it took this many times as long as later ones, and so much longer.
SLOW_FACTOR, SLOW_S = 10.0, 0.05
#: A body that changed for good has been seen at least this often: one may be the next second's.
FEWEST_FOR_GOOD = 2
#: Facts of an answer except its body, with the words for them.
_COMPARED = (("status", "status"), ("media_type", "media type"), ("encoding", "content coding"))

Answer = Mapping[str, Any]


class _Phases:
    """The answers to the load's own request by phase."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        own = [each for each in answers if each["check"] == OWN]
        self.before, self.during, self.after = (
            [each for each in own if each["when"] == when] for when in ("before", "during", "after")
        )

    def find_new(self, key: str) -> Counter[Any]:
        """Return the values that only the load caused, each with the number of its answers.

        Empty if the values vary by themselves: before the load, or without returning after it.
        """
        before, after = ({each[key] for each in part} for part in (self.before, self.after))
        new = Counter[Any]()
        for each in self.during:
            if each[key] not in before:
                new[each[key]] += each["count"]
        if len(before) != 1 or after <= before:
            return new if len(before) == 1 else Counter()
        is_for_good = set(new) <= after and max(new.values(), default=0) >= FEWEST_FOR_GOOD
        return new if is_for_good else Counter()


def _count(answers: Sequence[Answer]) -> int:
    return sum(each["count"] for each in answers)


def _check_wrong_answers(evidence: Evidence) -> Reason | None:
    wrong = [each for each in evidence.sampled if each["problem"]]
    if not wrong:
        return None
    first, known = wrong[0], _count([each for each in evidence.sampled if each["when"] == "during"])
    name = "the load's own request" if first["check"] == OWN else f"check {first['check']}"
    observation = (
        f"{_count(wrong)} of {known} sampled answers were wrong; {name} {first['when']} the load: "
        f"{first['problem']}"
    )
    return THRESHOLDS["wrong_under_load"].build_reason(observation)


def _check_mixed_answers(evidence: Evidence) -> Reason | None:
    """Judge servers that return the id of a request: an answer without it belongs to another."""
    own = _Phases(evidence.sampled)
    before = [each for each in own.before if each["echoes"] is not None]
    if not before or not all(each["echoes"] for each in before):
        return None
    statuses = {each["status"] for each in before}
    other = [each for each in own.during if not each["echoes"] and each["status"] in statuses]
    if not other:
        return None
    return THRESHOLDS["answer_mixed"].build_reason(
        f"{_count(other)} of {_count(own.during)} sampled answers lacked the x-request-id of their "
        "request, which the server returned before the load"
    )


def _check_declared_bodies(evidence: Evidence) -> Reason | None:
    if evidence.spec.volatile is None:
        return None
    own, rule = _Phases(evidence.sampled), THRESHOLDS["body_changed"]
    if problem := (evidence.result.get("answers") or {}).get("volatile_problem"):
        return rule.build_reason(str(problem))
    answers = [*own.before, *own.during, *own.after]
    other = [each for each in answers if each["sha256"] != answers[0]["sha256"]]
    if not other:
        return None
    when = {each["when"]: None for each in other}
    observation = (
        f"{_count(other)} of {_count(answers)} answers of the agent's own requests had another "
        f"body than the first one, {' and '.join(when)} the load{_format_lengths(answers, other)}"
    )
    return rule.build_reason(observation)


def _check_changed_answers(evidence: Evidence) -> Reason | None:
    """Compare what did not vary before the load; the definition does not say what may vary."""
    if evidence.spec.volatile is not None:
        return None
    own = _Phases(evidence.sampled)
    change = next(_iterate_changes(own), None)
    if change is None:
        return None
    observation = f"{change} in {_count(own.during)} sampled answers during the load"
    return THRESHOLDS["answers_changed"].build_reason(observation)


def _iterate_changes(own: _Phases) -> Iterator[str]:
    for key, title in _COMPARED:
        if new := own.find_new(key):
            value, before = new.most_common(1)[0][0], own.before[0][key]
            yield f"{title} {value} instead of {before} {new.total()} times"
    if bodies := own.find_new("sha256"):
        other = [each for each in own.during if each["sha256"] in bodies]
        yield f"another body{_format_lengths(own.before, other)} {bodies.total()} times"
    if lengths := own.find_new("length"):
        value, before = lengths.most_common(1)[0][0], own.before[0]["length"]
        yield f"a body of {value} instead of {before} bytes {lengths.total()} times"


def _format_lengths(answers: Sequence[Answer], other: Sequence[Answer]) -> str:
    first, length = answers[0]["length"], other[0]["length"]
    if first == length:
        return f" of the same length ({first} bytes)"
    return f" ({length} instead of {first} bytes)"


def _check_closed_connections(evidence: Evidence) -> Reason | None:
    if not evidence.spec.keepalive or evidence.spec.protocol != "h1":
        return None
    own = _Phases(evidence.sampled)
    closed = [each for each in own.during if each["closes"]]
    if not closed:
        return None
    is_always = any(each["closes"] for each in own.before)
    return THRESHOLDS["connections_closed"].build_reason(
        f"the server closed the connection after {_count(closed)} of {_count(own.during)} sampled "
        f"answers, {'as before the load' if is_always else 'and not before the load'}"
    )


def describe_first_answer(answers: Mapping[str, Any]) -> list[str]:
    """Return notes about caches and a slow first answer; they are no reasons against a trial.

    A cache may be the subject of a benchmark. Most servers do initial work for their first answer.
    """
    notes = []
    first_s, later_s = answers.get("first_s"), answers.get("later_s")
    if first_s is not None and later_s is not None and _is_slow(first_s, later_s):
        notes.append(
            f"The first answer took {format_seconds(first_s)}, later ones before the load "
            f"{format_seconds(later_s)}. Either the server cached the answer, or it did initial "
            "work. The load measured the later kind."
        )
    during = select_during(answers)
    if cached := _count([each for each in during if each["cached"]]):
        notes.append(
            f"Headers of {cached} of {_count(during)} sampled answers during the load say that a "
            "cache sent them."
        )
    return notes


def select_during(answers: Mapping[str, Any]) -> list[Answer]:
    """Return the sampled answers during the load."""
    return [each for each in answers.get("seen") or () if each["when"] == "during"]


def _is_slow(first_s: float, later_s: float) -> bool:
    return first_s >= SLOW_FACTOR * later_s and first_s - later_s >= SLOW_S


CHECKS: tuple[Callable[[Evidence], Reason | None], ...] = (
    _check_wrong_answers,
    _check_mixed_answers,
    _check_declared_bodies,
    _check_changed_answers,
    _check_closed_connections,
)
