"""Real series whose changes others have labelled; `perf/detection/labelled.json` says who."""

from __future__ import annotations

import json
from pathlib import Path

from perf.detection.synthetic import Labelled

FILE = Path(__file__).with_name("labelled.json")


def labelled() -> list[Labelled]:
    return [
        Labelled(each["name"], each["values"], tuple(each["changes"]), each["lower_is_better"])
        for each in json.loads(FILE.read_text())["series"]
    ]
