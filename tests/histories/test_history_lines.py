"""The line of a history: which point of a commit it takes, where it breaks, what bridges it."""

from typing import Any

import numpy as np
import pytest

from orchestrator.histories.encoding import encode_significant, encode_steps, encode_whole
from orchestrator.histories.lines import Line, Points, build_line, join_points


def _points(*rows: dict[str, Any]) -> Points:
    """Rows of what differs from 5 trials of 100 in epoch 0 of configuration 7, a commit after the
    other."""

    def column(name: str, default: Any) -> np.ndarray:
        return np.array([row.get(name, default) for row in rows])

    place = np.array([row.get("position", index) for index, row in enumerate(rows)])
    value = column("value", 100.0)
    return Points(
        position=place,
        commit=place + 1000,
        at=column("at", 0) + np.arange(len(rows)),
        epoch=column("epoch", 0),
        configuration=column("configuration", 7),
        trials=column("trials", 5),
        suspect=column("suspect", 0),
        invalid=column("invalid", 0),
        run_count=column("run_count", 3),
        mean=value,
        mean_log=np.log(value),
        m2_log=np.full(len(rows), 1e-4),
    )


def _line(*rows: dict[str, Any]) -> Line:
    return build_line(_points(*rows))


def _marks(line: Line) -> list[tuple[int, bool, bool, float | None]]:
    return [(m.before, m.host, m.definition, m.bridge and round(m.bridge, 6)) for m in line.breaks]


def test_a_line_follows_positions_whatever_the_order_of_rows() -> None:
    line = _line({"position": 2}, {"position": 0}, {"position": 1})
    assert line.points.position.tolist() == [0, 1, 2]
    assert (line.breaks, len(line.others)) == ((), 0)


def test_points_of_one_second_are_chosen_whatever_the_order_of_rows() -> None:
    rows = [{"position": 0, "configuration": 3}, {"position": 0, "configuration": 9}]
    for first, second in (rows, rows[::-1]):
        # `at` is a row's own plus its index, so both are equal.
        line = _line({**first, "at": 1}, {**second, "at": 0})
        assert line.points.configuration.tolist() == [9]


def test_no_measurement_is_an_empty_line() -> None:
    line = _line()
    assert (len(line.points), len(line.others), line.breaks) == (0, 0, ())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"epoch": 0}, {"epoch": 1}),
        ({"epoch": 1, "configuration": 9, "at": 0}, {"epoch": 1, "configuration": 3, "at": 50}),
        # A newer epoch without a valid trial says nothing.
        ({"epoch": 3, "trials": 0, "invalid": 4}, {"epoch": 2}),
    ],
)
def test_the_newest_valid_point_of_a_commit_is_on_the_line(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    for rows in ((one, other), (other, one)):
        line = build_line(_points(*({"position": 0, "at": 0, **row} for row in rows)))
        chosen = {key: getattr(line.points, key)[0] for key in other if key != "at"}
        assert chosen == {key: value for key, value in other.items() if key != "at"}
        assert (len(line.points), line.owner.tolist()) == (1, [0])


def test_a_line_breaks_where_host_or_configuration_changed() -> None:
    line = _line(
        {}, {"epoch": 1}, {"epoch": 1}, {"epoch": 1, "configuration": 8}, {"configuration": 7}
    )
    assert _marks(line) == [
        (1, True, False, None),
        (3, False, True, None),
        (4, True, True, None),
    ]


def test_points_without_valid_trials_neither_break_nor_join_a_line() -> None:
    line = _line({}, {"trials": 0, "epoch": 2}, {}, {"trials": 0}, {"epoch": 1})
    assert _marks(line) == [(4, True, False, None)]
    assert line.breaks[0].after == 2


def test_a_commit_measured_often_on_both_sides_is_a_bridge() -> None:
    line = _line(
        {"position": 0},
        {"position": 1, "value": 100.0},
        {"position": 1, "value": 110.0, "epoch": 1},
        {"position": 2, "value": 110.0, "epoch": 1},
    )
    assert _marks(line) == [(1, True, False, 1.1)]
    assert line.owner.tolist() == [1]


def test_a_bridge_works_in_both_directions_at_any_position() -> None:
    line = _line(
        {"position": 0, "epoch": 1},
        {"position": 1, "epoch": 0},
        {"position": 2, "epoch": 0, "value": 100.0},
        {"position": 2, "epoch": 1, "value": 80.0},
    )
    assert _marks(line) == [(1, True, False, 1.25), (2, True, False, 0.8)]


@pytest.mark.parametrize("few", [{"trials": 4}, {"value": float("nan")}])
def test_too_few_trials_do_not_bridge(few: dict[str, Any]) -> None:
    line = _line({"position": 0}, {"position": 1, **few}, {"position": 1, "epoch": 1})
    assert _marks(line) == [(1, True, False, None)]


def test_segments_are_joined_in_order() -> None:
    both = join_points([_points({"position": 5}), _points({"position": 3})])
    assert both.position.tolist() == [5, 3]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([], "[]"),
        ([1234567.0, 0.000012345678], "[1.23457e+06,1.23457e-05]"),
        ([0.0, float("nan"), -2.5], "[0,null,-2.5]"),
    ],
)
def test_values_have_six_digits(values: list[float], text: str) -> None:
    assert encode_significant(np.array(values)) == text


@pytest.mark.parametrize(
    ("values", "encoded", "as_steps"),
    [
        ([], "[]", "[]"),
        ([5, 5], "5", "[5,0]"),
        ([5, 7, 4], "[5,7,4]", "[5,2,-3]"),
        ([3], "3", "[3]"),
    ],
)
def test_integers_are_encoded_in_short(values: list[int], encoded: str, as_steps: str) -> None:
    column = np.array(values, dtype=np.int64)
    assert encode_whole(column) == encoded
    assert encode_steps(column) == as_steps
