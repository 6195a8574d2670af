"""Real series with labelled changes; `perf/detection/labelled.json` names the sources."""

from __future__ import annotations

import json
from pathlib import Path

from perf.detection.synthetic import Labelled

FILE = Path(__file__).with_name("labelled.json")


def load_labelled() -> list[Labelled]:
    return [
        Labelled(each["name"], each["values"], tuple(each["changes"]), each["lower_is_better"])
        for each in json.loads(FILE.read_text())["series"]
    ]
