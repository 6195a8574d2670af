"""One engine, one host and one project for each file.

Runs are measured by fixtures of the module, which are set up outside of the tests' transactions, as
the engine has to see them. What a test changes is rolled back.
"""

from collections.abc import Iterator

import pytest
from django.core.management import call_command
from pytest_django import DjangoDbBlocker

from tests.support.engine import running_engine
from tests.support.factories import make_personas
from tests.support.planted_faults import Laboratory, laboratory


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    """Variables of the engine, for files that want others."""
    return {}


@pytest.fixture(scope="module")
def lab(
    environment: dict[str, str],
    django_db_setup: None,
    django_db_blocker: DjangoDbBlocker,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Laboratory]:
    folder = tmp_path_factory.mktemp("lab")
    with django_db_blocker.unblock():
        try:
            with running_engine(folder, **environment) as engine:
                yield laboratory(engine, make_personas(), folder)
        finally:
            call_command("flush", verbosity=0, interactive=False)
