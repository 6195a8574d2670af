"""Copies of the rows that most tests begin with, so that only the first test needs the services.

The services need about 90 statements for the usual world, and the copies one for each table.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

from django.db import transaction
from django.db.models import DateTimeField, Field, Model

from orchestrator.core.clock import utc_now

#: The copies have the present time instead of all other times.
KEPT_TIMES = frozenset({"committed_at"})

#: Model → its rows, in the order of their keys.
Rows = Mapping[type[Model], list[Any]]


class RowTemplate:
    """The rows that services wrote into some tables. `rows` is None before they are known.

    A model stands after those that its rows refer to.
    """

    def __init__(self, *models: type[Model]) -> None:
        self.models = models
        self.rows: Rows | None = None

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Keep the rows that the block writes, unless the tables had rows before."""
        is_empty = not any(model._base_manager.exists() for model in self.models)
        yield
        if is_empty:
            self.rows = {model: list(model._base_manager.order_by("pk")) for model in self.models}

    @transaction.atomic
    def copy(
        self,
        known: Mapping[Model, Model] | None = None,
        changes: Mapping[tuple[type[Model], str], Any] | None = None,
    ) -> Rows:
        """Write the rows again, with new keys.

        `known`: original → the row that copies refer to instead, for rows of other tables.
        `changes`: (model, field) → the value that all copies have there.
        """
        assert self.rows is not None, "nothing was read"
        keys = {_identify(old): new.pk for old, new in (known or {}).items()}
        copies = {}
        for model, rows in self.rows.items():
            made = [_copy(row, keys, changes or {}) for row in rows]
            copies[model] = model._base_manager.bulk_create(made)
            keys |= {_identify(old): new.pk for old, new in zip(rows, made, strict=True)}
        return copies


def _identify(row: Model) -> tuple[type[Model], Any]:
    return type(row), row.pk


def _copy(
    row: Model,
    keys: Mapping[tuple[type[Model], Any], Any],
    changes: Mapping[tuple[type[Model], str], Any],
) -> Model:
    model, values = type(row), {}
    for field in model._meta.concrete_fields:
        change = (model, field.name)
        values[field.attname] = (
            changes[change] if change in changes else _copy_value(row, field, keys)
        )
    return model(**values)


def _copy_value(
    row: Model, field: "Field[Any, Any]", keys: Mapping[tuple[type[Model], Any], Any]
) -> Any:
    value = getattr(row, field.attname)
    if value is None:
        return None
    if field.related_model is not None:
        return keys[field.related_model, value]
    if field.primary_key:
        return field.get_default()
    if isinstance(field, DateTimeField) and field.name not in KEPT_TIMES:
        return utc_now()
    return deepcopy(value)
