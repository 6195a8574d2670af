"""The load tools: their abilities, their hosts, and their accuracy."""

from collections import defaultdict
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from orchestrator.accounts.members import Member
from orchestrator.fleet.tools import InstalledTool, load_installed_tools
from orchestrator.loadtools.registry import TOOLS
from orchestrator.loadtools.sheets import ToolSheet, build_tool_sheets, list_protocols
from orchestrator.measurements.tool_errors import ToolErrors, load_tool_errors
from orchestrator.web.access import for_member


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRow:
    sheet: ToolSheet
    protocols: list[str]
    open_loop: bool
    distribution: str
    installed: list[InstalledTool]
    errors: list[ToolErrors]


@for_member
def load_tools(request: HttpRequest, member: Member) -> HttpResponse:
    installed = load_installed_tools(member)
    errors: dict[str, list[ToolErrors]] = defaultdict(list)
    for each in load_tool_errors(member):
        errors[each.tool].append(each)
    rows = [
        ToolRow(
            sheet=sheet,
            protocols=list_protocols(TOOLS[sheet.name].sheet),
            open_loop=TOOLS[sheet.name].sheet.open_loop,
            distribution=TOOLS[sheet.name].sheet.distribution,
            installed=installed[sheet.name],
            errors=errors[sheet.name],
        )
        for sheet in build_tool_sheets()
    ]
    return render(request, "hosts/load_tools.html", {"rows": rows})
