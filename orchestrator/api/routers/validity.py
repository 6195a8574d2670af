"""The rules for suspect and invalid trials."""

from ninja import Router

from orchestrator.api.auth import CallerRequest
from orchestrator.api.pages import Limit, NameCursor, cut_named_page
from orchestrator.api.schemas.validity import ValidityRulePage, build_validity_rule_out
from orchestrator.loadtools.thresholds import THRESHOLDS

router = Router(tags=["trials"])


@router.get("/validity-rules", response=ValidityRulePage, summary="List validity reasons")
def list_validity_rules(
    request: CallerRequest, cursor: NameCursor = None, limit: Limit = 50
) -> ValidityRulePage:
    """With their thresholds, those of the load first; `reasons` of trials begin with such a
    `code`."""
    page, following = cut_named_page(
        list(THRESHOLDS.values()), lambda rule: rule.code, after=cursor, limit=limit
    )
    return ValidityRulePage(
        validity_rules=[build_validity_rule_out(each) for each in page], next=following
    )
