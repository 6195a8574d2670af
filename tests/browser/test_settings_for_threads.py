"""Threads such as those of the live server read settings while a test changes them."""

import sys
from collections.abc import Iterator
from threading import Event, Thread

import pytest
from django.conf import settings
from django.test import override_settings

CHANGES = 2000


@pytest.fixture
def many_switches() -> Iterator[None]:
    """Python switches between threads after nearly every step."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_a_thread_always_reads_a_setting(many_switches: None) -> None:
    end, failures = Event(), []

    def read() -> None:
        while not end.is_set():
            try:
                assert settings.TIME_ZONE
            except AttributeError as error:
                failures.append(error)
                return

    reader = Thread(target=read)
    reader.start()
    try:
        for _ in range(CHANGES):
            with override_settings(MEDIA_ROOT="elsewhere"):
                pass
    finally:
        end.set()
        reader.join()
    assert failures == []
