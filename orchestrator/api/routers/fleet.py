"""Setup of hosts: hardware profiles, SSH keys, SSH settings and checks."""

from http import HTTPStatus
from uuid import UUID

from ninja import Router
from ninja.responses import Status

from orchestrator.accounts.models import Role
from orchestrator.api.auth import CallerRequest
from orchestrator.api.pages import Cursor, Limit, NumberCursor, cut_page
from orchestrator.api.schemas.common import Text
from orchestrator.api.schemas.fleet import (
    CertificateIn,
    CheckAgainIn,
    ChecksOut,
    ConnectionIn,
    CredentialIn,
    CredentialOut,
    CredentialPage,
    HostKeyIn,
    ProfileDetailOut,
    ProfileIn,
    ProfilePage,
    build_checks_out,
    build_credential_out,
    build_profile_detail_out,
)
from orchestrator.dispatch.checkup import request_checks
from orchestrator.fleet import login_certificates, selectors, services
from orchestrator.fleet.checks import begin_again, load_checks
from orchestrator.fleet.models import CheckStep
from orchestrator.fleet.ssh_settings import change_connection

router = Router(tags=["hosts"])


@router.get("/profiles", response=ProfilePage, summary="List hardware profiles, newest first")
def list_profiles(
    request: CallerRequest, cursor: NumberCursor = None, limit: Limit = 50
) -> ProfilePage:
    rows = selectors.load_profiles(request.auth.member)
    page, following = cut_page(rows, after=cursor, limit=limit)
    return ProfilePage(profiles=[build_profile_detail_out(each) for each in page], next=following)


@router.get("/profiles/{profile}", response=ProfileDetailOut, summary="Show a hardware profile")
def show_profile(request: CallerRequest, profile: Text) -> ProfileDetailOut:
    return build_profile_detail_out(selectors.load_profile(request.auth.member, profile))


@router.put(
    "/profiles/{profile}", response=ProfileDetailOut, summary="Create or change a hardware profile"
)
def save_profile(request: CallerRequest, profile: Text, payload: ProfileIn) -> ProfileDetailOut:
    saved = services.save_profile(member=request.auth.member, slug=profile, **payload.facts())
    return build_profile_detail_out(saved)


@router.delete("/profiles/{profile}", response={204: None}, summary="Delete a hardware profile")
def delete_profile(request: CallerRequest, profile: Text) -> Status[None]:
    """409 if a host has the profile, or if a job asked for it. It cannot be restored."""
    services.delete_profile(member=request.auth.member, slug=profile)
    return Status(HTTPStatus.NO_CONTENT, None)


@router.get("/credentials", response=CredentialPage, summary="List SSH keys")
def list_credentials(
    request: CallerRequest, cursor: Cursor = None, limit: Limit = 50
) -> CredentialPage:
    """Newest first, without their private keys. For maintainers."""
    member = request.auth.member
    member.require(Role.MAINTAINER, to="see the keys")
    page, following = cut_page(selectors.load_credentials(member), after=cursor, limit=limit)
    return CredentialPage(credentials=[build_credential_out(each) for each in page], next=following)


@router.post("/credentials", response={201: CredentialOut}, summary="Add an SSH key")
def add_credential(request: CallerRequest, payload: CredentialIn) -> Status[CredentialOut]:
    """For maintainers. The private key is stored encrypted and never returned."""
    made = services.add_credential(
        member=request.auth.member, name=payload.name, private_key=payload.private_key
    )
    return Status(HTTPStatus.CREATED, build_credential_out(made))


@router.put(
    "/credentials/{uuid:credential_id}/certificate",
    response=CredentialOut,
    summary="Set the certificate of an SSH key",
)
def set_certificate(
    request: CallerRequest, credential_id: UUID, payload: CertificateIn
) -> CredentialOut:
    """For maintainers. All hosts with the key are logged in to with the certificate from now on."""
    changed = login_certificates.set_certificate(
        member=request.auth.member,
        credential_id=credential_id,
        certificate=payload.certificate,
    )
    return build_credential_out(changed)


@router.put(
    "/hosts/{uuid:host_id}/ssh", response=ChecksOut, summary="Change the SSH settings of a host"
)
def change_host_connection(
    request: CallerRequest, host_id: UUID, payload: ConnectionIn
) -> ChecksOut:
    """For maintainers. A pinned key stays pinned; the checks start again."""
    given = payload.model_dump(exclude={"credential"})
    host = change_connection(
        member=request.auth.member,
        host_id=host_id,
        credential_id=payload.credential,
        **given,
    )
    begin_again(host=host, step=CheckStep.REACH)
    return build_checks_out(load_checks(host))


@router.put("/hosts/{uuid:host_id}/key", response=ChecksOut, summary="Pin the key of a host")
def pin_host_key(request: CallerRequest, host_id: UUID, payload: HostKeyIn) -> ChecksOut:
    """For maintainers, after comparing the key. The host has to show it once more."""
    host = services.pin_host_key(
        member=request.auth.member, host_id=host_id, host_key=payload.host_key
    )
    begin_again(host=host, step=CheckStep.KEY)
    return build_checks_out(load_checks(host))


@router.get("/hosts/{uuid:host_id}/checks", response=ChecksOut, summary="Show a host's checks")
def show_checks(request: CallerRequest, host_id: UUID) -> ChecksOut:
    return build_checks_out(load_checks(selectors.load_own_host(request.auth.member, host_id)))


@router.post("/hosts/{uuid:host_id}/checks", response={202: ChecksOut}, summary="Check a host")
def check_host(
    request: CallerRequest, host_id: UUID, payload: CheckAgainIn | None = None
) -> Status[ChecksOut]:
    """For maintainers. A worker executes the steps until all are complete or one needs an action,
    for example a pinned key. This takes up to a minute: request the checks until `running` is
    false."""
    again = payload.again if payload else None
    checks = request_checks(member=request.auth.member, host_id=host_id, again=again)
    return Status(HTTPStatus.ACCEPTED, build_checks_out(checks))
