"""The thread that hears of changes goes on, whatever fails in it."""

import threading

import pytest

from orchestrator.core.waits import WaitBook, WaitLimits
from orchestrator.operations import listening
from orchestrator.operations.listening import Listener


class FailingBook(WaitBook):
    """It fails at the first change, as a mistake of ours would."""

    failed = False

    def __init__(self) -> None:
        super().__init__(WaitLimits(token=1, team=1, process=1))
        self.reconnected = threading.Event()

    def fire_all(self) -> None:
        if self.failed:
            self.reconnected.set()
        self.failed = True
        if not self.reconnected.is_set():
            raise KeyError("a mistake")


@pytest.mark.django_db(transaction=True)
def test_an_unexpected_error_is_logged_and_does_not_end_the_thread(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "CHECK_S", 0.1)
    book = FailingBook()
    listener = Listener(book)
    listener.start()
    assert book.reconnected.wait(60)
    listener.stop()
    (thread,) = [each for each in threading.enumerate() if each.name == "listener"]
    thread.join()
    assert "cannot listen to changes of runs: 'a mistake'" in caplog.text
