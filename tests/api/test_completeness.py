"""The API does all that the pages do: each page has its operations, or a reason to have none."""

from orchestrator.accounts.models import Role
from orchestrator.accounts.permissions import OPERATIONS, PAGES, SAFE
from tests.support.api_covers import COVERED, NOT_COVERED


def test_every_page_has_its_operations_or_a_reason_to_have_none():
    pages = [*COVERED, *NOT_COVERED]
    assert set(pages) == set(PAGES), "say in tests/support/api_covers.py what the API has for it"
    assert len(pages) == len(set(pages)), "a page is covered or it is not"


def test_every_listed_operation_exists():
    named = {operation for operations in COVERED.values() for operation in operations}
    assert named <= set(OPERATIONS)


def test_whoever_may_use_a_page_may_use_its_operations():
    """What one looks at needs no higher role with a token than with a browser, and what one does
    neither a higher nor a lower one."""
    faults = []
    for page, operations in COVERED.items():
        row, roles = PAGES[page], {each: OPERATIONS[each].role for each in operations}
        looking = {each for each in roles if each.split()[0] in SAFE or row.do is None}
        if row.see and not any(_is_at_most(roles[each], row.see) for each in looking or roles):
            faults.append(f"{page}: a {row.see} cannot look at it")
        if row.do and {roles[each] for each in roles.keys() - looking} != {row.do}:
            faults.append(f"{page}: a {row.do} does it, and no other role")
    assert not faults, "\n".join(faults)


def _is_at_most(role: str, least: str) -> bool:
    order = list(Role.values)
    return order.index(role) <= order.index(least)
