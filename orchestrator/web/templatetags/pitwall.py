"""Template filters for numbers, times, states and verdicts."""

import shlex
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from cli.pitwall import units
from cli.pitwall.terminal import clean_text
from orchestrator.alerts.models import EventKind
from orchestrator.comparisons.formats import SYMBOLS
from orchestrator.fleet.fact_texts import format_fact_value
from orchestrator.forges.forge_links import ForgeLinks
from orchestrator.loadtools.metrics import describe_latency_model
from orchestrator.measurements.validity_issues import get_issue_title, parse_code
from orchestrator.results.models import ChangeState
from orchestrator.runs.schedules import describe_times
from orchestrator.runs.states import describe_run_state
from orchestrator.web import markdown
from orchestrator.web.forms import build_benchmark_key
from orchestrator.web.reasons import build_reason_views
from orchestrator.web.runs import placements
from orchestrator.web.sentences import build_sentence, join_sentences

register = template.Library()

#: A symbol for each word, so that colour is never the only sign.
VERDICT_SYMBOLS = SYMBOLS
STATE_SYMBOLS = {
    "queued": "○",
    "planned": "○",
    "preparing": "◔",
    "running": "◑",
    "measuring": "◑",
    "finished": "●",
    "no_data": "!",
    "measured": "●",
    "ready": "●",
    "valid": "✓",
    "suspect": "!",
    "invalid": "✕",
    "failed": "✕",
    "unreachable": "✕",
    "cancelled": "–",
    "skipped": "–",
    "unusable": "!",
    "not needed": "✓",
    "decided": "✓",
    "stopped early": "–",
    "undecided": "?",
    "unsupported": "⊘",
    "retired": "–",
    "external": "⇠",
    "unconfirmed": "!",
    "maintenance": "‖",
    "quarantined": "!",
    "open": "●",
    "learning": "◔",
    "steady": "✓",
    "slow drift": "!",
    "unusual": "?",
    "drifted": "✕",
    "free": "●",
    "busy": "◑",
    "closed": "–",
    "under way": "◔",
    "cut short": "–",
    "building": "◑",
    "done": "●",
    "passed": "✓",
    "warning": "!",
    "action_required": "?",
    "missed": "✕",
}
#: The text of a state, if it is not its name.
STATE_TITLES = {"no_data": "no usable data", "action_required": "action required"}
_AGES = ((60, "s"), (60, "min"), (24, "h"), (30, "d"))

register.filter("change", units.format_change)
register.filter("interval", units.format_interval)
register.filter("share", units.format_percent)
register.filter("p_value", units.format_p_value)
register.filter("duration", units.format_duration)
register.filter("size", units.format_bytes)
register.filter("quantity", units.format_value)
register.filter("markdown", markdown.as_html)
register.filter("markdown_section", markdown.as_section)
register.filter("place_names", placements.place_names)
register.filter("target_of", placements.describe_target)
register.filter("placement", placements.format_placement)
register.filter("schedule_places", placements.describe_schedule_hosts)
register.filter("reasons", build_reason_views)
register.filter("benchmark_key", build_benchmark_key)
register.filter("times_in_words", describe_times)
register.filter("run_clause", describe_run_state)
register.filter("terminal", clean_text)
register.filter("sentence", build_sentence)
register.filter("sentences", join_sentences)


@register.filter
def quantities(pair: tuple[float, float] | None, unit: str) -> str:
    """Return a confidence interval of a value with its unit."""
    if pair is None:
        return "–"
    return f"{units.format_value(pair[0], unit)} to {units.format_value(pair[1], unit)}"


@register.filter
def ago(instant: datetime | None) -> SafeString | str:
    """Return the time since an instant, with the exact instant as its title."""
    if instant is None:
        return "–"
    seconds = (timezone.now() - instant).total_seconds()
    text = f"in {_format_age(-seconds)}" if seconds < -1 else f"{_format_age(seconds)} ago"
    return format_html(
        '<time datetime="{}" title="{} UTC">{}</time>',
        instant.isoformat(timespec="seconds"),
        instant.strftime("%Y-%m-%d %H:%M:%S"),
        "just now" if 0 <= seconds < 2 else text,
    )


