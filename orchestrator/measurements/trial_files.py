"""Reads of the files of a trial, for pages that show more than the stored measurements."""

import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from agents.hostagent.protocol import load_files
from orchestrator.results.models import Artifact
from orchestrator.runs.models import Trial

Facts = Mapping[str, Any]


def load_result(trial: Trial) -> Facts:
    """Return the agent's result.json; empty if the trial has none or it cannot be read."""
    return _load_json_file(trial, "result.json")


def load_rows(trial: Trial, load: int = 0) -> Facts:
    """Return the reduced rows of a measured load, counted from 0; empty as above."""
    return _load_json_file(trial, load_files(load)[1])


def read_loads(result: Facts) -> Sequence[Facts]:
    """Return the agent's results of the measured loads, in their order."""
    loads = result.get("loads")
    return [each for each in loads if isinstance(each, dict)] if isinstance(loads, list) else []


def _load_json_file(trial: Trial, name: str) -> Facts:
    artifact = Artifact.objects.filter(trial=trial, name=name).first()
    try:
        document = json.loads(zlib.decompress(artifact.compressed)) if artifact else {}
    except (ValueError, zlib.error):
        return {}
    return document if isinstance(document, dict) else {}
