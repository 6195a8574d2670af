"""Text for CSV files that people open in spreadsheets. Pure."""

import csv
import io
from collections.abc import Iterable, Sequence

#: First characters of a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def escape_formula(text: str) -> str:
    """Return the text, with an apostrophe in front if a spreadsheet would evaluate it.

    A number stays a number: `-3` is no formula. Source: OWASP's advice on CSV injection.
    """
    if not text.lstrip(" ").startswith(_FORMULA) or _is_number(text):
        return text
    return f"'{text}"


def render_csv(rows: Iterable[Sequence[object]]) -> str:
    """Return the rows as CSV. Texts are safe, numbers are exact, None is empty."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    for row in rows:
        writer.writerow([_escape_field(value) for value in row])
    return file.getvalue()


def _escape_field(value: object) -> object:
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(value)
    return value if isinstance(value, int) else escape_formula(str(value))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
