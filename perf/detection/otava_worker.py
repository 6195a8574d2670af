"""Run Otava in its environment: series as JSON on standard input, alarms as JSON on output."""

from __future__ import annotations

import json
import sys
import time

import numpy as np
from otava.analysis import compute_change_points


def main() -> None:
    np.random.seed(1)
    alarms, seconds = [], []
    for values in json.load(sys.stdin):
        began = time.process_time()
        change_points, _ = compute_change_points([float(value) for value in values])
        seconds.append(time.process_time() - began)
        alarms.append([int(each.index) for each in change_points])
    print(json.dumps({"alarms": alarms, "seconds": seconds}))


if __name__ == "__main__":
    main()
