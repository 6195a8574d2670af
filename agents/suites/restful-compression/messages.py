"""The messages of the server: five sizes in bytes of JSON, the same each time."""

import json
import random

#: Bytes of each message as compact JSON.
SIZES = {"full": 972, "small": 7_649, "medium": 33_918, "large": 138_492, "huge": 1_129_275}

_NAMES = ["Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gina", "Hugo", "Ida", "Jon", "Kim", "Leo"]
_FAMILIES = ["Abel", "Berg", "Cole", "Dahl", "Egli", "Frei", "Gross", "Hess", "Ito", "Juhl", "Koch"]
_CITIES = ["Basel", "Bergen", "Ghent", "Graz", "Lyon", "Porto", "Tartu", "Turku"]
_STREETS = ["Station Road", "Mill Lane", "Harbour Street", "Church Square", "Market Place"]
_PRODUCTS = ["bicycle bell", "desk lamp", "kettle", "notebook", "rain coat", "tea pot", "umbrella"]
_STATES = ["ordered", "packed", "shipped", "delivered", "returned"]
_TEXT = (
    "the a of to in is was for on with as by at from that this it be are were had not but they "
    "order parcel customer delivery invoice address reminder payment answer letter week before "
    "after morning evening early late large small heavy blue green wooden broken replaced missing"
)
_WORDS = _TEXT.split()


class Chance:
    """Choices that are the same on every Python: only random() guarantees its sequence."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random

    def number(self, low: int, high: int) -> int:
        """Return a number from low to high, inclusive."""
        return low + int(self._random() * (high - low + 1))

    def one_of(self, values: list[str]) -> str:
        return values[self.number(0, len(values) - 1)]

    def hexadecimal(self, digits: int) -> str:
        return "".join(f"{self.number(0, 15):x}" for _ in range(digits))

    def words(self, count: int) -> str:
        return " ".join(self.one_of(_WORDS) for _ in range(count))


def message(size: str) -> dict[str, object]:
    """Return as many records as fit, and a note that fills the rest."""
    whole: dict[str, object] = {"size": size, "count": 0, "records": [], "note": ""}
    records: list[dict[str, object]] = []
    left = SIZES[size] - len(encoded(whole)) - len(str(SIZES[size] // 100))
    while True:
        record = _record(len(records) + 1)
        left -= len(encoded(record)) + 1
        if left < 0:
            break
        records.append(record)
    whole |= {"count": len(records), "records": records}
    missing = SIZES[size] - len(encoded(whole))
    return {**whole, "note": Chance(0).words(missing)[:missing]}


def encoded(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _record(number: int) -> dict[str, object]:
    """Return a customer with orders, about 800 bytes, which compress like real ones."""
    chance = Chance(number)
    first, last = chance.one_of(_NAMES), chance.one_of(_FAMILIES)
    return {
        "customer_id": 100_000 + number,
        "account": chance.hexadecimal(40),
        "is_active": chance.number(0, 3) > 0,
        "first_name": first,
        "last_name": last,
        "email_address": f"{first}.{last}@example.org".lower(),
        "telephone": f"+41 44 {chance.number(200, 999)} {chance.number(1000, 9999)}",
        "registered_at": _moment(chance),
        "postal_address": {
            "street": f"{chance.one_of(_STREETS)} {chance.number(1, 99)}",
            "postal_code": str(chance.number(1000, 9999)),
            "city": chance.one_of(_CITIES),
        },
        "preferences": {
            "newsletter": chance.number(0, 1) == 1,
            "language": "en",
            "currency": "EUR",
        },
        "orders": [_order(chance) for _ in range(2)],
        "remarks": chance.words(20),
    }


def _order(chance: Chance) -> dict[str, object]:
    return {
        "order_id": chance.number(1_000_000, 9_999_999),
        "product": chance.one_of(_PRODUCTS),
        "quantity": chance.number(1, 9),
        "unit_price": chance.number(100, 9999) / 100,
        "state": chance.one_of(_STATES),
        "ordered_at": _moment(chance),
    }


def _moment(chance: Chance) -> str:
    day = f"{chance.number(2019, 2024)}-{chance.number(1, 12):02}-{chance.number(1, 28):02}"
    return f"{day}T{chance.number(0, 23):02}:{chance.number(0, 59):02}:00Z"
