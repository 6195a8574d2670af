"""docs/definitions.md knows every field and every word of a definition, and its example is one."""

import re
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel

from orchestrator.benchmarks.auxiliary import Service, ServiceReady
from orchestrator.benchmarks.limits import Limits, RoleLimits
from orchestrator.benchmarks.load import Check, Grpc, Load, Search, Step
from orchestrator.benchmarks.load_specs import check_loads
from orchestrator.benchmarks.options import Option, merge_changes
from orchestrator.benchmarks.placeholders import AGENT_WORDS, SERVICE_WORDS
from orchestrator.benchmarks.prepare_steps import PrepareStep
from orchestrator.benchmarks.spec import Install, Ready, Spec, Subject, parse

PAGE = (Path(__file__).parents[2] / "docs" / "definitions.md").read_text()


@pytest.mark.parametrize(
    "model",
    [
        Spec,
        Subject,
        Install,
        Option,
        Ready,
        Service,
        ServiceReady,
        PrepareStep,
        Load,
        Step,
        Search,
        Grpc,
        Check,
        Limits,
        RoleLimits,
    ],
)
def test_the_documentation_names_every_field(model: type[BaseModel]) -> None:
    assert [name for name in model.model_fields if f"`{name}`" not in PAGE] == []


def test_the_documentation_names_every_placeholder() -> None:
    words = [*AGENT_WORDS, *(f"NAME_{word}" for word in SERVICE_WORDS)]
    assert [word for word in words if f"`{{{word}}}`" not in PAGE] == []


def test_the_examples_are_valid_definitions() -> None:
    """The first as it is; the others say what is added to it."""
    first, *more = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    check_loads(parse(first))
    assert len(more) == 6
    for example in more:
        whole = merge_changes(yaml.safe_load(first), yaml.safe_load(example))
        check_loads(parse(yaml.safe_dump(whole, sort_keys=False)))
