"""requests: threads that share one session."""

from concurrent.futures import ThreadPoolExecutor

import requests
from plan import Answer, Plan, now
from requests.adapters import HTTPAdapter


def run(plan: Plan) -> list[list[Answer]]:
    with requests.Session() as session:
        session.trust_env = False
        session.verify = plan.authorities
        session.mount("https://", HTTPAdapter(1, plan.tasks, pool_block=True))
        with ThreadPoolExecutor(plan.tasks) as threads:
            return list(threads.map(lambda _: _task(session, plan), range(plan.tasks)))


def _task(session: requests.Session, plan: Plan) -> list[Answer]:
    return [_get(session, plan) for _ in range(plan.each)]


def _get(session: requests.Session, plan: Plan) -> Answer:
    start = now()
    answer = session.get(plan.url, timeout=(plan.connect_timeout_s, plan.request_timeout_s))
    size = len(answer.content)
    return Answer(start, now(), answer.status_code, size, answer.raw.version)
