"""Convert lines of an archive to checked rows with the ids of this database."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Protocol
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.db import connection
from django.db.models import BinaryField, Field, ForeignKey

from orchestrator.archives.projects.kinds import BY_MODEL, Kind
from orchestrator.core.errors import InvalidRequestError
from orchestrator.results.models import Metric


class Ids(Protocol):
    """Maps an id of the archive to the id here.

    Raises KeyError for a row that was not read before.
    """

    def get_id(self, kind: str, archive_id: Any) -> Any: ...
    def register_id(self, kind: Kind, archive_id: Any) -> Any: ...
    def metric(self, key: Any) -> int: ...
    def replace_ids(self, document: Any) -> Any: ...
    def block(self, number: int) -> int: ...


class Converter:
    """Converts rows of one kind."""

    def __init__(self, kind: Kind, ids: Ids, own: Mapping[str, Any]) -> None:
        """`own`: values for fields that are neither in the archive nor in the kind."""
        self.kind, self._ids = kind, ids
        self._read = {each.name: each for each in kind.fields}
        self._given = {**kind.fixed, **own}
        self.columns = [str(each.column) for each in kind.model._meta.concrete_fields]

    def row(self, record: dict[str, Any], binary: Callable[[int], bytes]) -> dict[str, Any]:
        """Return the values of all fields of the model, as Python values."""
        values = {}
        for each in self.kind.model._meta.concrete_fields:
            if each.name in self._read:
                values[each.name] = self._value(each, record[each.name], binary)
            elif each.name in self._given:
                values[each.name] = self._given[each.name]
            else:
                values[each.name] = None if isinstance(each, ForeignKey) else each.get_default()
        return values

    def packed(self, row: Mapping[str, Any]) -> list[Any]:
        """Return the values in the order of `columns`, adapted for the database."""
        return [
            each.get_db_prep_save(row[each.name], connection)
            for each in self.kind.model._meta.concrete_fields
        ]

    def _value(self, each: Field[Any, Any], raw_value: Any, binary: Callable[[int], bytes]) -> Any:
        try:
            if each.primary_key and not isinstance(each, ForeignKey):
                return self._ids.register_id(self.kind, raw_value)
            if raw_value is None:
                return None
            if isinstance(each, ForeignKey):
                return self._linked(each, raw_value)
            if isinstance(each, BinaryField):
                return binary(raw_value)
            value = self._special(each, raw_value)
            value = each.to_python(value)
            if not isinstance(each, ArrayField):
                each.run_validators(value)
        except KeyError as error:
            raise InvalidRequestError(f"{each.name}: there is no {raw_value!r}") from error
        except (ValidationError, TypeError, ValueError) as error:
            words = "; ".join(getattr(error, "messages", [str(error)]))
            raise InvalidRequestError(f"{each.name}: {words}") from error
        return value

    def _linked(self, each: ForeignKey[Any, Any], value: Any) -> Any:
        if each.related_model is Metric:
            return self._ids.metric(value)
        return self._ids.get_id(BY_MODEL[each.related_model].name, value)

    def _special(self, each: Field[Any, Any], value: Any) -> Any:
        """Map ids within lists and documents."""
        place = (self.kind.name, each.name)
        if place == ("readings", "metrics"):
            return [self._ids.metric(key) for key in value]
        if place == ("points", "blocks"):
            return [self._ids.block(number) for number in value]
        if place == ("series_detections", "outliers"):
            return [self._ids.get_id("commits", number) for number in value]
        if place in {("bisections", "answers"), ("bisections", "failures")}:
            return self._ids.replace_ids(value)
        return value


def parse_row(kind: Kind, line: bytes) -> dict[str, Any]:
    """Parse a line. Raise InvalidRequestError if its fields are not those of the kind."""
    try:
        row = json.loads(line)
    except ValueError as error:
        raise InvalidRequestError(f"it is not JSON: {error}") from error
    wanted = [each.name for each in kind.fields]
    if not isinstance(row, dict) or {*row} != {*wanted}:
        raise InvalidRequestError(f"expected exactly the fields {', '.join(wanted)}")
    return row


def parse_uuid(value: Any) -> UUID:
    """Return the UUID of a text. Raise ValueError if it is none."""
    if not isinstance(value, str):
        raise ValueError(f"expected a UUID, got {value!r}")
    return UUID(value)
