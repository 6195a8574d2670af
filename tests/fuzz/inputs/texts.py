"""Parsers of texts that people write (definitions, reports, …) and of webhooks."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from orchestrator.benchmarks import spec as definitions
from orchestrator.benchmarks.choice import compile_condition
from orchestrator.benchmarks.load_specs import build_load_specs, get_tool
from orchestrator.benchmarks.matrix import expand
from orchestrator.benchmarks.miniature import build_miniature
from orchestrator.benchmarks.proposals.proposal import build_proposal
from orchestrator.benchmarks.remotes import check_url
from orchestrator.benchmarks.report_size import build_report_size
from orchestrator.benchmarks.review import review
from orchestrator.core.errors import BrokenSealError, InvalidRequestError
from orchestrator.core.sealing import Keyring
from orchestrator.core.storable_text import check_storable
from orchestrator.forges.notices import is_genuine, read_notice
from orchestrator.reports import report_spec
from orchestrator.transport.address import HostKey
from orchestrator.transport.http import check_web_address
from tests.fuzz.inputs.mutation import changed_bytes, changed_json, changed_value
from tests.fuzz.inputs.target import Target

ROOT = Path(__file__).parents[3]
SUITES = ROOT / "agents" / "suites"
_KEYS = Keyring({"2026": "k" * 40})
_PLACE = "fuzz.Value.sealed:1"
_NAMES = {"protocol": "h3", "size": 10, "tls": True, "rate": 0.5, "framework": "flask"}


def _definitions() -> list[bytes]:
    whole = [path.read_bytes() for path in sorted(SUITES.glob("*/benchmark.yaml"))]
    # Short ones are parsed a hundred times as fast, and cover most of the code.
    return [each for each in whole if len(each) < 6_000] or whole


def _as_data() -> list[Any]:
    return [yaml.safe_load(path.read_bytes()) for path in sorted(SUITES.glob("*/benchmark.yaml"))]


def _read_definition(given: bytes, _: Path) -> None:
    definitions.parse(given.decode("utf-8", "replace"))


def _read_data(given: Any, _: Path) -> None:
    """Expand them up to the started commands: the first and the last case."""
    try:
        check_storable(given)
    except ValueError as error:
        raise InvalidRequestError(str(error)) from error
    spec = definitions.from_data(given)
    cases = expand(spec)
    for case in (*cases[:1], *cases[-1:]):
        tool = get_tool(spec, case.parameters)
        for load in build_load_specs(spec, case.parameters):
            tool.invocations(load, 2)
            tool.files(load)


def _change_data(chance: random.Random, sample: Any, _: Sequence[Any]) -> Any:
    changed = changed_value(chance, sample)
    return changed if isinstance(changed, dict) else sample


def _miniatures() -> list[bytes]:
    return [path.read_bytes() for path in sorted(SUITES.glob("*/miniature.yaml"))]


def _read_miniature(given: bytes, _: Path) -> None:
    build_miniature("version: 1\nload: {connections: 1}\n", given.decode("utf-8", "replace"))


def _report_sizes() -> list[bytes]:
    return [path.read_bytes() for path in sorted(SUITES.glob("*/report-size.yaml"))]


def _read_report_size(given: bytes, _: Path) -> None:
    build_report_size("version: 1\nload: {connections: 1}\n", given.decode("utf-8", "replace"))


def _reports() -> list[bytes]:
    return [path.read_bytes() for path in sorted(SUITES.glob("*/report.yaml"))]


def _read_report(given: bytes, _: Path) -> None:
    report_spec.parse_all(given.decode("utf-8", "replace"))


def _conditions() -> list[bytes]:
    return [
        b'protocol == "h3" and size in ("full", "huge")',
        b'rate >= 1000 and not framework == "flask"',
        b"(tls or size < 5) and rate != 0.5 or not (protocol in ('h1',))",
    ]


def _read_condition(given: bytes, _: Path) -> None:
    compile_condition(given.decode("utf-8", "replace"))(_NAMES)


def _addresses() -> list[bytes]:
    return [
        b"https://github.com/team/server.git", b"git@host:team/server.git", b"ssh://git@host:22/x",
        b"https://hooks.example.org/T0/B1?x=1", b"http://[::1]:8000/", b"ext::sh -c id",
        b"file:///etc/passwd", b"https://a:b@c/", b"--upload-pack=x",
        b"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIrm5jKQhKjQkXq8m5S1dQf5q4gq8O8sJg0mC8lYx0aB x",
    ]  # fmt: skip


def _read_address(given: bytes, _: Path) -> None:
    """Try each of the three parsers, even if another one refuses the text."""
    text, refusals = given.decode("utf-8", "replace"), []
    for read in (lambda: check_url(text, allow_local=False), lambda: check_web_address(text),
                 lambda: HostKey.parse(text)):  # fmt: skip
        try:
            read()
        except InvalidRequestError as error:
            refusals.append(error)
    if refusals:
        raise refusals[0]


def _notices() -> list[bytes]:
    repository = {"full_name": "team/server"}
    comment = {"id": 5, "user": {"login": "x"}, "body": "/benchmark hello\n"}
    github = {
        "ref": "refs/heads/main", "repository": repository, "action": "created",
        "issue": {"number": 3, "pull_request": {}}, "comment": comment, "is_pull": True,
    }  # fmt: skip
    gitlab = {
        "object_kind": "note", "project": {"path_with_namespace": "team/server"}, "ref": "refs/x",
        "object_attributes": {"id": 4, "action": "create", "noteable_type": "MergeRequest",
                              "note": "/benchmark hello"},
        "merge_request": {"iid": 3}, "user": {"username": "x"},
    }  # fmt: skip
    return [json.dumps(each).encode() for each in (github, gitlab)]


def _read_notice(given: bytes, _: Path) -> None:
    for kind, headers in (
        ("github", {"X-GitHub-Event": "issue_comment", "X-Hub-Signature-256": "sha256=ab"}),
        ("gitea", {"X-Gitea-Event": "push"}),
        ("gitlab", {"X-Gitlab-Token": "x"}),
    ):
        assert not is_genuine(kind, "secret", headers, given)
        read_notice(kind, headers, given)


def _sealed() -> list[bytes]:
    """Sealed once: each sealing gives another text."""
    return [
        b"pw1:2026:gAAAAABrAp1xSZRet5_znbHr1pQFb-gIrrIgt_BrbxkmRw9mCX6"
        b"YQBl2V4YNRKswi9j7kc0CMHv0pzOkk_o7CHISbe3YlytNqQ==",
        b"pw2:2026:gAAAAABrA8diiLCE5gZWSaFAM2uel4aPkvGISD8_aILSveBHiTTggfwHLffEy"
        b"jUDqFTvJ_HkftaOHVlUX9pl4vw9nvZBiTfCoQ==",
    ]


def _unseal(given: bytes, _: Path) -> None:
    opened = _KEYS.unseal(given, _PLACE)
    assert opened == "a secret", "something that nobody sealed was opened"


_REFUSED = (InvalidRequestError,)


def _repositories() -> list[bytes]:
    """Files of repositories, each behind a line with its path."""
    return [
        b"=== Procfile\nweb: gunicorn -b 0.0.0.0:$PORT a:app\n=== requirements.txt\ngunicorn==1\n",
        b'=== Dockerfile\nEXPOSE 80\nENTRYPOINT ["/s"]\nCMD ["-p", "80"]\n'
        b"=== main.go\nx\n=== go.mod\n",
        b'=== package.json\n{"scripts": {"start": "A=1 node x.js", "build": "b"}, "main": "x.js"}\n'
        b'=== x.js\napp.get("/a", f); app.listen(process.env.PORT)\n',
        b"=== Cargo.toml\n[package]\nname = 'a'\n",
        b"=== pyproject.toml\n[project]\ndependencies = ['b']\n=== server.py\n'--port'\n",
        b"=== pom.xml\n<artifactId>a</artifactId><version>1</version><dependencies>\n",
        b"=== build.gradle\nversion = '1'\n=== settings.gradle\nrootProject.name = 'a'\n",
        b'=== app.py\napp = Flask(__name__)\n@app.route("/x")\n=== requirements.txt\nflask\n',
    ]


def _read_repository(given: bytes, _: Path) -> None:
    """A proposal is a text that the editor can show, valid or not."""
    parts = (part.partition("\n") for part in given.decode("utf-8", "replace").split("=== "))
    proposal = build_proposal("Fuzz", {path: text for path, _, text in parts if path})
    if proposal is not None:
        review(proposal.source)


TARGETS = (
    Target(name="repository", samples=_repositories, change=changed_bytes, read=_read_repository,
           errors=(), share=3),
    Target(name="definition", samples=_definitions, change=changed_bytes, read=_read_definition,
           errors=_REFUSED, share=1),
    Target(name="definition-data", samples=_as_data, change=_change_data, read=_read_data,
           errors=_REFUSED, share=4),
    Target(name="miniature", samples=_miniatures, change=changed_bytes, read=_read_miniature,
           errors=_REFUSED, share=1),
    Target(name="report-size", samples=_report_sizes, change=changed_bytes, read=_read_report_size,
           errors=_REFUSED, share=1),
    Target(name="report", samples=_reports, change=changed_bytes, read=_read_report,
           errors=_REFUSED, share=1),
    Target(name="condition", samples=_conditions, change=changed_bytes, read=_read_condition,
           errors=_REFUSED, share=6),
    Target(name="address", samples=_addresses, change=changed_bytes, read=_read_address,
           errors=_REFUSED, share=6),
    Target(name="forge-notice", samples=_notices, change=changed_json, read=_read_notice,
           errors=_REFUSED, share=4),
    Target(name="sealed", samples=_sealed, change=changed_bytes, read=_unseal,
           errors=(BrokenSealError,), share=2),
)  # fmt: skip
