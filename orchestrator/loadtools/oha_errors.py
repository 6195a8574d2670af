"""Maps oha's error texts to classes. The texts come from Rust libraries and depend on versions."""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping

#: Cut off by the end of the load, which is not an error.
TRUNCATED = "truncated"
_MAX_TEXTS = 20
_MAX_TEXT_LENGTH = 300

#: In order: the first match decides.
_CLASSES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern, re.IGNORECASE))
    for name, pattern in (
        (TRUNCATED, r"aborted due to deadline"),
        ("timeout", r"timeout\Z|timed out"),
        ("refused", r"Connection refused"),
        ("client_fd_limit", r"Too many open files"),
        ("tls", r"invalid peer certificate|received corrupt message|handshake failed"),
        ("quic", r"QUIC connection:"),
        ("h2_protocol", r"http2 error"),
        ("dns", r"No records?\b|DNS|failed to lookup"),
        (
            "broken",
            r"connection error|connection closed before message completed|"
            r"error reading a body from connection|Connection reset|Broken pipe",
        ),
    )
)


def classify_error(text: str) -> str:
    """Return the class of one of oha's error texts; `other` for an unknown text."""
    return next((name for name, pattern in _CLASSES if pattern.search(text)), "other")


def classify(
    distribution: Mapping[str, int],
) -> tuple[dict[str, int], int, dict[str, tuple[str, ...]]]:
    """Return (errors by class, requests cut off by the end of the load, texts by class)."""
    counts: Counter[str] = Counter()
    texts: defaultdict[str, list[str]] = defaultdict(list)
    for text, count in distribution.items():
        name = classify_error(text)
        counts[name] += count
        if name != TRUNCATED and len(texts[name]) < _MAX_TEXTS:
            texts[name].append(text[:_MAX_TEXT_LENGTH])
    truncated = counts.pop(TRUNCATED, 0)
    return dict(counts), truncated, {name: tuple(examples) for name, examples in texts.items()}
