"""What is wrong with the screen that a browser shows now."""

import gzip
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from django.contrib.staticfiles import finders
from playwright.sync_api import Page, Response

AXE = Path(__file__).parent / "vendor" / "axe-core" / "axe.min.js"
#: The rules of axe that are off unless asked for, and belong to WCAG 2.2 AA.
RULES = {"target-size": {"enabled": True}}
#: What depends on the look.
OF_COLOURS = ("color-contrast", "link-in-text-block")
#: Many of a kind: those after the first dozen are made as those are.
MORE_OF_THE_SAME = [["tbody > tr:nth-child(n+13)"], ["main > section:nth-of-type(n+13)"]]
#: A first view: the page with its styles, scripts and images, as they travel.
MOST_BYTES = 150_000


def violations(page: Page, *, only: tuple[str, ...] = ()) -> list[str]:
    """What axe finds, a line an element; `only` of these rules."""
    if not page.evaluate("typeof window.axe === 'object'"):
        # Through the debugger: the page's own policy lets no foreign script in.
        page.evaluate(AXE.read_text())
    options: dict[str, object] = {"rules": RULES, "resultTypes": ["violations"]}
    if only:
        options["runOnly"] = {"type": "rule", "values": list(only)}
    results = page.evaluate(
        "([exclude, options]) => axe.run({ exclude }, options)", [MORE_OF_THE_SAME, options]
    )
    return [
        f"{rule['id']}: {node['html'][:160]} {' '.join(node['failureSummary'].split())[:240]}"
        for rule in results["violations"]
        for node in rule["nodes"]
    ]


def too_wide(page: Page) -> list[str]:
    """How far the page scrolls sideways, and the first elements that are the reason."""
    return page.evaluate(
        """() => {
            const wide = document.documentElement.scrollWidth - window.innerWidth;
            if (wide <= 0) return [];
            const inside = (node) => node.closest(".scroll, .pivot-scroll, pre, .history-chart");
            const out = [...document.querySelectorAll("main *, header *, footer *")].filter(
                (node) => node.getBoundingClientRect().right > window.innerWidth && !inside(node));
            const names = out.slice(0, 3).map((node) => node.outerHTML.slice(0, 120));
            return [`${wide} pixels too wide at ${window.innerWidth}: ${names.join(" | ")}`];
        }"""
    )


def not_for_paper(page: Page) -> list[str]:
    """What the page, as it is printed, has of what only helps on a screen, or cuts off."""
    return page.evaluate(
        """() => {
            const shown = (node) => node.getClientRects().length > 0;
            const moves = document.querySelectorAll("header nav, main nav, form, button");
            const cuts = [...document.querySelectorAll(".scroll, pre")].filter(
                (node) => getComputedStyle(node).overflowX !== "visible");
            return [...moves, ...cuts].filter(shown).map((node) => node.outerHTML.slice(0, 120));
        }"""
    )


def sum_bytes(responses: list[Response]) -> int:
    """What these weigh on the wire: pages as they came, static files as whitenoise has them."""
    return sum(_weight(response) for response in responses if response.status == 200)


def _weight(response: Response) -> int:
    path = urlsplit(response.url).path
    if path.startswith("/static/"):
        return _static_weight(path.removeprefix("/static/"))
    return response.request.sizes()["responseBodySize"]


@cache
def _static_weight(name: str) -> int:
    path = finders.find(name)
    content = Path(str(path)).read_bytes() if path else b""
    return min(len(content), len(gzip.compress(content)))
