"""Files and prepare steps of a definition: what they mean, and what is refused."""

from itertools import pairwise

import pytest

from orchestrator.benchmarks.definition_files import MAX_FILE_BYTES, MAX_FILES
from orchestrator.benchmarks.load_specs import (
    check_loads,
    estimate_prepare_s,
    estimate_trial_s,
)
from orchestrator.benchmarks.matrix import expand, resolve, select_measured_part
from orchestrator.benchmarks.review import Fault, review
from orchestrator.benchmarks.spec import from_data, parse
from orchestrator.core.errors import InvalidRequestError
from orchestrator.core.ids import hash_value
from tests.support.factories import DEFINITION

SOURCE = DEFINITION + (
    """\
services:
  db: {start: [database, "{port}", "{files}/db.conf", "{job_data}"]}
files:
  db.conf: |
    cache = 1
  seed/items.json: "[1, 2]"
prepare:
  - run: [initdb, "{job_data}"]
    each: job
    after: build
  - run: ["{python}", seed.py, "{db_addresses}", "{files}/seed/items.json"]
    env: {ROWS: "10"}
    timeout_s: 30
  - run: [curl, "http://{bind}:{port}/items"]
    each: commit
    after: server
    working_dir: tools
"""
)


def test_steps_and_files_are_parsed_and_stored() -> None:
    spec = parse(SOURCE)
    first, second, third = spec.prepare
    assert (first.each, first.after, first.timeout_s) == ("job", "build", 60)
    assert (second.each, second.after, second.timeout_s) == ("trial", "services", 30)
    assert (third.each, third.after, third.working_dir) == ("commit", "server", "tools")
    assert spec.files == {"db.conf": "cache = 1\n", "seed/items.json": "[1, 2]"}
    check_loads(spec)
    assert from_data(spec.model_dump(mode="json")) == spec


def test_a_changed_file_or_step_is_another_configuration() -> None:
    texts = [
        DEFINITION,
        SOURCE,
        SOURCE.replace("cache = 1", "cache = 2"),
        SOURCE.replace('ROWS: "10"', 'ROWS: "11"'),
        SOURCE.replace("each: commit", "each: trial"),
    ]
    specs = [parse(text) for text in texts]
    for before, after in pairwise(specs):
        cells = [
            hash_value(select_measured_part(one, {"connections": 4})) for one in (before, after)
        ]
        assert cells[0] != cells[1]
        assert hash_value(before.model_dump(mode="json")) != hash_value(
            after.model_dump(mode="json")
        )


WRONG = [
    ("  db.conf: |", "  ../db.conf: |", "files.../db.conf", 18, "a relative path without . and .."),
    ("  db.conf: |", "  /etc/db.conf: |", "files./etc/db.conf", 18, "a relative path"),
    ("  db.conf: |", '  "db conf": |', "files.db conf", 18, "a relative path"),
    ("  db.conf: |", "  a/./db.conf: |", "files.a/./db.conf", 18, "a relative path"),
    (
        "  db.conf: |",
        "  seed: |",
        "files",
        17,
        "cannot be a file and the folder of seed/items.json",
    ),
    ('"[1, 2]"', "[1, 2]", "files.seed/items.json", 20, "expected a valid string"),
    ('"[1, 2]"', '"\\0"', "", None, "NUL"),
    ("each: job", "each: round", "prepare[0].each", 23, "expected 'job', 'commit' or 'trial'"),
    ("after: build", "after: load", "prepare[0].after", 24, "'build', 'services' or 'server'"),
    ("timeout_s: 30", "timeout_s: 0", "prepare[1].timeout_s", 27, "greater than 0"),
    ("timeout_s: 30", "timeout_s: 3601", "prepare[1].timeout_s", 27, "less than or equal to 3600"),
    ("timeout_s: 30", "timeout: 30", "prepare[1].timeout", 27, "unknown field"),
    ("run: [initdb", "start: [initdb", "prepare[0].start", 22, "unknown field"),
    ("working_dir: tools", "working_dir: ../x", "prepare[2].working_dir", 31, "without . and .."),
    ("working_dir: tools", 'working_dir: "{x}"', "prepare[2].working_dir", 31, "is not an axis"),
    ("initdb, ", 'initdb, "{db_port}", ', "prepare[0].run[1]", 22, "not available yet"),
    ("seed.py, ", 'seed.py, "{port}", ', "prepare[1].run[2]", 25, "not available yet"),
    ("seed.py, ", 'seed.py, "{rows}", ', "prepare[1].run[2]", 25, "not available yet"),
    ("seed.py, ", 'seed.py, "{commit}", ', "prepare[1].run[2]", 25, "is neither an axis"),
    ('ROWS: "10"', 'ROWS: "{nothing}"', "prepare[1].env.ROWS", 26, "is neither an axis"),
    ("each: job", "each: trial", "services.db.start[3]", 16, "a step of prepare with each: job"),
    ("[4]", "[4]\n  files: [a]", "matrix.files", 13, "taken by the agent"),
]


