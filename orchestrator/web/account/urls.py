"""URLs of login and account; the prefixed names are those that django-allauth uses."""

from allauth.account.views import password_change, password_set, reauthenticate
from allauth.mfa.base.views import authenticate
from allauth.mfa.base.views import reauthenticate as reauthenticate_by_code
from allauth.mfa.recovery_codes.views import (
    download_recovery_codes,
    generate_recovery_codes,
    view_recovery_codes,
)
from allauth.mfa.totp.views import activate_totp, deactivate_totp
from django.contrib.auth.views import LogoutView
from django.urls import path
from django.views.decorators.cache import never_cache

from orchestrator.accounts.oidc import PROVIDER
from orchestrator.web.account import views

_AT = {"provider_id": PROVIDER}
_login = views.SignIn.as_view()
urlpatterns = [
    path("login", _login, name="account_login"),
    path("login", _login, name="login"),
    path("login/code", authenticate, name="mfa_authenticate"),
    path("login/oidc", views.leave_for_provider, _AT, name="openid_connect_login"),
    path("login/oidc/callback", views.provider_callback, _AT, name="openid_connect_callback"),
    path("login/cancelled", views.sign_in_cancelled, name="socialaccount_login_cancelled"),
    path("logout", LogoutView.as_view(), name="logout"),
    path("account/", views.account, name="mfa_index"),
    path("account/", views.account, name="account"),
    path("account/links/<int:link_id>/remove", views.unlink, name="account-unlink"),
    path("account/password", password_change, name="account_change_password"),
    path("account/password/set", password_set, name="account_set_password"),
    path("account/confirm", reauthenticate, name="account_reauthenticate"),
    path("account/confirm/code", reauthenticate_by_code, name="mfa_reauthenticate"),
    path("account/second-factor/on", never_cache(activate_totp), name="mfa_activate_totp"),
    path("account/second-factor/off", deactivate_totp, name="mfa_deactivate_totp"),
    path("account/codes/", never_cache(view_recovery_codes), name="mfa_view_recovery_codes"),
    path("account/codes/new", generate_recovery_codes, name="mfa_generate_recovery_codes"),
    path("account/codes.txt", download_recovery_codes, name="mfa_download_recovery_codes"),
    path("setup/<str:secret>", views.setup, name="setup"),
]
