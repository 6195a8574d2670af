"""The load tools that a definition can name."""

from ninja import Router

from orchestrator.api.auth import CallerRequest
from orchestrator.api.schemas.load_tools import LoadToolOut, load_tool_out
from orchestrator.fleet.tools import installed_tools
from orchestrator.loadtools.registry import TOOLS
from orchestrator.results.trials.tool_errors import tool_errors

router = Router(tags=["benchmarks"])


@router.get("/load-tools", response=list[LoadToolOut], summary="List the load tools")
def list_load_tools(request: CallerRequest) -> list[LoadToolOut]:
    """What each can do and tell, which hosts have it, and how wrong it was where that was
    measured."""
    member = request.auth.member
    installed, errors = installed_tools(member), tool_errors(member)
    return [
        load_tool_out(tool, installed[name], [each for each in errors if each.tool == name])
        for name, tool in TOOLS.items()
    ]
