"""The form that mends how a host is reached."""

from typing import Any
from uuid import UUID

from django import forms

from orchestrator.fleet.models import Host
from orchestrator.fleet.selectors import credentials_of
from orchestrator.web.forms import TeamForm

#: Nothing that is measured should run as root.
LOGIN_HELP = "Who to log in as; root only where measured code runs as another user."


class WayForm(TeamForm):
    """How a host is reached, to be mended."""

    renamed = {"credential_id": "credential"}

    address = forms.CharField(max_length=253, help_text="Host name or IP address.")
    port = forms.IntegerField(min_value=1, max_value=65535)
    login = forms.CharField(max_length=64, label="User", help_text=LOGIN_HELP)
    credential = forms.ChoiceField(label="Key to log in with")
    work_dir = forms.CharField(
        max_length=255, label="Work directory", help_text="Relative to the user's home."
    )
    python = forms.CharField(
        max_length=255, label="Python command", help_text="Python 3.9 or newer on that host."
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        keys = [(str(k.pk), f"{k.name} · {k.fingerprint}") for k in credentials_of(self.member)]
        self.fields["credential"].choices = keys  # type: ignore[attr-defined]

    def way(self) -> dict[str, Any]:
        """What `change_way` takes."""
        data = dict(self.cleaned_data)
        credential_id = UUID(data.pop("credential"))
        return {**data, "credential_id": credential_id}


def way_of(host: Host) -> dict[str, Any]:
    """The fields of WayForm as they are now."""
    same = {
        name: getattr(host, name) for name in ("address", "port", "login", "work_dir", "python")
    }
    return {**same, "credential": str(host.credential_id)}