@register.filter
def clock(instant: datetime) -> str:
    """Return a future time of day, UTC; with the date if it is not today."""
    today = instant.date() == timezone.now().date()
    return instant.strftime("%H:%M" if today else "%a %d %b %H:%M")


@register.filter
def stamp(instant: datetime | None) -> SafeString | str:
    """Return an exact instant, to the millisecond, UTC."""
    if instant is None:
        return "–"
    text = instant.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    return format_html('<time datetime="{}">{} UTC</time>', instant.isoformat(), text)


@register.filter
def epoch(instant: datetime | None) -> str:
    return "" if instant is None else f"{instant.timestamp():.1f}"


@register.filter
def short(sha: str | None) -> str:
    """Return the first ten digits of a commit's hash."""
    return (sha or "–")[:10]


@register.filter
def commit_url(links: ForgeLinks | None, sha: str) -> str:
    """Return the page of a commit on its forge; empty without a forge."""
    return links.build_commit_url(sha) if links else ""


@register.filter
def facts(value: dict[str, Any]) -> list[tuple[str, str]]:
    """Return nested facts as rows: ("memory › total", "…")."""
    return [(" › ".join(path), shown) for path, shown in _flatten(value, ())]


@register.filter
def temperature(celsius: float) -> str:
    return format_fact_value("temperature", celsius)


@register.filter
def command(argv: list[str]) -> str:
    """Return an argument list as a command line, quoted where a shell needs it."""
    return shlex.join(str(word) for word in argv)


@register.filter
def last_lines(text: str, count: int) -> str:
    return "\n".join(text.rstrip("\n").split("\n")[-count:])


@register.filter
def change_state(state: str) -> str:
    """Return the state of a change point in words: `open` is "not confirmed"."""
    return str(ChangeState(state).label).lower()


@register.filter
def words(code: str) -> str:
    """Return a code such as `server_died` in words."""
    return str(code).replace("_", " ")


@register.filter
def reason_titles(reasons: list[str]) -> str:
    """Return short titles of reasons: "CPU of other processes; Little's law"."""
    return "; ".join(get_issue_title(parse_code(each)) for each in reasons or ())


@register.filter
def issue_titles(issues: Iterable[Any]) -> str:
    """Return validity issues with their numbers of trials: "CPU of other processes (3), …"."""
    return ", ".join(f"{issue.title} ({issue.trials})" for issue in issues)


@register.filter
def event_names(kinds: Iterable[str]) -> str:
    """Return the events of a channel: "A run has ended, an alert is raised"."""
    return ", ".join(str(EventKind(each).label) for each in kinds).capitalize()


@register.filter
def unbroken(text: str) -> str:
    """Keep each number and its percent sign on one line."""
    return text.replace(" %", "\u00a0%")


@register.filter
def before_colon(text: str) -> str:
    return text.partition(":")[0]


@register.filter
def is_latency(key: str) -> bool:
    """Return whether the kind of loop (closed, open) is shown with this metric."""
    return describe_latency_model(key, "closed") is not None


@register.inclusion_tag("components/_verdict.html")
def verdict(name: str) -> dict[str, str]:
    return {"name": str(name), "symbol": VERDICT_SYMBOLS.get(str(name), "!")}


@register.inclusion_tag("components/_state.html")
def state(name: str, title: str = "") -> dict[str, str]:
    name = str(name)
    title = title or STATE_TITLES.get(name, name)
    return {"name": name, "title": title, "symbol": STATE_SYMBOLS.get(name, "○")}


def _format_age(seconds: float) -> str:
    amount = max(0.0, seconds)
    for size, unit in _AGES:
        if amount < size:
            return f"{int(amount)} {unit}"
        amount /= size
    months = int(amount)
    return f"{months} month{'' if months == 1 else 's'}" if months < 24 else f"{months // 12} years"


def _flatten(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _flatten(inner, (*path, words(key)))
    elif isinstance(value, list) and not any(isinstance(item, dict | list) for item in value):
        yield path, ", ".join(str(item) for item in value) or "–"
    else:
        yield path, "unknown" if value is None else str(value)
