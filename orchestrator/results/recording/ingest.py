"""Taking in finished results that were measured elsewhere: all of a post or none, each once.

1. All names are looked up; what is new (hosts, commits, cases) is made, each in a short transaction
   of its own: those who post the same new name at once wait for one another there and nowhere
   else. 2. Each result gets an id that follows from what it is, so that a post that is sent again
   changes nothing. 3. All results are recorded in one transaction, in the order of their ids.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from uuid import UUID

from django.db import IntegrityError, transaction

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.quotas import check_storage, limits_of, note_import
from orchestrator.core.clock import utc_now
from orchestrator.core.counting import count
from orchestrator.core.errors import InvalidRequestError
from orchestrator.results.recording.incoming import ResultIn, provenance_of, stored_bytes
from orchestrator.results.recording.names import Names, forget_names
from orchestrator.results.recording.record import Ids, Measured, record
from orchestrator.results.retention.retentions import faults_of_age

_ids = Ids()


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """How many results of a post were new, and how many had been taken before."""

    accepted: int
    repeated: int


def take_results(*, member: Member, results: Sequence[ResultIn], token: str = "") -> Taken:
    """Stores results of the member's team; `token` names what sent them.

    InvalidRequestError, with every fault, where a name is not known: then nothing is stored.
    """
    member.require(Role.MEMBER, to="send results")
    limits = limits_of(member.team)
    limited = limits.storage_bytes is not None
    if limited:
        added = sum(map(stored_bytes, results))
        check_storage(team=member.team, limits=limits, added=added)
    try:
        accepted = _taken(member, results, token)
    except IntegrityError:
        # Something that was remembered has been deleted meanwhile.
        forget()
        accepted = _taken(member, results, token)
    if limited:
        note_stored(member, results, accepted)
    count("pitwall_results_total", accepted, way="post")
    return Taken(accepted=accepted, repeated=len(results) - accepted)


def forget() -> None:
    """After something was deleted that may be remembered."""
    forget_names()
    _ids.forget()


def _taken(member: Member, results: Sequence[ResultIn], token: str) -> int:
    rows = rows_of(member, results, token, Drawn())
    with transaction.atomic():
        return record(rows, _ids)


def note_stored(member: Member, results: Sequence[ResultIn], accepted: int) -> None:
    """Adds to what the team has used: of these results so many were new."""
    if accepted:
        each = sum(map(stored_bytes, results)) / len(results)
        note_import(team=member.team, added=round(accepted * each))


def rows_of(
    member: Member, results: Sequence[ResultIn], token: str, drawn: "Drawn"
) -> list[Measured]:
    """The results as they are recorded, their names looked up or made; `drawn` draws their ids."""
    names = Names(member)
    found = names.benchmarks(results)
    benchmarks = [each for each in found if each is not None]
    if names.faults:
        raise InvalidRequestError.of(names.faults)
    now = utc_now()
    if old := faults_of_age(benchmarks, results, now):
        faults = [(f"results[{place}].at", fault) for place, fault in old.items()]
        raise InvalidRequestError.of(faults)
    cases = names.cases(benchmarks, results)
    rows = []
    for result, benchmark, case in zip(results, benchmarks, cases, strict=True):
        at = result.at or now
        host, commit = names.host(result), names.commit(benchmark, result)
        rows.append(
            Measured(
                id=drawn.of(result, benchmark.pk, case, host, commit),
                benchmark=benchmark.pk,
                case=case,
                host=host,
                commit=commit,
                at=at,
                validity=result.validity,
                readings=result.metrics,
                block=block_of(result.block),
                epoch=names.epoch(result, at),
                provenance=provenance_of(result, token),
            )
        )
    return rows


class Drawn:
    """The ids of the results of one post or file: a UUID of version 8 (RFC 9562).

    It begins with the number of the commit, so that the results of a commit lie together in the
    index; the rest is a hash of the client's own id, or of all that a result says. Several that
    say the same are told apart by their order.
    """

    def __init__(self) -> None:
        self._same: dict[str, int] = {}

    def of(self, result: ResultIn, benchmark: int, case: int, host: UUID, commit: int) -> UUID:
        if result.id is not None:
            text = f"id\0{benchmark}\0{result.id}"
        else:
            text = self._content(result, case, host)
        drawn = int.from_bytes(sha256(text.encode()).digest()[:10], "big")
        value = (commit & 0xFFFF_FFFF_FFFF) << 80 | drawn
        value = value & ~(0xF << 76) | 0x8 << 76
        return UUID(int=value & ~(0x3 << 62) | 0x2 << 62)

    def _content(self, result: ResultIn, case: int, host: UUID) -> str:
        at = result.at.isoformat() if result.at else ""
        rest = (result.validity, result.reasons, at, result.block, result.url, result.note)
        text = f"content\0{case}\0{host}\0{sorted(result.metrics.items())}\0{rest}"
        number = self._same[text] = self._same.get(text, -1) + 1
        return f"{text}\0{number}"


def block_of(name: str | None) -> int:
    """The number of a block; 0 for none."""
    if name is None:
        return 0
    return int.from_bytes(sha256(name.encode()).digest()[:8], "big", signed=True) or 1
