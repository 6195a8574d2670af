"""What counts as a fault; `tests/web/test_visitor_privacy.py` has a short form of it."""

from tests.fuzz.visitors import VisitorTally


def test_the_visitor_fuzzer_detects_planted_errors() -> None:
    seen = VisitorTally(unmeasured=("abcdef1234",))
    wrong = [
        list(seen._wrong(500, "", 0, "/")),
        list(seen._wrong(200, "the host membersonly.example", 0, "/")),
        list(seen._wrong(404, "measured at main (abcdef1234)", 0, "/")),
        list(seen._wrong(200, "", 11, "/")),
        list(seen._wrong(404, "no commit abcdef1234", 0, "/?commit=abcdef1234")),
    ]
    assert [len(each) for each in wrong] == [1, 1, 1, 1, 0]
