"""docs/reports.md knows every field of a report, and its example is one."""

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from orchestrator.reports.chart_spec import ChartSpec
from orchestrator.reports.claim_spec import Claim, Original
from orchestrator.reports.pivot_model import PUBLISHED, WORDS
from orchestrator.reports.report_spec import (
    OWN_DIMENSIONS,
    Column,
    Dimension,
    Measure,
    ReportSpec,
    Sort,
    TableSpec,
    parse,
)

PAGE = (Path(__file__).parents[2] / "docs" / "reports.md").read_text()
EXAMPLE = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[0]


@pytest.mark.parametrize(
    "model",
    [ReportSpec, TableSpec, Column, Measure, Dimension, Sort, Claim, Original, ChartSpec],
)
def test_the_documentation_names_every_field(model: type[BaseModel]) -> None:
    assert [name for name in model.model_fields if not re.search(rf"\b{name}\b", PAGE)] == []


def test_the_example_is_a_valid_report() -> None:
    assert len(parse(EXAMPLE).tables) == 2


def test_the_documentation_names_every_dimension_and_cell_keyword() -> None:
    assert [name for name in OWN_DIMENSIONS if f"`{name}`" not in PAGE] == []
    words = [word for word in WORDS.values() if word not in ("–", "several cases")]
    assert [word for word in words if word not in PAGE] == []
    assert PUBLISHED in PAGE
