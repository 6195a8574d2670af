"""What every test may ask for: personas of two teams. Fixtures for machines are in `support`."""

import gc
import os
from collections.abc import Generator, Iterator
from typing import Any
from unittest import mock

import hypothesis
import pytest
from django.conf import LazySettings, settings
from django.test import TransactionTestCase, override_settings
from pytest_django import DjangoDbBlocker

from orchestrator.core.page_cache import forget_parts
from orchestrator.measurements.ingest import forget_cached
from orchestrator.operations.garbage import limit_garbage
from tests.support import migrated
from tests.support.databases import empty_tables
from tests.support.engine import ANYWHERE
from tests.support.factories import Personas, make_personas
from tests.support.fetches import fetching
from tests.support.order import spread_waiting
from tests.support.programs import summary
from tests.support.world import data_dir, world

__all__ = ["data_dir", "world"]

#: All tests come from one address. Servers in processes of their own have these variables.
os.environ["PITWALL_SESSION_REQUESTS_A_MINUTE"] = "0"
os.environ["PITWALL_VISITOR_REQUESTS_A_MINUTE"] = "0"
# Tests run next to each other, so no host is quiet.
os.environ["PITWALL_QUIET_WAIT_S"] = "0"
# All hosts of tests are this machine.
os.environ["PITWALL_ONE_HOST_PER_MACHINE"] = "0"
# Hypothesis would fail a test that takes longer than usual for one example, as on a busy machine.
hypothesis.settings.register_profile("pitwall", deadline=None)
hypothesis.settings.load_profile("pitwall")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Spreads the files of engine tests evenly over a parallel run.

    They mostly wait while others use the CPUs. All of them at once would overload the machine.
    """
    if hasattr(config, "workerinput"):
        items[:] = spread_waiting(items)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """No garbage collection while the tests are collected, and later none of what is loaded.

    Nearly all objects stay until the end. To look through them took a third of the collection.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        limit_garbage("web")
        gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    lines = summary(terminalreporter.stats.get("skipped", []))
    if lines:
        terminalreporter.section("programs that are missing")
        terminalreporter.write_line("\n".join(lines))


@pytest.fixture(scope="session", autouse=True)
def settings_for_threads() -> Iterator[None]:
    """A change of settings is one step for the other threads, such as those of the live server.

    Django removes the old settings first. A thread that reads one of them right then fails.
    """
    set_one = LazySettings.__setattr__

    def set_attribute(lazy: LazySettings, name: str, value: object) -> None:
        if name == "_wrapped":
            object.__setattr__(lazy, "__dict__", {name: value})
        else:
            set_one(lazy, name, value)

    with mock.patch.object(LazySettings, "__setattr__", set_attribute):
        yield


@pytest.fixture(scope="session", autouse=True)
def settings_of_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Static files as they lie in the checkout, also for the live server, quick passwords, and
    hosts anywhere: those of tests are at loopback.

    Files of an earlier run would be in the way: the same keys occur again in each new database.
    """
    plain = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    with override_settings(
        DATA_DIR=tmp_path_factory.mktemp("data"),
        STATIC_ROOT=str(tmp_path_factory.mktemp("static")),
        # Django's live server would answer /docs/… with files of the working directory.
        MEDIA_ROOT=str(tmp_path_factory.mktemp("media")),
        STORAGES={**settings.STORAGES, "staticfiles": plain},
        HOST_NETWORKS=ANYWHERE,
        ONE_HOST_PER_MACHINE=False,
        SESSION_REQUESTS_A_MINUTE=0,
        VISITOR_REQUESTS_A_MINUTE=0,
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
    ):
        yield


@pytest.fixture(scope="session", autouse=True)
def quick_flush() -> Iterator[None]:
    """After a test that commits, only the tables that have rows are emptied."""

    def tear_down(_case: TransactionTestCase) -> None:
        empty_tables()

    with mock.patch.object(TransactionTestCase, "_fixture_teardown", tear_down):
        yield


@pytest.fixture(scope="session")
def saved_database(django_test_environment: None, django_db_blocker: DjangoDbBlocker) -> None:
    with django_db_blocker.unblock():
        migrated.use_saved()


@pytest.fixture(scope="session")
def django_db_setup(
    saved_database: None, django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> None:
    """That of pytest-django, on a copy of the database that an earlier run has migrated."""
    with django_db_blocker.unblock():
        migrated.save()


@pytest.fixture(autouse=True)
def nothing_remembered() -> None:
    """What a process remembers of rows is of no use to the next test: they are rolled back."""
    forget_cached()
    forget_parts()


@pytest.fixture
def personas(db: None) -> Personas:
    """alice (owner) and bob (viewer) of team red, mallory (owner) of team blue."""
    return make_personas()


@pytest.fixture
def live_server(transactional_db: None, live_server: Any) -> Iterator[Any]:
    """With somebody who fetches what its requests wait for."""
    with fetching():
        yield live_server
