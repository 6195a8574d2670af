"""Which commits of a long history stay when old ones are thinned out."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.retention.thinning import Place, spare


def line(count: int) -> list[Place]:
    return [Place(commit=100 + n, position=n) for n in range(count)]


def left(places: Sequence[Place], gone: Sequence[int]) -> list[int]:
    return [each.commit - 100 for each in places if each.commit not in gone]


OLD = range(100, 200)


def test_every_nth_place_stays_with_both_ends() -> None:
    places = line(12)
    assert left(places, spare(places, every=5, old=OLD)) == [0, 5, 10, 11]


def test_it_is_the_place_in_the_branch_that_counts_not_among_the_measured() -> None:
    places = [each for each in line(30) if each.position in (1, 4, 6, 9, 10, 14, 20, 27)]
    assert left(places, spare(places, every=10, old=OLD)) == [1, 10, 20, 27]


def test_what_is_new_or_kept_or_a_merge_or_of_another_branch_stays() -> None:
    places = line(10)
    places[4] = Place(commit=104, position=4, parents=2)
    places[6] = Place(commit=106, position=None)
    gone = spare(places, every=100, old=range(100, 108), kept={102})
    assert left(places, gone) == [0, 2, 4, 6, 8, 9]


def test_two_commits_stay_on_each_side_of_a_change() -> None:
    places = line(12)
    gone = spare(places, every=100, old=OLD, changes={106})
    assert left(places, gone) == [0, 4, 5, 6, 7, 11]


def test_nothing_goes_of_nothing() -> None:
    assert spare([], every=2, old=OLD) == ()


@given(
    st.lists(st.integers(0, 60), unique=True),
    st.integers(2, 12),
    st.sets(st.integers(100, 160)),
    st.sets(st.integers(100, 160)),
)
def test_asked_again_it_finds_no_more(
    positions: list[int], every: int, kept: set[int], changes: set[int]
) -> None:
    places = [Place(commit=100 + n, position=n) for n in sorted(positions)]
    gone = spare(places, every=every, old=OLD, kept=kept, changes=changes)
    rest = [each for each in places if each.commit not in gone]
    again = spare(rest, every=every, old=OLD, kept=kept, changes=changes & {p.commit for p in rest})
    assert again == ()
