"""Public projects: what somebody without an account finds there, and what nobody finds."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from django.test import Client
from django.urls import URLPattern, reverse
from django.utils import timezone

from orchestrator.accounts.models import AuditEntry
from orchestrator.accounts.visitors import Visitor
from orchestrator.benchmarks.models import Benchmark, Project, ShareLink
from orchestrator.benchmarks.projects import create_project
from orchestrator.benchmarks.refs import open_repository
from orchestrator.benchmarks.sharing import set_public
from orchestrator.core.errors import PermissionRefusedError, PitwallError
from orchestrator.core.issued_secrets import hash_secret
from orchestrator.fleet.models import Host
from orchestrator.fleet.selectors import load_hosts
from orchestrator.reports.saved_reports import save_report
from orchestrator.results.models import Series
from orchestrator.runs.models import Job, Run, Trial
from orchestrator.web.urls import urlpatterns
from tests.support.factories import (
    DEFINITION,
    Personas,
    commit_files,
    finish_run,
    git,
    make_definition,
    make_local_host,
    make_repository,
    make_run,
)
from tests.support.fetches import fetch_now
from tests.support.html_pages import element, elements, get_text, shown_secret, values
from tests.support.trials import ERRORS, invalidate
from tests.support.world import World

PLACE = "/public/red/server/"
ADDRESS = "192.0.2.77"
#: The documentation is one for all.
FOR_EVERYBODY = ("/docs/", "/api/v1/docs")
ALLOWED = ("/public/", "/static/", *FOR_EVERYBODY)
REPORT = """\
version: 1
title: {title}
benchmark: {benchmark}
tables:
  - rows: [connections]
    columns: [{{metric: requests.rate}}]
