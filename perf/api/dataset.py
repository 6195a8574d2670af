"""A team with a benchmark of 200 cases, and runs to read and to start."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.test import Client

from orchestrator.accounts.services import create_token
from tests.support import factories

CASES = 200
ROUNDS = 5
#: A hundred numbers of connections, each with two pages.
DEFINITION = factories.DEFINITION.replace(
    "  connections: [4]",
    f"  connections: [{', '.join(str(each) for each in range(1, CASES // 2 + 1))}]\n"
    "  page: [hello, again]",
).replace("  path: /hello\n", '  path: "/{page}"\n')


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """`finished` and `queued` are runs of all cases with two commits each.

    `session` is the cookie of a logged-in user.
    """

    token: str
    session: str
    shas: list[str]
    finished: str
    queued: str


def make(folder: Path) -> Dataset:
    """Fill the empty database of the settings, and create the git repository in `folder`."""
    call_command("migrate", verbosity=0)
    alice = factories.make_personas().alice
    project, shas = factories.make_project(alice, folder / "repository")
    factories.make_definition(alice, project, source=DEFINITION)
    factories.make_local_host(alice)
    queued = factories.make_run(alice, shas[:2], rounds=ROUNDS)
    finished = factories.finish_run(
        factories.make_run(alice, shas[:2], rounds=ROUNDS), [1000.0, 990.0]
    )
    browser = Client()
    browser.force_login(alice.user)
    return Dataset(
        session=browser.cookies[settings.SESSION_COOKIE_NAME].value,
        token=create_token(member=alice, name="bench").secret,
        shas=shas,
        finished=str(finished.pk),
        queued=str(queued.pk),
    )
