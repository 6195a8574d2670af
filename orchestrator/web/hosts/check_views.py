"""Set up a host step by step: the tried steps, their results and remedies."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.core.errors import ConflictError, NotFoundError
from orchestrator.dispatch.checkup import request_checks
from orchestrator.dispatch.remediation import build_host_setup, build_key_installation
from orchestrator.fleet.checks import CheckList, begin_again, load_checks
from orchestrator.fleet.host_settings import may_become
from orchestrator.fleet.login_certificates import read_certificate, set_certificate
from orchestrator.fleet.models import CheckStep, Host, HostState, HostTransport
from orchestrator.fleet.selectors import load_own_host
from orchestrator.fleet.services import pin_host_key
from orchestrator.fleet.ssh_settings import change_connection
from orchestrator.transport.address import HostKey
from orchestrator.web.access import for_member
from orchestrator.web.hosts.forms import CertificateForm, SshForm, build_initial_ssh


@for_member
def checks(request: HttpRequest, member: Member, host_id: UUID) -> HttpResponse:
    """Show the checks. A POST starts the next one; `again` names the step to start with.

    A script polls the list while the worker runs checks.
    """
    host = load_own_host(member, host_id)
    alone = bool(request.headers.get("HX-Request"))
    if request.method != "POST":
        steps = load_checks(host)
        return _render_steps(request, host, steps) if alone else checks_page(request, member, host)
    again = request.POST.get("again", "")
    step = CheckStep(again) if again in CheckStep.values else None
    try:
        steps = request_checks(member=member, host_id=host_id, again=step)
    except ConflictError as error:
        if not alone:
            raise
        return _render_steps(request, host, load_checks(host), problem=str(error))
    if not alone:
        return redirect("host-checks", host_id)
    return _render_steps(request, host, steps)


@for_member
@require_safe
def setup_script(request: HttpRequest, member: Member, host_id: UUID) -> HttpResponse:
    """Download the script that prepares the machine of a host for Pitwall."""
    host = load_own_host(member, host_id)
    if host.transport == HostTransport.EXTERNAL:
        raise NotFoundError(f"{host} has no setup script: Pitwall does not measure there")
    headers = {"Content-Disposition": 'attachment; filename="pitwall-host-setup.sh"'}
    script = build_host_setup(host)
    return HttpResponse(script, content_type="text/x-shellscript; charset=utf-8", headers=headers)


@for_member
@require_POST
def accept_host_key(request: HttpRequest, member: Member, host_id: UUID) -> HttpResponse:
    """Pin the key that the member has compared; the host has to show it again."""
    host_key = request.POST.get("host_key", "")
    host = pin_host_key(member=member, host_id=host_id, host_key=host_key)
    begin_again(host=host, step=CheckStep.KEY)
    return redirect("host-checks", host_id)


@for_member
@require_POST
def ssh_settings(request: HttpRequest, member: Member, host_id: UUID) -> HttpResponse:
    host = load_own_host(member, host_id)
    member.require(Role.MAINTAINER, to="change the SSH settings of a host")
    form = SshForm(member, request.POST)
    if form.submit(
        lambda: change_connection(member=member, host_id=host.pk, **form.build_arguments())
    ):
        begin_again(host=host, step=CheckStep.REACH)
        return redirect("host-checks", host_id)
    return checks_page(request, member, host, form=form)


@for_member
@require_POST
def certificate(request: HttpRequest, member: Member, host_id: UUID) -> HttpResponse:
    """Set the certificate of the key of a host, for all hosts with this key."""
    host = load_own_host(member, host_id)
    member.require(Role.MAINTAINER, to="change the certificate of a key")
    key = host.credential
    if key is None:
        raise NotFoundError(f"{host} has no key to log in with")
    form = CertificateForm(member, request.POST)
    if form.submit(
        lambda: set_certificate(member=member, credential_id=key.pk, **form.cleaned_data)
    ):
        begin_again(host=host, step=CheckStep.LOGIN)
        return redirect("host-checks", host_id)
    return checks_page(request, member, host, certificate_form=form)


def checks_page(
    request: HttpRequest,
    member: Member,
    host: Host,
    *,
    form: SshForm | None = None,
    certificate_form: CertificateForm | None = None,
) -> HttpResponse:
    context = _build_context(host, load_checks(host)) | {
        "form": form or SshForm(member, initial=build_initial_ssh(host)),
        "changeable": host.transport == HostTransport.SSH and member.has(Role.MAINTAINER),
        **_build_certificate(member, host, certificate_form),
    }
    sent = form or certificate_form
    return render(request, "hosts/checks.html", context, status=sent.status if sent else 200)


def _build_certificate(
    member: Member, host: Host, form: CertificateForm | None
) -> dict[str, object]:
    key = host.credential
    if key is None:
        return {}
    initial = {"certificate": key.certificate}
    return {
        "certificate": read_certificate(key),
        "certificate_form": form or CertificateForm(member, initial=initial),
        "hosts_with_key": key.hosts.count(),
    }


def _render_steps(
    request: HttpRequest, host: Host, steps: CheckList, *, problem: str = ""
) -> HttpResponse:
    context = _build_context(host, steps) | {"problem": problem, "swap": True}
    return render(request, "hosts/checks.html#steps", context)


def _build_installation(host: Host, steps: CheckList) -> str:
    """Return the command that installs the key of a new host, until the login was tried."""
    is_tried = any(step == CheckStep.LOGIN and check is not None for step, check in steps.rows)
    return "" if is_tried or host.last_seen_at else build_key_installation(host)


def _build_context(host: Host, steps: CheckList) -> dict[str, object]:
    blocked = steps.blocked
    return {
        "host": host,
        "checks": steps,
        "next_title": steps.next_step.label if steps.next_step else "",
        "shown_key": HostKey.parse(blocked.shown_key) if blocked and blocked.shown_key else None,
        "may_be_released": may_become(host, HostState.READY),
        "starts_next": (
            steps.next_step is not None
            and not steps.running
            and host.state == HostState.UNCONFIRMED
        ),
        "busy": hasattr(host, "lease"),
        "install_key": _build_installation(host, steps),
    }
