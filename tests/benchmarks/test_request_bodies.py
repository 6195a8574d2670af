"""A body is written out, or made by its size."""

import pytest

from orchestrator.benchmarks.load_specs import build_load_specs
from orchestrator.benchmarks.matrix import expand
from orchestrator.benchmarks.spec import parse
from tests.support.factories import DEFINITION


def bodies(load: str, matrix: str = "") -> list[str | None]:
    source = DEFINITION.replace("duration_s: 0.6", f"duration_s: 0.6\n  {load}")
    spec = parse(source.replace("connections: [4]", f"connections: [4]{matrix}"))
    return [build_load_specs(spec, case.parameters)[0].body for case in expand(spec)]


def test_a_request_body_is_sent_as_written() -> None:
    assert bodies('body: "{connections} ones"') == ["4 ones"]


@pytest.mark.parametrize("size", [1, 26, 65536])
def test_a_request_body_is_generated_by_size(size: int) -> None:
    (body,) = bodies(f"body_bytes: {size}")
    assert body is not None
    assert len(body.encode()) == size
    assert body.startswith("a")


def test_the_size_of_a_request_body_may_be_an_axis() -> None:
    sizes = [len(body or "") for body in bodies('body_bytes: "{size}"', "\n  size: [10, 3000]")]
    assert sizes == [10, 3000]


def test_a_definition_without_a_request_body_keeps_its_digest() -> None:
    assert "body_bytes" not in parse(DEFINITION).model_dump()["load"]
