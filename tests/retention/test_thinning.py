"""Which commits of a long history stay when old ones are thinned out."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.retention.thinning import Place, select_spare


def line(count: int) -> list[Place]:
    return [Place(commit=100 + n, position=n) for n in range(count)]


def left(places: Sequence[Place], gone: Sequence[int]) -> list[int]:
    return [each.commit - 100 for each in places if each.commit not in gone]


OLD = range(100, 200)


def test_every_nth_position_and_both_ends_are_kept() -> None:
    places = line(12)
    assert left(places, select_spare(places, every=5, old=OLD)) == [0, 5, 10, 11]


def test_the_position_in_the_branch_counts_and_not_among_measured_commits() -> None:
    places = [each for each in line(30) if each.position in (1, 4, 6, 9, 10, 14, 20, 27)]
    assert left(places, select_spare(places, every=10, old=OLD)) == [1, 10, 20, 27]


def test_new_retained_merge_and_other_branch_commits_are_kept() -> None:
    places = line(10)
    places[4] = Place(commit=104, position=4, parents=2)
    places[6] = Place(commit=106, position=None)
    gone = select_spare(places, every=100, old=range(100, 108), kept={102})
    assert left(places, gone) == [0, 2, 4, 6, 8, 9]


def test_two_commits_on_each_side_of_a_change_are_kept() -> None:
    places = line(12)
    gone = select_spare(places, every=100, old=OLD, changes={106})
    assert left(places, gone) == [0, 4, 5, 6, 7, 11]


def test_no_commits_need_no_thinning() -> None:
    assert select_spare([], every=2, old=OLD) == ()


@given(
    st.lists(st.integers(0, 60), unique=True),
    st.integers(2, 12),
    st.sets(st.integers(100, 160)),
    st.sets(st.integers(100, 160)),
)
def test_thinning_twice_removes_nothing_more(
    positions: list[int], every: int, kept: set[int], changes: set[int]
) -> None:
    places = [Place(commit=100 + n, position=n) for n in sorted(positions)]
    gone = select_spare(places, every=every, old=OLD, kept=kept, changes=changes)
    rest = [each for each in places if each.commit not in gone]
    again = select_spare(
        rest, every=every, old=OLD, kept=kept, changes=changes & {p.commit for p in rest}
    )
    assert again == ()
