"""A run measures the contents of files of Git LFS, fetched from a server over http."""

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from orchestrator.benchmarks import access
from orchestrator.benchmarks.projects import create_project
from orchestrator.runs.models import Build, Trial
from tests.support.engine import Engine, server
from tests.support.factories import (
    Personas,
    make_definition,
    make_repository,
    make_run,
    make_shared_host,
)
from tests.support.fetches import fetch_now, fetching
from tests.support.git_servers import TOKEN
from tests.support.lfs import commit_lfs_files, hash_content, serving_lfs

pytestmark = [pytest.mark.engine, pytest.mark.slow]

#: Answers with the content of a file in Git LFS.
SERVER = server(body="WORDS", start="words = open('data/words.txt').read()")["server.py"].replace(
    "'WORDS'", "words"
)
DEFINITION = dedent(
    """\
    version: 1
    title: Words
    subject:
      build: [[sh, -c, "! git describe --always --dirty | grep dirty"]]
      start: ["{python}", server.py, --port, "{port}"]
      ready: {path: /hello, timeout_s: 10}
    load: {path: /hello, connections: 2, duration_s: 0.5, warmup_s: 0.1}
    rounds: 1
    cooldown_s: 0
    """
)


def test_a_server_answers_with_the_content_of_a_file_in_lfs(
    engine: Engine, team: Personas, tmp_path: Path, settings: Any
) -> None:
    settings.ALLOWED_INTERNAL_NETWORKS = ["127.0.0.1/32"]
    app = tmp_path / "served" / "team" / "app"
    make_repository(app, [{"server.py": SERVER}])
    old, new, lost = (
        commit_lfs_files(app, {"data/words.txt": text * 100}, number=number)
        for number, text in enumerate((b"old", b"new", b"lost"), 2)
    )
    with serving_lfs(tmp_path / "served", b"old" * 100, b"new" * 100) as git_server, fetching():
        project = create_project(
            member=team.alice, slug="app", name="", repository_url=f"{git_server.url}/team/app"
        )
        access.save_token(member=team.alice, project=project, token=TOKEN)
        fetch_now(project)
        make_definition(team.alice, project, source=DEFINITION)
        make_shared_host(team.alice)
        run = engine.finish(make_run(team.alice, [old, new, lost]))
    trials = Trial.objects.filter(job__run=run, state="measured")
    assert {
        each.variant.commit.sha: each.provenance["checks"][0]["sha256"]
        for each in trials.select_related("variant__commit")
    } == {old: hash_content(b"old" * 100), new: hash_content(b"new" * 100)}, run.message
    # The commit whose file is missing fails alone, with the reason.
    failed = Build.objects.get(job__run=run, commit__sha=lost)
    assert failed.state == "failed"
    assert "the content of data/words.txt, which is in Git LFS, cannot be fetched" in failed.message
    # The digests cover the contents.
    built = Build.objects.filter(job__run=run, state="done")
    assert len(set(built.values_list("digest", "source_digest"))) == 2