"""


@pytest.fixture
def private(world: World, tmp_path: Path) -> Run:
    """A run of another project of the team, on a host that measured nothing else."""
    shas = make_repository(tmp_path / "classified", [{"a": "classified 1"}, {"a": "classified 2"}])
    project = create_project(
        member=world.alice,
        slug="classified",
        name="Classified",
        repository_url=str(tmp_path / "classified"),
    )
    fetch_now(project)
    source = DEFINITION.replace("title: Hello", "title: Classified things")
    make_definition(world.alice, project, slug="classified-thing", source=source)
    make_local_host(world.alice, name="classified-host")
    run = make_run(
        world.alice, shas, rounds=2, benchmark="classified-thing", hosts=("classified-host",)
    )
    text = REPORT.format(title="Classified report", benchmark="classified/classified-thing")
    save_report(member=world.alice, source=text, slug="classified-report")
    return finish_run(run, [1000, 900])


@pytest.fixture
def public(world: World) -> Project:
    """The project of `world`, public; wherever an address of a host may stand, one does."""
    project = world.run.definition.benchmark.project
    set_public(member=world.alice, project=project, public=True)
    save_report(
        member=world.alice,
        source=REPORT.format(title="All cases", benchmark="server/hello"),
        slug="cases",
    )
    message = f"could not reach {ADDRESS}"
    Run.objects.update(message=message)
    Job.objects.update(message=message)
    Trial.objects.update(
        message=message,
        reasons=[f"host.cpu_busy: {message}"],
        provenance={"argv": ["oha", f"http://{ADDRESS}/"], "hosts": {"target": ADDRESS}},
    )
    return project


def test_a_visitor_sees_no_message_of_a_failed_trial(
    public: Project, private: Run, world: World, client: Client, alice: Client
) -> None:
    """A report also hides the reason of a missing value, which members see."""
    Trial.objects.filter(job__run=world.run).update(state="failed", validity="", reasons=[])
    assert ADDRESS in alice.get("/reports/cases/").content.decode()
    for name in ("reports/cases/", "reports/cases.md", "reports/cases.json", "reports/cases.csv"):
        page = client.get(PLACE + name)
        assert page.status_code == 200, name
        assert ADDRESS not in page.content.decode(), name


def test_a_visitor_sees_nothing_of_an_unsaved_draft(
    public: Project, world: World, client: Client, alice: Client
) -> None:
    run, trial = f"runs/{world.run.pk}/", f"trials/{world.run.jobs.get().trials.first().pk}/"

    def list_shown() -> list[str]:
        pages = {
            path: client.get(PLACE + path)
            for path in (run, trial, "history/?benchmark=server/hello", "runs/", "")
        }
        return [path for path, page in pages.items() if "Hello" in page.content.decode()]

    Benchmark.objects.update(is_draft=True)
    assert list_shown() == []
    assert [alice.get(f"/{path}").status_code for path in (run, trial)] == [200, 200]


def test_a_visitor_can_name_commits_only_by_hashes_of_measured_ones(
    public: Project, world: World, client: Client, alice: Client
) -> None:
    """A branch or tag looks the same as an unknown name, and nothing is fetched."""
    folder = Path(public.repository_url)
    unmeasured = commit_files(folder, {"a.txt": "never measured"}, 99)
    git(folder, "branch", "secret-branch", world.shas[0])
    git(folder, "tag", "secret-tag", world.shas[0])
    fetch_now(public)
    unfetched = commit_files(folder, {"a.txt": "never fetched"}, 100)
    names = ["secret-branch", "secret-tag", "main", "main~1", "HEAD", unmeasured, unmeasured[:8]]
    for name in [*names, unfetched, "nonsense", world.shas[0][:6], "--all", "a b"]:
        for page in ("reports/cases/", "reports/cases.json"):
            answer = client.get(f"{PLACE}{page}", {"commit": name})
            assert answer.status_code == 404, name
            text = unescape(answer.content.decode())
            assert f"Nothing of hello was measured at {name}" in text
            assert not [
                sha for sha in [unmeasured, unfetched] if sha[:10] in text.replace(name, "")
            ]
            assert str(folder) not in text
    sides = {"benchmark": "server/hello", "baseline": world.shas[0]}
    for name in (*names, unfetched, "nonsense"):
        answer = client.get(f"{PLACE}compare/", {**sides, "contender": name})
        assert answer.status_code == 404, name
    for sha in (world.shas[0], world.shas[0][:7]):
        assert client.get(f"{PLACE}reports/cases/", {"commit": sha}).status_code == 200
    assert not open_repository(public).has(unfetched)
    assert alice.get("/reports/cases/", {"commit": "secret-tag"}).status_code == 200
    answer = alice.get("/reports/cases/", {"commit": unfetched})
    assert answer.status_code == 400
    assert str(folder) not in answer.content.decode()
    assert not open_repository(public).has(unfetched)


def _arguments(pattern: URLPattern, run: Run) -> dict[str, Any]:
    """For every name in an address something of the run's project; KeyError for a new name, whose
    object belongs here."""
    trial = Trial.objects.filter(job__run=run).first()
    benchmark = run.definition.benchmark
    series = Series.objects.filter(benchmark=benchmark).first()
    assert trial is not None
    assert series is not None
    slug = benchmark.slug if "project" in pattern.pattern.converters else benchmark.project.slug
    some = "00000000-0000-0000-0000-000000000000"
    known: dict[str, Any] = {
        "run_id": run.pk,
        "trial_id": trial.pk,
        "series_id": series.pk,
        "sha": trial.variant.commit.sha,
        "host_id": Host.objects.get(jobs__run=run).pk,
        "project": benchmark.project.slug,
        "slug": "classified-report" if (pattern.name or "").startswith("report") else slug,
        "name": "tool.json",
        "kind": "ok",
        "ending": "json",
        "build_id": 1,
        "username": "alice",
        "secret": "pwi_unknown",
        "pin_id": 1,
        **dict.fromkeys(
            ("annotation_id", "baseline_id", "change_id", "alert_id", "source_id", "schedule_id",
             "token_id", "link_id", "request_id", "connection_id", "channel_id", "delivery_id",
             "invitation_id"),
            some,
        ),
    }  # fmt: skip
    return {name: known[name] for name in pattern.pattern.converters}


def _queries(run: Run) -> Iterator[str]:
    """What a stranger might ask of pages that take what they show from their query."""
    shas = [each.commit.sha for each in run.variants.all()]
    sides = f"baseline={shas[0]}&contender={shas[1]}"
    yield ""
    yield f"?benchmark=classified/classified-thing&{sides}"
    yield f"?benchmark=server/hello&{sides}"
    yield f"?run={run.pk}"


def test_no_address_shows_a_private_project(public: Project, private: Run, client: Client) -> None:
    patterns = [each for each in urlpatterns if isinstance(each, URLPattern)]
    leaks = {}
    for pattern in patterns:
        given = _arguments(pattern, private)
        path = reverse(str(pattern.name), kwargs=given)
        for place in (PLACE, "/public/red/classified/"):
            address = place + path.lstrip("/")
            asks = is_open(pattern) and place == PLACE
            for query in _queries(private) if asks else [""]:
                answer = client.get(address + query)
                page = answer.content.decode(errors="replace")
                # Slugs are said again where nothing is found; names were not asked for.
                if "Classified" in page or "classified-host" in page:
                    leaks[address + query] = page
                if given or place != PLACE:
                    assert answer.status_code == 404, address + query
        assert client.post(PLACE + path.lstrip("/")).status_code in (403, 404), path
    assert not leaks, list(leaks)


def is_open(pattern: URLPattern) -> bool:
    return getattr(pattern.callback, "open_to_visitors", False)


def test_links_of_visitor_pages_are_open_and_no_internal_address_is_shown(
    public: Project, world: World, private: Run, client: Client
) -> None:
    """All that can be reached from the front page by its links."""
    todo, seen = [PLACE], set[str]()
    while todo and len(seen) < 70:
        address = todo.pop()
        if address in seen:
            continue
        seen.add(address)
        answer = client.get(address)
        page = answer.content.decode()
        assert answer.status_code == 200, address
        for word in (ADDRESS, "alice", "lassified", "csrfmiddlewaretoken", 'method="post"'):
            assert word not in page, (word, address)
        for href in values(answer, "a[href]", "href"):
            target = urljoin(address, href).partition("#")[0]
            if target != "/" and not target.startswith(FOR_EVERYBODY):
                assert target.startswith(PLACE), (href, address)
                todo.append(target)
    names = {each.removeprefix(PLACE).partition("/")[0].partition("?")[0] for each in seen}
    assert names >= {"", "runs", "trials", "compare", "history", "reports", "validity"}


def test_a_visitor_sees_the_values(public: Project, world: World, client: Client) -> None:
    front = client.get(PLACE).content.decode()
    assert "Server" in front
    assert "read-only" in front
    assert "regressed" in front
    assert "New run" not in front
    assert f"{PLACE}history/" in values(front, "a", "href")
    trial = world.run.jobs.get().trials.first()
    page = client.get(f"{PLACE}trials/{trial.pk}/").content.decode()
    assert "requests.rate" in page
    series = Series.objects.filter(metric__key="requests.rate").first()
    assert series is not None
    data = client.get(f"{PLACE}history/{series.pk}/data").json()
    assert len(data["points"]["commit"]) == 3


def test_cached_pages_of_members_and_visitors_are_separate(
    public: Project, world: World, alice: Client, client: Client
) -> None:
    """What was made for one of them, and kept, is not shown to the other."""
    sides = f"baseline={world.shas[0]}&contender={world.shas[2]}"
    for path in ("", "runs/", "history/", f"compare/?benchmark=server/hello&{sides}"):
        for _ in range(2):
            assert PLACE not in alice.get(f"/{path}").content.decode()
            links = {*values(client.get(PLACE + path), "[href^='/']", "href")} - {"/"}
            assert [each for each in links if not each.startswith(ALLOWED)] == []


def test_a_logged_in_user_can_see_the_visitor_page(public: Project, mallory: Client) -> None:
    page = mallory.get(PLACE).content.decode()
    assert "Server" in page
    assert "Your team" in page
    assert mallory.get("/runs/").status_code == 200
    assert mallory.get(f"{PLACE}settings/").status_code == 404


def test_an_admin_makes_a_project_public(
    world: World, alice: Client, bob: Client, mallory: Client, client: Client
) -> None:
    address = reverse("project-public", args=["server"])
    assert client.get(PLACE).status_code == 404
    assert "only members of the team" in alice.get(address).content.decode().lower()
    assert bob.get(address).status_code == 200
    assert bob.post(address, {"sure": "on"}).status_code == 403
    assert mallory.post(address, {"sure": "on"}).status_code == 404
    assert "Select this" in alice.post(address).content.decode()
    assert client.get(PLACE).status_code == 404
    alice.post(address, {"sure": "on"})
    assert client.get(PLACE).status_code == 200
    alice.post(address, {"close": "1"})
    assert client.get(PLACE).status_code == 404
    actions = AuditEntry.objects.order_by("pk").values_list("action", flat=True)
    assert list(actions)[-2:] == ["project.made_public", "project.made_private"]


def test_a_visitor_is_refused_without_a_public_project(personas: Personas) -> None:
    visitor = Visitor(project=1, place=PLACE)
    with pytest.raises(PitwallError, match="only members"):
        load_hosts(visitor)
    with pytest.raises(PermissionRefusedError, match="visitors can only view"):
        visitor.require("viewer", to="do anything")
    assert not visitor.has("viewer")


def test_badges_of_public_projects_are_shown(
    public: Project, private: Run, world: World, client: Client, mallory: Client
) -> None:
    value = client.get(f"{PLACE}badge/server/hello/value.svg?metric=requests.rate")
    drawn = value.content.decode()
    assert value.headers["Content-Type"].startswith("image/svg+xml")
    assert "850 " in drawn
    assert f"commit {world.shas[2][:10]}</title>" in drawn
    again = client.get(
        f"{PLACE}badge/server/hello/value.svg?metric=requests.rate",
        headers={"If-None-Match": value.headers["ETag"]},
    )
    assert again.status_code == 304
    verdict = client.get(f"{PLACE}badge/server/hello/verdict.svg?label=<speed>").content.decode()
    assert "&lt;speed&gt;: regressed, commit" in verdict
    for closed in ("classified/classified-thing", "server/classified-thing"):
        assert client.get(f"{PLACE}badge/{closed}/value.svg").status_code == 404
    assert mallory.get("/badge/server/hello/value.svg").status_code == 404


@pytest.mark.parametrize("state", ["finished", "failed"])
def test_the_badge_of_a_contender_that_fails_is_red(
    public: Project, world: World, client: Client, state: str
) -> None:
    run = finish_run(make_run(world.alice, world.shas[:2]), [1000, 1000])
    invalidate(run, ERRORS, variant__position=1)
    Run.objects.filter(pk=run.pk).update(state=state)
    badge = client.get(f"{PLACE}badge/server/hello/verdict.svg").content.decode()
    assert f"hello: broken, commit {world.shas[1][:10]}" in badge
    assert "#b42318" in badge


def _without_host(url: str) -> str:
    """Path and query of a URL."""
    return urlsplit(url)._replace(scheme="", netloc="").geturl()


def test_badges_and_charts_can_be_copied(
    public: Project, alice: Client, bob: Client, mallory: Client, client: Client
) -> None:
    address = reverse("project-badges", args=["server"])
    page = alice.get(address)
    assert bob.get(address).status_code == 200
    assert mallory.get(address).status_code == 404
    markdown = elements(page, "textarea[id$=-markdown]")[0].get_text()
    copied = re.fullmatch(r"\[!\[.*?\]\((\S+)\)\]\((\S+)\)", markdown.strip())
    (frame,) = values(element(page, "#frame-html").get_text(), "iframe", "src")
    assert copied
    for url in (copied[1], copied[2], frame):
        assert client.get(_without_host(url)).status_code == 200


def test_only_charts_can_be_embedded(
    public: Project, private: Run, client: Client, settings: Any
) -> None:
    settings.EMBED_ANCESTORS = ["https://docs.example.org"]
    series = Series.objects.filter(benchmark__slug="hello", metric__key="requests.rate").first()
    other = Series.objects.filter(benchmark__slug="classified-thing").first()
    assert series is not None
    assert other is not None
    frame = client.get(f"{PLACE}embed/{series.pk}")
    assert "frame-ancestors https://docs.example.org;" in frame.headers["Content-Security-Policy"]
    assert "X-Frame-Options" not in frame.headers
    assert "Cookie" not in frame.headers.get("Vary", "")
    assert not frame.cookies
    assert "<polyline" in frame.content.decode()
    assert "<script" not in frame.content.decode()
    assert client.get(f"{PLACE}embed/{other.pk}").status_code == 404
    page = client.get(PLACE)
    assert "frame-ancestors 'none'" in page.headers["Content-Security-Policy"]
    assert page.headers["X-Frame-Options"] == "DENY"


@pytest.fixture
def share(world: World, alice: Client) -> Any:
    """Makes a link to a page as alice does, and returns its address."""

    def made(page: str) -> str:
        answer = alice.post(reverse("share-new"), {"page": page, "days": "7"})
        link = _without_host(shown_secret(answer))
        assert link.startswith("/shared/pws_")
        return link

    return made


def test_a_shared_link_shows_one_comparison_only(world: World, share: Any, client: Client) -> None:
    sides = f"baseline={world.shas[0]}&contender={world.shas[2]}"
    link = share(f"/compare/?benchmark=server/hello&{sides}")
    page = client.get(link)
    text = page.content.decode()
    assert "regressed" in get_text(page)
    assert page.headers["Referrer-Policy"] == "strict-origin"
    other = client.get(f"{link}?contender={world.shas[1]}").content.decode()
    assert world.shas[1][:10] not in other
    place = link.removesuffix("compare/")
    for closed in ("", "runs/", f"runs/{world.run.pk}/", "history/", "reports/", "settings/"):
        assert client.get(place + closed).status_code == 404, closed
    below = values(page, f"[href^='{place}']", "href")
    assert [each for each in below if not each.startswith(link)] == []
    assert "alice" not in text
    assert "compare-form" not in text


def test_a_shared_link_ends_when_revoked_or_expired(
    world: World, share: Any, alice: Client, bob: Client, mallory: Client, client: Client
) -> None:
    link = share(f"/runs/{world.run.pk}/")
    assert "regressed" in client.get(link).content.decode()
    other = share(f"/runs/{world.run.pk}/")
    listed = bob.get(reverse("sharing")).content.decode()
    assert "Run of Hello" in listed
    assert "Run of Hello" not in mallory.get(reverse("sharing")).content.decode()
    secret = link.split("/")[2]
    row = ShareLink.objects.get(digest=hash_secret(secret))
    assert row.last_used_at is not None
    assert secret not in str(ShareLink.objects.values_list())
    revoke = reverse("share-revoke", args=[row.pk])
    assert bob.post(revoke).status_code == 403
    assert mallory.post(revoke).status_code == 404
    alice.post(revoke)
    assert client.get(link).status_code == 404
    ShareLink.objects.update(expires_at=timezone.now())
    assert client.get(other).status_code == 404
    actions = set(AuditEntry.objects.values_list("action", flat=True))
    assert actions >= {"share_link.created", "share_link.revoked"}


def test_only_comparisons_reports_and_badges_are_shared(
    public: Project, world: World, share: Any, alice: Client, bob: Client, mallory: Client,
    client: Client,
) -> None:  # fmt: skip
    set_public(member=world.alice, project=public, public=False)
    report = share("/reports/cases/")
    assert "All cases" in client.get(report).content.decode()
    assert client.get(f"{report.removesuffix('/')}.json").status_code == 200
    badge = share("/badge/server/hello/value.svg?metric=requests.rate")
    assert "<svg" in client.get(badge).content.decode()
    data = {"page": "/settings/", "days": "7"}
    assert alice.post(reverse("share-new"), data).status_code == 400
    data["page"] = "/reports/cases/"
    assert bob.post(reverse("share-new"), data).status_code == 403
    assert mallory.post(reverse("share-new"), data).status_code == 404
    data["days"] = "4000"
    assert alice.post(reverse("share-new"), data).status_code == 422


def test_an_error_page_of_a_shared_link_has_no_other_links(
    world: World, share: Any, client: Client
) -> None:
    """The referer of such a page is only the server, so there is no page to go back to."""
    link = share(f"/runs/{world.run.pk}/")
    answer = client.get(link + "nowhere", headers={"Referer": "http://testserver/"})
    assert answer.status_code == 404
    assert "http://testserver/" not in answer.content.decode()
