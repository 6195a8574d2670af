"""What Pitwall does by itself about a suspected change in a project."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.selectors import project_for
from orchestrator.benchmarks.services import set_change_rules
from orchestrator.core.clock import utc_now
from orchestrator.regressions.machine_time import used_s
from orchestrator.web.access import for_member
from orchestrator.web.change_rule_forms import ChangeRulesForm
from orchestrator.web.forms import FORM_ERRORS


@for_member
def change_rules(request: HttpRequest, member: Member, slug: str) -> HttpResponse:
    project = project_for(member, slug)
    posted = request.POST if request.method == "POST" else None
    form = ChangeRulesForm(
        member,
        posted,
        initial={
            "confirm": project.confirm_changes,
            "bisect": project.bisect_changes,
            "machine_minutes_a_day": project.machine_minutes_a_day,
        },
    )
    if form.is_valid():
        data = form.cleaned_data
        try:
            set_change_rules(
                member=member,
                project=project,
                confirm=data["confirm"],
                bisect=data["bisect"],
                minutes_a_day=data["machine_minutes_a_day"],
            )
        except FORM_ERRORS as error:
            form.show_error(error, default="machine_minutes_a_day")
        else:
            messages.success(request, "Saved; it holds from now on.")
            return redirect("project-changes", slug)
    used = used_s(project, utc_now())
    context = {"project": project, "form": form, "used": used}
    return render(request, "benchmarks/change_rules.html", context, status=form.status)
