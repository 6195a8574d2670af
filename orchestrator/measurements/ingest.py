"""Store finished results that were measured elsewhere: all of a post or none, each once.

1. All names are looked up. New hosts, commits and cases are created, each in a separate short
   transaction: requests with the same new name wait for each other only there.
2. Each result gets an id derived from the id of the sender, so a repeated post changes nothing.
3. All results are recorded in one transaction, in the order of their ids.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from hashlib import sha256
from uuid import UUID

from django.db import IntegrityError, transaction

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.quotas import add_storage_used, check_storage, load_quotas
from orchestrator.benchmarks.models import Benchmark
from orchestrator.core.clock import utc_now
from orchestrator.core.counting import count
from orchestrator.core.errors import InvalidRequestError
from orchestrator.measurements.age_check import find_age_errors
from orchestrator.measurements.incoming import ResultIn, build_provenance, estimate_stored_bytes
from orchestrator.measurements.metrics import store_metrics
from orchestrator.measurements.names import Names, forget_names
from orchestrator.measurements.recording import Ids, MeasuredRow, record
from orchestrator.measurements.repeats import SentResult, check_alike, check_repeats
from orchestrator.results.models import Reading

_ids = Ids()
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestResult:
    """The numbers of new and of known results in a post."""

    accepted: int
    repeated: int


def ingest_results(*, member: Member, results: Sequence[ResultIn], token: str = "") -> IngestResult:
    """Store results of the member's team; `token` is the name of the token that sent them.

    Raise InvalidRequestError, with every fault, if a name is unknown, and ResultConflictError if a
    result with other content has the same id: then nothing is stored.
    """
    member.require(Role.MEMBER, to="send results")
    quotas = load_quotas(member.team)
    limited = quotas.storage_bytes is not None
    if limited:
        added = sum(map(estimate_stored_bytes, results))
        check_storage(team=member.team, quotas=quotas, added=added)
    try:
        accepted = _record_results(member, results, token)
    except IntegrityError:
        # A remembered row was deleted in the meantime.
        forget_cached()
        accepted = _record_results(member, results, token)
    if limited:
        add_stored_size(member, results, accepted)
    count("pitwall_results_total", accepted, way="post")
    return IngestResult(accepted=accepted, repeated=len(results) - accepted)


def forget_cached() -> None:
    """Forget all remembered ids; call it after a delete of rows that may be remembered."""
    forget_names()
    _ids.forget()


def _record_results(member: Member, results: Sequence[ResultIn], token: str) -> int:
    ready = prepare_results(member, results, token)
    check_alike(ready.sent)
    with transaction.atomic():
        stored = record([each.row for each in ready.sent], ready.metrics, _ids)
        check_repeats(ready.sent, stored)
    return len(stored)


def add_stored_size(member: Member, results: Sequence[ResultIn], accepted: int) -> None:
    """Add the size of the `accepted` new results to the storage use of the team."""
    if accepted:
        each = sum(map(estimate_stored_bytes, results)) / len(results)
        add_storage_used(team=member.team, added=round(accepted * each))


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedResults:
    """Results in the order of the request, and the ids of all their metrics."""

    sent: list[SentResult]
    metrics: Mapping[str, int]


def prepare_results(
    member: Member,
    results: Sequence[ResultIn],
    token: str,
    places: Sequence[str] | None = None,
) -> PreparedResults:
    """Look up or create the names of results and return them ready to be recorded.

    `places` identify the results in messages to the sender; by default results[0] and so on.
    """
    names, now = Names(member), utc_now()
    benchmarks = _find_benchmarks(names, results, places, now)
    metrics = _ensure_metrics(member.team.pk, {key for result in results for key in result.metrics})
    cases = names.cases(benchmarks, results)
    sent = []
    for number, (result, benchmark, case) in enumerate(
        zip(results, benchmarks, cases, strict=True)
    ):
        row = _build_row(names, result, benchmark, case, now, token)
        place = places[number] if places else f"results[{number}]"
        sent.append(SentResult(place=place, row=row, timed=result.at is not None))
    return PreparedResults(sent=_keep_known_ids(sent), metrics=metrics)


def _find_benchmarks(
    names: Names, results: Sequence[ResultIn], places: Sequence[str] | None, now: datetime
) -> list[Benchmark]:
    """Return the benchmark of each result; InvalidRequestError if unknown or a result is too
    old."""
    benchmarks = [each for each in names.benchmarks(results) if each is not None]
    if names.faults:
        raise InvalidRequestError.from_faults(names.faults)
    if old := find_age_errors(benchmarks, results, now):
        names_of = places or [f"results[{number}].at" for number in range(len(results))]
        raise InvalidRequestError.from_faults(
            [(names_of[place], fault) for place, fault in old.items()]
        )
    return benchmarks


def _build_row(
    names: Names, result: ResultIn, benchmark: Benchmark, case: int, now: datetime, token: str
) -> MeasuredRow:
    at = result.at or now
    host, commit = names.host(result), names.commit(benchmark, result)
    return MeasuredRow(
        id=hash_reading_id(result, case, host, commit),
        benchmark=benchmark.pk,
        case=case,
        host=host,
        commit=commit,
        at=at,
        validity=result.validity,
        readings=result.metrics,
        block=hash_block_name(result.block),
        epoch=names.epoch(result, at),
        provenance=build_provenance(result, token),
    )


def _ensure_metrics(team: int, keys: set[str]) -> Mapping[str, int]:
    shared = _ids.metrics
    known = {key: shared[team, key] for key in keys if (team, key) in shared}
    if missing := keys - known.keys():
        new_ids = store_metrics(team, missing)
        transaction.on_commit(partial(_ids.learn_metrics, team, new_ids))
        known |= new_ids
    return known


def _keep_known_ids(sent: list[SentResult]) -> list[SentResult]:
    """Keep the id of results that are stored under an id of an earlier scheme.

    These are results exported from this Pitwall, and results sent when an id was unique for a whole
    benchmark.
    """
    others: dict[UUID, list[SentResult]] = {}
    for each in sent:
        for other in _list_other_ids(each.row):
            others.setdefault(other, []).append(each)
    rows = Reading.objects.filter(pk__in=list(others)).values_list(
        "pk", "case_id", "commit_id", "host_id"
    )
    known = {
        id(each): pk
        for pk, *place in rows
        for each in others[pk]
        if [each.row.case, each.row.commit, each.row.host] == place
    }
    return [
        replace(each, row=replace(each.row, id=known[id(each)])) if id(each) in known else each
        for each in sent
    ]


def _list_other_ids(row: MeasuredRow) -> list[UUID]:
    given = (row.provenance or {}).get("id")
    if not given:
        return []
    ids = [_derive_result_id(row.commit, f"id\0{row.benchmark}\0{given}")]
    if _UUID.fullmatch(given):
        ids.append(UUID(given))
    return ids


def hash_reading_id(result: ResultIn, case: int, host: UUID, commit: int) -> UUID:
    """Derive the id of a result: a UUID of version 8 (RFC 9562).

    It begins with the number of the commit, so that results of a commit are adjacent in the index.
    The rest is a hash of the case, the host and the id of the sender.
    """
    return _derive_result_id(commit, f"sender\0{case}\0{host}\0{result.id}")


def _derive_result_id(commit: int, text: str) -> UUID:
    drawn = int.from_bytes(sha256(text.encode()).digest()[:10], "big")
    value = (commit & 0xFFFF_FFFF_FFFF) << 80 | drawn
    value = value & ~(0xF << 76) | 0x8 << 76
    return UUID(int=value & ~(0x3 << 62) | 0x2 << 62)


def hash_block_name(name: str | None) -> int:
    """Return the number of a block; 0 for none."""
    if name is None:
        return 0
    return int.from_bytes(sha256(name.encode()).digest()[:8], "big", signed=True) or 1
