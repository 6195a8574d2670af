"""Retired identifiers do not come back: names that the glossary replaced by a common term."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

CHECKOUT = Path(__file__).parents[2]
PACKAGES = ("orchestrator", "agents", "cli", "devstack", "perf")

#: Retired name → its replacement. A name is compared as a whole, in lower case and without
#: underscores at its ends, as the name of a module, class, function, attribute or API field.
RETIRED = {
    # Claims and polls
    "turn_until": "claimed_until",
    "claim_until": "claimed_until",
    "turn_s": "CLAIM_S",
    "turnlost": "JobClaimLost",
    "take_turn": "claim_job",
    "give_back": "release_claim",
    "look_at": "poll_at or next_at",
    "looked_at": "polled_at or analysed_at",
    # Interim analyses and the status of cases
    "take_looks": "analyse_cases",
    "note_looks": "store_analyses",
    "newest_looks": "latest_analyses",
    "look_is_due": "analysis_is_due",
    "look_after": "analysis_after",
    "next_look": "next_analysis",
    "casestanding": "CaseStatus",
    "casestandingout": "CaseStatusOut",
    "standings_of": "load_case_statuses",
    "seencase": "CaseComparisons",
    "seen_case": "compare_case",
    # Changes
    "serieslook": "SeriesDetection",
    "series_looks": "series_detections",
    "duel": "confirmation run",
    "duels": "confirmation_runs",
    "duel_change": "confirmed_change",
    "duel_low": "confirmed_low",
    "duel_high": "confirmed_high",
    "duel_interval": "confirmed_interval",
    "read_duel": "read_confirmation_run",
    "searchout": "BisectionOut",
    "has_it": "is_bad",
    "mended_by": "fixed_by",
    "mend_of": "fix_of",
    # Runs
    "cautions_of": "find_warnings",
    "waiting_of": "load_queued",
    "finish_of": "estimate_finish",
    "until_of": "parse_until",
    "queued_s_of": "sum_queued_seconds",
    "run_state_of": "derive_run_state",
    "lacking_of": "find_unsupported",
    "remedies_of": "find_remedies",
    # Hosts of a job
    "crew": "JobHosts",
    "site": "HostSession",
    "settle_run": "sync_run_state",
    # States, columns and fields
    "incomingout": "ReceivedWebhookOut",
    "asked_by": "requested_by",
    "asked_on_forge": "forge_request",
    "limitsout": "QuotasOut",
    "set_limits_of_team": "set_quotas",
    "locked_limits": "lock_quotas",
    "reach_unit": "HALF_WIDTH_UNIT",
    "shape_of": "hash_configuration",
    # Processes
    "note_heard": "record_heartbeat",
    "heard": "heartbeats",
    "oneofmany": "LeaderScheduler",
    "pulse": "HeartbeatThread",
    # Exclusions
    "left_out": "excluded",
    "invalid_left_out": "invalid_excluded",
    "metrics_left_out": "metrics_dropped",
    # Histories
    "historymarkout": "BreakAtOut",
    "writtenout": "PointAnnotationOut",
    "writtenatout": "AnnotationAtOut",
    "annotationmark": "PlacedAnnotation",
    "changemark": "ChangeSummary",
    "charted": "SeriesHeader",
    "shiftchart": "Drawing",
    "load_shift_chart": "draw_change",
    "gridseries": "NewestPoints",
    "gridpoint": "CommitValue",
    "load_grid_series": "load_overview_points",
    # Deletions
    "holding": "DependentCount",
    "holdings": "dependents",
    "list_holdings": "list_team_dependents",
    # Results
    "committold": "CommitMetadata",
    "surroundings": "TrialEnvironment",
    "trials_settled": "trials_finished",
    "sealed_anew": "resealed",
    "asked_to_park": "parking_requested",
    "spoken_protocol": "reports_protocol",
    "tells_errors": "reports_errors",
    # Programs
    "sshd_program": "find_program",
}
#: Words that are neither a verb with an object nor a noun: they name no function and no class.
NO_NAMES = {
    "anew", "asked", "at", "found", "given", "gone", "heard", "here", "in", "kept", "known", "of",
    "ours", "said", "say", "says", "seen", "shown", "tell", "tells", "told", "wanted",
}  # fmt: skip
NO_VARIABLES = frozenset({"told", "asked", "said"})
NO_ENDINGS = ("_of", "_told", "_found", "_asked")
#: Names of modules that were retired; they may be words of other code.
RETIRED_MODULES = {
    "orchestrator/runs": {
        "turns", "standings", "settling", "waits", "waiting", "again", "cautions", "marks",
        "planned", "ending",
    },
    "orchestrator/dispatch": {
        "crew", "looks", "seen_cases", "mending", "answers", "questions", "support", "waking",
        "guarded", "scheduled",
    },
    "orchestrator/core": {"kept", "handed_out", "foreign", "holdings"},
    "orchestrator/fleet": {"care", "ways", "room", "warmth"},
    "orchestrator/operations": {"heard", "pulse", "beats", "alive", "busy", "figures"},
    "orchestrator/alerts": {"noting", "raising", "notifying", "delivering", "mending"},
    "orchestrator/forges": {"telling", "following", "receiving"},
    "orchestrator/stats": {"courses", "levels", "looks", "search", "shifts", "spikes"},
    "orchestrator/api": {"waiting"},
    "orchestrator/benchmarks": {"told", "words"},
    "orchestrator/histories": {"charted", "columns", "compact", "point"},
    "orchestrator/loadtools": {"quiet"},
    "orchestrator/reports": {"behind"},
    "cli/pitwall": {"words"},
}  # fmt: skip
#: Fields of the API that are common words elsewhere.
RETIRED_FIELDS = {
    "searches", "has_it", "reach", "shape", "n", "standings", "incoming", "mended_by", "marks",
    "of", "settled", "what", "why",
}  # fmt: skip
RETIRED_ROUTES = re.compile(r"/(again|way|keep|limits|incoming|care|forget)$")
#: Names of pages that were retired.
RETIRED_PAGES = {
    "host-care", "host-golden-forget", "host-pin", "host-way", "project-clone-again",
    "project-access-host-key-keep", "run-keep", "settings-limits",
}  # fmt: skip
#: `file: name` of code of the benchmarks that is moved and renamed together with them.
ELSEWHERE = re.compile(r"^perf/")


def _names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The line and the name of each definition, parameter and assigned name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id if isinstance(node, ast.Name) else node.attr


def retired(tree: ast.AST) -> list[str]:
    """`line: name → replacement` of each retired name that the code defines."""
    return [
        f"{line}: {name} → {RETIRED[known]}"
        for line, name in _names(tree)
        if (known := name.strip("_").lower()) in RETIRED
    ]


def no_nouns_or_verbs(tree: ast.AST) -> list[str]:
    """`line: name` of each definition that is named by a participle or a preposition."""
    return [
        f"{node.lineno}: {name}"
        for node in ast.walk(tree)
        if (name := _find_no_name(node)) is not None
    ]


def _find_no_name(node: ast.AST) -> str | None:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        is_test = node.name.startswith("test_")
        is_no_verb = (
            not isinstance(node, ast.ClassDef) and not is_test and node.name.endswith(NO_ENDINGS)
        )
        return node.name if is_no_verb or node.name.strip("_").lower() in NO_NAMES else None
    if isinstance(node, ast.arg):
        return node.arg if node.arg in NO_VARIABLES else None
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id if node.id in NO_VARIABLES else None
    return None


class Faults(NamedTuple):
    retired: list[str]
    no_names: list[str]


@pytest.fixture(scope="module")
def faults() -> Faults:
    """What is wrong with the names of all files. Each file is parsed once, which takes seconds."""
    every = Faults([], [])
    for package in (*PACKAGES, "tests"):
        for path in sorted((CHECKOUT / package).rglob("*.py")):
            name = str(path.relative_to(CHECKOUT))
            if "/suites/" in name:
                continue
            tree = ast.parse(path.read_text())
            every.no_names.extend(f"{name}:{fault}" for fault in no_nouns_or_verbs(tree))
            if package != "tests" and not ELSEWHERE.match(name):
                every.retired.extend(f"{name}:{fault}" for fault in retired(tree))
    return every


def test_no_code_defines_a_retired_name(faults: Faults):
    assert faults.retired == []


def test_no_name_is_a_participle_or_a_preposition(faults: Faults):
    assert faults.no_names == []


@pytest.mark.parametrize(
    "text",
    [
        "def _told(): ...",
        "def load_of(x): ...",
        "class Found: ...",
        "def load(asked): ...",
        "for said in (): ...",
    ],
)
def test_a_participle_or_a_preposition_is_detected(text):
    assert len(no_nouns_or_verbs(ast.parse(text))) == 1


def test_no_page_has_a_retired_name():
    rows = (CHECKOUT / "docs" / "permissions.md").read_text()
    assert {name for name in RETIRED_PAGES if f"| `{name}` |" in rows} == set()


def test_no_module_has_a_retired_name():
    paths = [
        f"{folder}/{module}.py"
        for folder, modules in RETIRED_MODULES.items()
        for module in sorted(modules)
        if (CHECKOUT / folder / f"{module}.py").exists()
    ]
    assert paths == []


def test_no_two_modules_of_a_package_differ_only_by_a_plural():
    pairs = []
    for package in PACKAGES:
        modules = {
            str(path.relative_to(CHECKOUT).with_suffix("").as_posix().removesuffix("/__init__"))
            for path in (CHECKOUT / package).rglob("*.py")
        }
        pairs += sorted(name for name in modules if f"{name}s" in modules)
    assert pairs == []


def test_the_api_has_no_retired_field_or_route():
    schema = json.loads((CHECKOUT / "docs" / "api" / "openapi.json").read_text())
    fields = {
        (name, field)
        for name, model in schema["components"]["schemas"].items()
        for field in model.get("properties", {})
    }
    assert {each for each in fields if each[1] in RETIRED_FIELDS | RETIRED.keys()} == set()
    assert [path for path in schema["paths"] if RETIRED_ROUTES.search(path)] == []


@pytest.mark.parametrize(
    "text",
    [
        "def take_turn(): ...",
        "class Crew: ...",
        "def load(look_at): ...",
        "class Job:\n    turn_until = 1",
        "self._duel = 1",
        "for _site in (): ...",
    ],
)
def test_a_retired_name_is_detected(text):
    assert len(retired(ast.parse(text))) == 1


def test_a_common_word_that_is_only_read_is_accepted():
    assert retired(ast.parse("print(settings.site, look.at)")) == []
