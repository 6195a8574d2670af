"""The form of a new channel."""

from django import forms

from orchestrator.alerts.channel_service import EVENTS, NewChannel
from orchestrator.alerts.models import ChannelKind, Digest
from orchestrator.web.forms import TeamForm


class ChannelForm(TeamForm):
    name = forms.CharField(max_length=100, help_text="Such as “Team chat”.")
    kind = forms.ChoiceField(choices=ChannelKind.choices)
    target = forms.CharField(
        max_length=2000,
        label="Where to",
        help_text="The address of the webhook, or e-mail addresses separated by commas.",
        widget=forms.TextInput(attrs={"spellcheck": "false", "autocomplete": "off"}),
    )
    events = forms.MultipleChoiceField(
        choices=[(str(kind), kind.label) for kind in EVENTS],
        initial=["alert.raised"],
        widget=forms.CheckboxSelectMultiple,
    )
    digest = forms.ChoiceField(
        choices=Digest.choices,
        label="How often",
        help_text="Digests are sent at each full hour, or at midnight, UTC.",
    )

    def build_request(self) -> NewChannel:
        data = self.cleaned_data
        return NewChannel(
            name=data["name"],
            kind=data["kind"],
            target=data["target"].strip(),
            events=tuple(data["events"]),
            digest=data["digest"],
        )