@pytest.mark.parametrize(("old", "new", "path", "line", "words"), WRONG)
def test_what_is_impossible_is_refused_with_line_field_and_reason(
    old: str, new: str, path: str, line: int | None, words: str
) -> None:
    assert old in SOURCE
    fault = review(SOURCE.replace(old, new, 1))
    assert isinstance(fault, Fault)
    assert (fault.path, fault.line) == (path, line)
    assert words in fault.expectation


def test_all_faults_are_reported_at_once() -> None:
    source = SOURCE.replace("each: job", "each: round").replace("timeout_s: 30", "timeout_s: no")
    with pytest.raises(InvalidRequestError) as caught:
        parse(source)
    assert [path for path, _ in caught.value.faults] == ["prepare[0].each", "prepare[1].timeout_s"]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"a": "x" * (MAX_FILE_BYTES + 1)}, "a file has at most 64 KiB, this one has 65537 bytes"),
        ({str(n): "é" * (MAX_FILE_BYTES // 4) for n in range(5)}, "at most 128 KiB together"),
        ({str(n): "" for n in range(MAX_FILES + 1)}, "at most 16 items"),
        ({"x" * 101: ""}, "at most 100 letters"),
    ],
)
def test_the_size_and_number_of_files_are_limited(files: dict[str, str], words: str) -> None:
    data = parse(DEFINITION).model_dump(mode="json")
    with pytest.raises(InvalidRequestError, match="files") as caught:
        from_data({**data, "files": files})
    assert words in str(caught.value)


def test_placeholders_require_what_they_name() -> None:
    for word, field in (
        ("files", "requires the field files"),
        ("job_data", "requires a step of prepare with each: job"),
        ("commit_data", "requires a step of prepare with each: commit"),
    ):
        with pytest.raises(InvalidRequestError, match=field) as caught:
            parse(DEFINITION.replace('"server.py"', f'"{{{word}}}/server.py"'))
        assert caught.value.field == "subject.start[1]"
    parse(DEFINITION.replace('"server.py"', '"{trial_data}/server.py"'))


def test_a_step_that_installs_a_commit_for_the_whole_machine_is_refused() -> None:
    steps = "prepare: [{run: [pip, install, .]}]\n"
    with pytest.raises(InvalidRequestError, match="for the whole machine") as caught:
        check_loads(parse(DEFINITION + steps))
    assert caught.value.field == "prepare[0].run"


def test_time_limits_are_part_of_the_estimates() -> None:
    plain, spec = parse(DEFINITION), parse(SOURCE)
    (case,) = expand(spec)
    assert estimate_trial_s(spec, case.parameters) == pytest.approx(
        estimate_trial_s(plain, case.parameters) + 30
    )
    assert estimate_prepare_s(spec, [case], commits=3) == 60 + 3 * 60
    assert estimate_prepare_s(plain, [case], commits=3) == 0
    two = parse(SOURCE.replace("[4]", "[4, 8]"))
    assert estimate_prepare_s(two, expand(two), commits=1) == 120
    each = parse(SOURCE.replace("[4]", "[4, 8]").replace("initdb, ", 'initdb, "{connections}", '))
    assert estimate_prepare_s(each, expand(each), commits=1) == 180


def test_an_option_replaces_the_steps() -> None:
    options = 'options: {connections: {"4": {prepare: [{run: [other], timeout_s: 5}]}}}\n'
    spec = parse(SOURCE.replace('"{job_data}"]}', '"x"]}').replace("[4]", "[4, 8]") + options)
    one, other = (resolve(spec, case.parameters) for case in expand(spec))
    assert [step.run for step in one.prepare] == [["other"]]
    assert len(other.prepare) == 3
    wrong = options.replace("timeout_s: 5", "timeout_s: 0")
    fault = review(SOURCE.replace('"{job_data}"]}', '"x"]}') + wrong)
    assert isinstance(fault, Fault)
    assert fault.path == "options.connections.4.prepare[0].timeout_s"
