"""A line of the log is one JSON object with the ids of what was worked on."""

import json
import logging
import threading

import pytest

from orchestrator.core.logs import FORMATS, JsonFormatter, LineFormatter, logging_about
from orchestrator.dispatch import engine
from orchestrator.runs.leasing import lease_queued_jobs
from orchestrator.runs.models import Job
from tests.support.factories import make_definition, make_local_host, make_project, make_run


@pytest.fixture
def lines(monkeypatch):
    """What the root logger writes as JSON."""
    written: list[dict] = []

    class Keeping(logging.Handler):
        def emit(self, record):
            written.append(json.loads(self.format(record)))

    handler = Keeping()
    handler.setFormatter(JsonFormatter())
    logging.getLogger().addHandler(handler)
    yield written
    logging.getLogger().removeHandler(handler)


def test_a_log_record_has_the_ids_of_its_context_and_thread_only(lines):
    log = logging.getLogger("orchestrator.test")
    with logging_about(run="r1", job="j1"), logging_about(task="pump"):
        log.warning('a "quoted" line\nwith a break')
        other = threading.Thread(target=lambda: log.warning("elsewhere"))
        other.start()
        other.join()
    log.warning("after")
    inside, elsewhere, after = lines
    assert inside["message"] == 'a "quoted" line\nwith a break'
    assert [inside[name] for name in ("run", "job", "task")] == ["r1", "j1", "pump"]
    assert inside["at"].endswith("Z")
    assert "run" not in elsewhere
    assert "run" not in after


def test_a_log_record_keeps_its_fields_and_the_traceback(lines):
    try:
        raise ValueError("of the test")
    except ValueError:
        with logging_about(message="forged", level="forged"):
            logging.getLogger("orchestrator.test").exception("it broke")
    (line,) = lines
    assert (line["message"], line["level"]) == ("it broke", "ERROR")
    assert "ValueError: of the test" in line["trace"]


def test_the_engine_names_run_and_job(personas, tmp_path, lines, monkeypatch):
    project, shas = make_project(personas.alice, tmp_path / "origin", [{"a": "1"}, {"a": "2"}])
    make_definition(personas.alice, project)
    make_local_host(personas.alice)
    run = make_run(personas.alice, shas, rounds=1)
    (job_id,) = lease_queued_jobs()

    def broken(*_):
        raise RuntimeError("a mistake of ours")

    monkeypatch.setitem(engine._ACTIONS, engine.Action.PREPARE, broken)
    engine.advance(job_id)
    assert Job.objects.get().failures == 1
    about = [(line["run"], line["job"]) for line in lines if "a mistake" in line.get("trace", "")]
    assert about
    assert set(about) == {(str(run.pk), str(job_id))}


def test_the_text_format_shows_the_same_ids():
    record = logging.LogRecord("x", logging.INFO, "", 1, "said", (), None)
    with logging_about(job="j1"):
        assert LineFormatter(FORMATS["line"]["format"]).format(record).endswith("x said [job=j1]")
