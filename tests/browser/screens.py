"""The one list of all screens, as a team that uses Pitwall and as a new team sees them."""

from dataclasses import dataclass

from tests.support.demo_team import DemoTeam


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """`name` is also that of its pictures; `status` is what its answer has."""

    name: str
    path: str
    status: int = 200


def list_screens(demo_team: DemoTeam) -> list[Screen]:
    """Every screen that a member comes to, with something on it."""
    ids, shas = demo_team.ids, demo_team.shas
    sides = f"baseline={shas[0]}&contender={shas[1]}"
    paths = {
        "overview": "/",
        "runs": "/runs/",
        "run-new": f"/runs/new?benchmark=server/many&{sides}&hosts=here",
        "run": f"/runs/{ids['run']}/",
        "run-running": f"/runs/{ids['running']}/",
        "run-failed": f"/runs/{ids['failed']}/",
        "run-cancelled": f"/runs/{ids['cancelled']}/",
        "run-queued": f"/runs/{ids['queued']}/",
        "run-trials": f"/runs/{ids['run']}/trials",
        "build-log": f"/builds/{ids['build']}/log",
        "trial": f"/trials/{ids['trial']}/",
        "trial-load": f"/trials/{ids['trial']}/?load=1",
        "validity": "/validity/",
        "load-tools": "/load-tools/",
        "compare": f"/compare/?benchmark=server/many&{sides}",
        "compare-one-case": f"/compare/?benchmark=server/hello&{sides}",
        "compare-choose": f"/compare/choose?benchmark=server/many&{sides}",
        "history": "/history/?benchmark=server/long",
        "history-point": f"/history/{ids['series']}/points/{ids['sha']}",
        "alerts": "/alerts/",
        "alert": f"/alerts/{ids['alert']}/",
        "reports": "/reports/",
        "report-new": "/reports/new",
        "report": "/reports/connections/",
        "report-edit": "/reports/connections/edit",
        "imports": "/imports/",
        "import": f"/imports/{ids['import']}/",
        "import-done": f"/imports/{ids['import-done']}/",
        "import-new": "/imports/new",
        "references": "/references/",
        "reference": f"/references/{ids['reference']}/",
        "reference-import": "/references/import",
        "hosts": "/hosts/",
        "host-new": "/hosts/new",
        "host": f"/hosts/{ids['host']}/",
        "profiles": "/profiles/",
        "benchmarks": "/benchmarks/",
        "benchmark-new": "/benchmarks/new?suite=hello",
        "benchmark": "/benchmarks/server/many/",
        "benchmark-diff": "/benchmarks/server/many/diff",
        "catalogue": "/catalogue/",
        "catalogue-suite": "/catalogue/server-overhead/",
        "project-new": "/projects/new",
        "project": "/projects/server/",
        "project-changes": "/projects/server/changes",
        "project-repository": "/projects/server/repository",
        "project-import": "/projects/server/import",
        "backfills": "/backfills/",
        "backfill-new": "/backfills/new",
        "backfill": f"/backfills/{ids['backfill']}/",
        "queue": "/queue/",
        "schedules": "/schedules/",
        "deleted": "/settings/deleted/",
        "project-delete": "/projects/server/delete",
        "confirmation": f"/schedules/{ids['schedule']}/delete",
        "schedule-edit": f"/schedules/{ids['schedule']}/edit",
        "settings": "/settings/",
        "account": "/account/",
        "account-password": "/account/password",
        "account-confirm": "/account/confirm?next=/account/",
        "members": "/settings/members/",
        "audit": "/settings/audit/",
        "invitation": f"/invitations/{ids['invitation']}",
        "channels": "/settings/channels/",
        "channel": f"/settings/channels/{ids['channel']}/",
        "delivery": f"/settings/deliveries/{ids['delivery']}/",
        "project-forge": "/projects/server/forge",
        "project-access": "/projects/server/access",
        "project-secrets": "/projects/server/secrets/",
        "settings-quotas": "/settings/quotas",
        "sharing": "/sharing/",
        "project-public": "/projects/server/public",
        "project-badges": "/projects/server/badges?benchmark=long",
        "public-overview": "/public/red/server/",
        "public-run": f"/public/red/server/runs/{ids['run']}/",
        "embed": f"/public/red/server/embed/{ids['series']}",
        "documents": "/docs/",
        "document": "/docs/contributing.md",
        "glossary": "/docs/glossary.md",
        "decisions": "/docs/decisions/",
        "api": "/api/v1/docs",
        "api-group": "/api/v1/docs/hosts",
    }
    return [
        *(Screen(name=name, path=path) for name, path in paths.items()),
        Screen(name="not-found", path="/runs/00000000-0000-0000-0000-000000000000/", status=404),
        Screen(name="no-such-page", path="/no-such-page", status=404),
        Screen(name="not-a-choice", path="/compare/?benchmark=server/none", status=404),
    ]


#: Those that say something else where nothing is there yet.
EMPTY = [
    Screen(name=f"empty-{name}", path=path)
    for name, path in {
        "overview": "/",
        "runs": "/runs/",
        "run-new": "/runs/new",
        "compare": "/compare/",
        "compare-choose": "/compare/choose",
        "history": "/history/",
        "alerts": "/alerts/",
        "reports": "/reports/",
        "report-new": "/reports/new",
        "imports": "/imports/",
        "import-new": "/imports/new",
        "references": "/references/",
        "hosts": "/hosts/",
        "profiles": "/profiles/",
        "benchmarks": "/benchmarks/",
        "benchmark-new": "/benchmarks/new",
        "queue": "/queue/",
        "schedules": "/schedules/",
        "settings": "/settings/",
        "members": "/settings/members/",
        "channels": "/settings/channels/",
        "deleted": "/settings/deleted/",
    }.items()
]
