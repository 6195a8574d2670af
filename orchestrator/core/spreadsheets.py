"""Texts in CSV files, which people open in spreadsheets. Pure."""

import csv
import io
from collections.abc import Iterable, Sequence

#: What begins a formula there.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def safe_text(text: str) -> str:
    """The text, with an apostrophe before what a spreadsheet would compute.

    A number stays a number: `-3` is no formula. After OWASP's advice on CSV injection.
    """
    if not text.lstrip(" ").startswith(_FORMULA) or _is_number(text):
        return text
    return f"'{text}"


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """The rows as CSV; texts are safe, numbers are exact, None is empty."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    for row in rows:
        writer.writerow([_field(value) for value in row])
    return file.getvalue()


def _field(value: object) -> object:
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(value)
    return value if isinstance(value, int) else safe_text(str(value))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
