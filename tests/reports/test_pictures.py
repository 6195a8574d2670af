"""The first picture of a report moves to the start of a page."""

from orchestrator.reports.pictures import take_first_picture

TEXT = "## One\n\nText ![no](x.svg) in a line.\n\n![Rates](<a (1).svg>)\n\n| a |\n\n![p99](b.svg)\n"


def test_the_first_picture_is_taken() -> None:
    picture, rest = take_first_picture(TEXT)
    assert picture == "![Rates](<a (1).svg>)"
    assert rest == "## One\n\nText ![no](x.svg) in a line.\n\n| a |\n\n![p99](b.svg)\n"
    assert take_first_picture("## One\n") == ("", "## One\n")
