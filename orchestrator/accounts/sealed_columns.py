"""All columns with sealed values, and their encryption with the newest key."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from django.apps import apps
from django.db import models, transaction

from orchestrator.accounts.vault import UNNAMED, build_seal_context, get_keyring
from orchestrator.core.errors import BrokenSealError
from orchestrator.core.sealing import read_key_id

_BATCH = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedColumn:
    """A column; `model` is `app.Model`.

    `keys` are the sealed values within a JSON column, which are bound to the column alone.
    """

    model: str
    column: str
    keys: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.model}.{self.column}"

    def build_context(self, row: models.Model) -> str:
        return str(self) if self.keys else build_seal_context(row, self.column)


#: In addition to columns named `sealed_…`, which are found automatically.
_OTHERS = (
    SealedColumn(model="runs.Job", column="tls"),
    SealedColumn(model="mfa.Authenticator", column="data", keys=("secret", "seed")),
)


def list_sealed_columns() -> list[SealedColumn]:
    named = [
        SealedColumn(model=model._meta.label, column=each.name)
        for model in apps.get_models()
        for each in model._meta.concrete_fields
        if each.name.startswith("sealed_")
    ]
    return [*named, *_OTHERS]


@dataclass(slots=True, kw_only=True)
class SealRotation:
    """The counts of a column: rows, values sealed again, and the rows that no key opens."""

    column: SealedColumn
    rows: int = 0
    resealed: int = 0
    keys: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)


def rotate_seals(column: SealedColumn, *, write: bool = True) -> Iterator[SealRotation]:
    """Seal a column again in batches with a transaction each; yield after each batch.

    Values sealed with the newest key stay unchanged, so it may be repeated at any time.
    """
    report, last = SealRotation(column=column), None
    while True:
        with transaction.atomic():
            rows = _load_batch(column, last)
            for row in rows:
                _rotate_row(row, report, write=write)
        if not rows:
            return
        last = rows[-1].pk
        yield report


def load_key_ids() -> tuple[str, ...]:
    """Return the ids of the keys that seal some value now, without opening any."""
    return tuple(sorted({read_key_id(each) or UNNAMED for each in _iterate_sealed()}))


def _iterate_sealed() -> Iterator[bytes]:
    for column in list_sealed_columns():
        rows = apps.get_model(column.model)._base_manager.exclude(**{column.column: None})
        for value in rows.values_list(column.column, flat=True).iterator():
            parts = [value[key] for key in column.keys if key in value] if column.keys else [value]
            yield from map(_encode_sealed, parts)


def _load_batch(column: SealedColumn, last: Any) -> list[models.Model]:
    model = apps.get_model(column.model)
    rows = model._base_manager.exclude(**{column.column: None}).order_by("pk")
    if last is not None:
        rows = rows.filter(pk__gt=last)
    return list(rows.only("pk", column.column).select_for_update(of=("self",))[:_BATCH])


def _rotate_row(row: models.Model, report: SealRotation, *, write: bool) -> None:
    name, keys = report.column.column, report.column.keys
    value = getattr(row, name)
    report.rows += 1

    def rotate(sealed: Any) -> Any:
        return _seal_again(sealed, report, report.column.build_context(row))

    try:
        new = _rotate_json(value, keys, rotate) if keys else rotate(value)
    except BrokenSealError as error:
        report.broken.append(f"{row.pk}: {error}")
        return
    if new != value and write:
        setattr(row, name, new)
        row.save(update_fields=[name])


def _rotate_json(value: dict[str, Any], keys: tuple[str, ...], rotate: Callable[[Any], Any]) -> Any:
    return {key: rotate(part) if key in keys else part for key, part in value.items()}


def _encode_sealed(sealed: bytes | memoryview | str) -> bytes:
    return sealed.encode() if isinstance(sealed, str) else bytes(sealed)


def _seal_again(sealed: bytes | memoryview | str, report: SealRotation, place: str) -> bytes | str:
    """Return the value sealed with the newest key, of the same type; unchanged if it is already."""
    ring, text, old = get_keyring(), isinstance(sealed, str), _encode_sealed(sealed)
    report.keys[read_key_id(old) or UNNAMED] += 1
    opened = ring.unseal(old, place)
    if ring.is_current(old):
        return sealed if isinstance(sealed, str) else old
    report.resealed += 1
    new = ring.seal(opened, place)
    return new.decode() if text else new
