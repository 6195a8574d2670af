"""The load tools that a definition can name."""

from ninja import Router

from orchestrator.api.auth import CallerRequest
from orchestrator.api.pages import Limit, NameCursor, cut_named_page
from orchestrator.api.schemas.load_tools import LoadToolPage, build_load_tool_out
from orchestrator.fleet.tools import load_installed_tools
from orchestrator.loadtools.registry import TOOLS
from orchestrator.measurements.tool_errors import load_tool_errors

router = Router(tags=["benchmarks"])


@router.get("/load-tools", response=LoadToolPage, summary="List the load tools")
def list_load_tools(
    request: CallerRequest, cursor: NameCursor = None, limit: Limit = 50
) -> LoadToolPage:
    """The capabilities of each tool, the hosts that have it, and its measured errors, if known."""
    member = request.auth.member
    installed, errors = load_installed_tools(member), load_tool_errors(member)
    page, following = cut_named_page(
        list(TOOLS.values()), lambda tool: tool.name, after=cursor, limit=limit
    )
    load_tools = [
        build_load_tool_out(tool, installed[tool.name], [e for e in errors if e.tool == tool.name])
        for tool in page
    ]
    return LoadToolPage(load_tools=load_tools, next=following)
