"""The benchmark of pages: what its looks come to, and what it says where something is missing."""

import pytest

from perf.harness.report import judge_requirements
from perf.pages import summary
from perf.pages.lighthouse import MissingError, find_programs


def _build_audit(name, performance, **changes):
    audit = {
        "name": name, "form": "mobile", "performance": performance, "accessibility": 100,
        "best_practices": 100, "shift": 0.0, "blocked_ms": 20.0, "first_ms": 900.0,
        "largest_ms": 1200.0, "bytes": 40_000, "failed": [],
    }  # fmt: skip
    return {**audit, **changes}


def _answer(audits):
    measured = summary.get_measured(summary.compute_medians(audits))
    return judge_requirements("pages", measured, summary.build_requirements(measured))


def test_the_worst_screen_counts_with_the_median_of_its_measurements():
    audits = [
        _build_audit("runs", 99),
        _build_audit("compare", 80),
        _build_audit("compare", 96),
        _build_audit("compare", 97),
    ]
    answer = _answer(audits)
    assert answer["measured"]["mobile_performance_worst"] == 96
    assert answer["met"]


@pytest.mark.parametrize(
    "worse", [{"accessibility": 94}, {"shift": 0.02}, {"bytes": 150_000}, {"best_practices": 90}]
)
def test_one_screen_below_its_target_fails(worse):
    assert not _answer([_build_audit("runs", 99), _build_audit("compare", 99, **worse)])["met"]


def test_addresses_whose_audits_miss_a_target_are_listed():
    addresses = [{"name": name, "form": "mobile"} for name in ("runs", "queue", "users")]
    audits = [
        _build_audit("runs", 80),
        _build_audit("queue", 99),
        _build_audit("users", 99, shift=0.001),
    ]
    assert summary.list_missed(addresses, audits) == [addresses[0], addresses[2]]


def test_a_missing_program_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PITWALL_TEST_CHROMIUM", "/somewhere/chromium")
    with pytest.raises(MissingError, match="needs node and npm: install node"):
        find_programs()
