"""Pictures of every screen for people to look at."""

from pathlib import Path

from playwright.sync_api import Page

SIZE = {"width": 1200, "height": 900}
PHONE = {"width": 390, "height": 844}
MOST_TALL = 12_000


def wait_until_drawn(page: Page) -> None:
    """Waits for all charts of the page."""
    page.wait_for_function(
        "() => [...document.querySelectorAll('canvas[data-chart]')]"
        ".every((canvas) => canvas.dataset.drawn === 'true')"
    )


def picture_screen(page: Page, name: str, folder: Path) -> None:
    """What the page shows now, as NAME-wide-light.png and so on; wide first."""
    folder.mkdir(parents=True, exist_ok=True)
    for width, size in (("wide", SIZE), ("phone", PHONE)):
        for look in ("light", "dark"):
            page.set_viewport_size(size)  # type: ignore[arg-type]
            page.emulate_media(color_scheme=look, reduced_motion="reduce")  # type: ignore[arg-type]
            # Chart.js paints in the next frame.
            page.wait_for_timeout(150)
            # No browser draws a page of any length at once, and nobody looks at the rest.
            tall = min(MOST_TALL, page.evaluate("document.documentElement.scrollHeight"))
            page.screenshot(
                path=folder / f"{name}-{width}-{look}.png",
                full_page=True,
                clip={"x": 0, "y": 0, "width": size["width"], "height": tall},
            )
