"""What a browser complains of while a test looks at pages."""

from playwright.sync_api import ConsoleMessage, Page

#: Tests that run at the same time make networks on this machine, and take them away: Chromium then
#: drops what it was loading. That says nothing of the page.
_OF_THE_MACHINE = "net::ERR_NETWORK_CHANGED"
#: htmx repeats what Chromium reports with its reason, which may be the one above.
_OF_HTMX = "htmx:error: Failed to fetch"


def concerns_page(line: ConsoleMessage) -> bool:
    return _OF_THE_MACHINE not in line.text and _OF_HTMX not in line.text


def complaints(page: Page) -> list[str]:
    """Errors of scripts and of the console, as they come."""
    messages: list[str] = []
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("console", lambda line: _hear(line, messages))
    return messages


def _hear(line: ConsoleMessage, found: list[str]) -> None:
    if line.type == "error" and concerns_page(line):
        found.append(line.text)
