"""Forms for login and for new accounts."""

from typing import Any

from allauth.account.adapter import get_adapter
from django import forms
from django.contrib.auth.forms import AuthenticationForm


class PasswordForm(AuthenticationForm):
    """Failed tries are counted by user name and by address."""

    def clean(self) -> dict[str, object]:
        username, password = (self.cleaned_data.get(name) for name in ("username", "password"))
        if username is None or not password:
            return self.cleaned_data
        self.user_cache = get_adapter().authenticate(
            self.request, username=username, password=password
        )
        if self.user_cache is None:
            raise self.get_invalid_login_error()
        self.confirm_login_allowed(self.user_cache)
        return self.cleaned_data


class NewAccountForm(forms.Form):
    """The fields for an invited person without an account."""

    username = forms.CharField(max_length=150, help_text="Letters, digits and @ . + - _")
    password = forms.CharField(
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        strip=False,
        help_text="At least 12 characters.",
    )
    again = forms.CharField(
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        strip=False,
        label="Repeat the password",
    )

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if "again" in data and data.get("password") != data["again"]:
            self.add_error("again", "The passwords differ. Enter the same password twice.")
        return data


class FirstOwnerForm(NewAccountForm):
    """The fields for the first user of an instance."""

    team = forms.CharField(max_length=100, help_text="Such as “Web servers”.")
    field_order = ("team", "username", "password", "again")
