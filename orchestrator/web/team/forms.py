"""Forms of the team's settings: tokens, members, invitations, and filters of the audit log."""

from typing import Any

from django import forms

from orchestrator.accounts.audit import AuditFilter, load_actors, load_prefixes
from orchestrator.accounts.invitations import DAYS, MOST_DAYS
from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role, Scope
from orchestrator.benchmarks.selectors import load_projects
from orchestrator.web.forms import TeamForm

EXPIRIES = (("30", "in 30 days"), ("90", "in 90 days"), ("365", "in a year"), ("", "never"))


class TokenForm(TeamForm):
    name = forms.CharField(
        max_length=100, help_text="The program that uses it, such as “CI of server”."
    )
    scopes = forms.MultipleChoiceField(
        choices=Scope.choices,
        widget=forms.CheckboxSelectMultiple,
        label="Scopes",
        initial=[Scope.READ, Scope.RUN],
        help_text="Limited to your own permissions.",
    )
    project = forms.ChoiceField(required=False)
    days = forms.ChoiceField(choices=EXPIRIES, required=False, label="Expires", initial="90")

    def __init__(self, member: Member, data: Any = None, **options: Any) -> None:
        super().__init__(member, data, **options)
        projects = [(str(each.pk), each.name) for each in load_projects(member)]
        self.fields["project"].choices = [("", "all of the team"), *projects]  # type: ignore[attr-defined]

    def build_arguments(self) -> dict[str, Any]:
        """Return the arguments of `create_token`."""
        data = self.cleaned_data
        return {
            "name": data["name"],
            "scopes": data["scopes"],
            "project": int(data["project"]) if data["project"] else None,
            "days": int(data["days"]) if data["days"] else None,
        }


class InvitationForm(TeamForm):
    email = forms.EmailField(
        required=False, label="E-mail address", help_text="Empty: you pass on the link yourself."
    )
    role = forms.ChoiceField(initial=Role.MEMBER)
    days = forms.IntegerField(
        min_value=1, max_value=MOST_DAYS, initial=DAYS, label="Days until it expires"
    )

    def __init__(self, member: Member, data: Any = None, **options: Any) -> None:
        super().__init__(member, data, **options)
        self.fields["role"].choices = list_grantable_roles(member)  # type: ignore[attr-defined]


class AuditForm(TeamForm):
    """All fields are optional; they are parameters of the page's address."""

    actor = forms.ChoiceField(required=False, label="Who")
    action = forms.ChoiceField(required=False, label="What")
    text = forms.CharField(required=False, max_length=200, label="Object contains")
    since = forms.DateField(
        required=False, label="From (UTC)", widget=forms.DateInput(attrs={"type": "date"})
    )
    until = forms.DateField(
        required=False, label="Until (UTC)", widget=forms.DateInput(attrs={"type": "date"})
    )

    def __init__(self, member: Member, data: Any = None, **options: Any) -> None:
        super().__init__(member, data, **options)
        for name, choices in (("actor", load_actors(member)), ("action", load_prefixes(member))):
            field = self.fields[name]
            field.choices = [("", "any action" if name == "action" else "anyone")]  # type: ignore[attr-defined]
            field.choices += [(each, each) for each in choices]  # type: ignore[attr-defined]

    def build_filter(self) -> AuditFilter:
        """Return the valid fields; the others show an error and are ignored."""
        data = self.cleaned_data if self.is_valid() else getattr(self, "cleaned_data", {})
        return AuditFilter(**{name: value for name, value in data.items() if value})


def list_grantable_roles(member: Member) -> list[tuple[str, str]]:
    """Return the roles that the member may grant and withdraw."""
    if member.has(Role.OWNER):
        return [(str(value), str(label)) for value, label in Role.choices]
    if member.has(Role.MAINTAINER):
        return [(str(role), str(role.label)) for role in (Role.VIEWER, Role.MEMBER)]
    return []
