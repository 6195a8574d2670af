"""Cases chosen by an expression, or made fewer so that each pair of values still occurs."""

from itertools import combinations
from textwrap import dedent

import pytest

from orchestrator.benchmarks.choice import MAX_LENGTH, choose
from orchestrator.benchmarks.matrix import CaseSpec, expand, select_pairwise
from orchestrator.benchmarks.spec import parse
from orchestrator.core.errors import InvalidRequestError

SPEC = parse(
    dedent(
        """\
        version: 1
        title: Systems
        subject: {start: [server, "{port}"]}
        load: {path: /, connections: "{connections}", duration_s: 1}
        matrix:
          system: [axum, flask, old]
          protocol: [h1, h3]
          connections: [1, 10, 100]
          keep: [true, false]
        options:
          system:
            axum: {labels: {language: rust}}
            flask: {labels: {language: python, server: gunicorn}}
        """
    )
)
CASES = expand(SPEC)


def chosen(expression: str) -> list[CaseSpec]:
    return choose(SPEC, CASES, expression)


CHOICES = {
    'protocol == "h3"': 18,
    'protocol == "h3" and system in ("axum", "flask")': 12,
    "connections >= 10": 24,
    "1 < connections <= 10": 12,
    'not system == "flask" and connections == 1': 8,
    'language == "rust" or server == "gunicorn"': 24,
    'language == ""': 12,
    'system not in ["axum"] and keep == true': 12,
    "(connections == 1 or connections == 100) and keep == false": 12,
    "  ": 36,
    "connections > -1": 36,
}


@pytest.mark.parametrize(("expression", "count"), CHOICES.items())
def test_an_expression_selects_the_matching_cases(expression: str, count: int) -> None:
    cases = chosen(expression)
    assert len(cases) == count
    assert cases == [case for case in CASES if case in cases]


WRONG = {
    'protocol == "h4"': "no case",
    'protokoll == "h3"': "no axis or label protokoll (known: connections, keep, language",
    "protocol == h3": "no axis or label h3",
    "protocol": "compare it with a value",
    "protocol = 1": "cannot be parsed at character",
    "1 +": "cannot be parsed",
    "connections < 'a'": "cannot be compared",
    "connections is 1": "== rather than is",
    "__import__('os').system('true')": "is not a comparison",
    "[c for c in connections] == []": "is not a comparison",
    "connections.real == 1": "is not a comparison",
    "(lambda: True)()": "is not a comparison",
    "system == 'x' * 10**9": "is not a comparison",
    "(" * 500 + ")" * 500: "cannot be parsed",
    "connections == " + "1" * MAX_LENGTH: "at most",
}


@pytest.mark.parametrize("expression", WRONG)
def test_an_invalid_expression_is_refused(expression: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        chosen(expression)
    assert caught.value.field == "cases"
    assert WRONG[expression] in str(caught.value)


def pairs(cases: list[CaseSpec]) -> set[tuple[object, ...]]:
    return {pair for case in cases for pair in combinations(case.parameters.items(), 2)}


def test_pairwise_keeps_every_pair_with_fewer_cases() -> None:
    fewer = select_pairwise(CASES)
    assert pairs(fewer) == pairs(CASES)
    assert 9 <= len(fewer) <= 12
    assert fewer == [case for case in CASES if case in fewer]


def test_pairwise_of_one_axis_keeps_every_value() -> None:
    one = [CaseSpec(key=str(n), parameters={"n": n}, label="") for n in range(3)]
    assert select_pairwise(one) == one


def test_pairwise_of_a_single_case_keeps_it() -> None:
    alone = [CaseSpec(key="k", parameters={}, label="default")]
    assert select_pairwise(alone) == alone
