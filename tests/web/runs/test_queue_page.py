"""The page of the queue."""

from django.test import Client
from django.urls import reverse

from tests.support.html_pages import elements
from tests.support.queues import fill_queue
from tests.support.world import World


def test_the_page_shows_each_job_with_its_reason_and_expected_start(
    world: World, alice: Client, bob: Client, mallory: Client
) -> None:
    assert "No job waits" in alice.get(reverse("queue")).content.decode()
    jobs = fill_queue(world)
    page = alice.get(reverse("queue")).content.decode()
    assert len(elements(page, "tbody tr")) == 4
    assert "here is busy with another job" in page
    assert "unknown: no host that it could use answers" in page
    assert elements(page, f'a[href="{reverse("run", args=[jobs[0].run_id])}"]')
    assert elements(page, f'a[href="{reverse("queue")}"][aria-current=page]')
    assert len(elements(bob.get(reverse("queue")).content.decode(), "tbody tr")) == 4
    assert "No job waits" in mallory.get(reverse("queue")).content.decode()
