"""Hardware profiles, SSH keys, and the setup of hosts."""

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any
from uuid import UUID

from ninja import Schema
from pydantic import Field, StringConstraints

from orchestrator.api.schemas.common import MOST_WHOLE, Text, Whole
from orchestrator.api.schemas.hosts import build_profile_out
from orchestrator.core.storable_text import StorableText
from orchestrator.fleet.checks import CheckList
from orchestrator.fleet.login_certificates import MOST_CHARACTERS, read_certificate
from orchestrator.fleet.models import (
    CheckOutcome,
    CheckStep,
    Credential,
    HardwareProfile,
    HostCheck,
)
from orchestrator.fleet.services import NewHost
from orchestrator.fleet.ssh_settings import MOST_JUMPS

#: A whole number that fits into a column of the database.
Count = Annotated[Whole, Field(ge=1, le=MOST_WHOLE)]


class ProfileIn(Schema, extra="forbid"):
    """A hardware profile; omitted fields are unknown."""

    name: Annotated[Text, Field(max_length=100)]
    cpu_model: Annotated[Text, Field(max_length=120)] | None = None
    cores: Count | None = None
    threads: Count | None = None
    base_clock_mhz: Count | None = None
    boost_clock_mhz: Count | None = None
    memory_bytes: Annotated[Whole, Field(ge=1, lt=2**63)] | None = None
    os: Annotated[Text, Field(max_length=100)] | None = None
    price_per_hour: Annotated[Decimal, Field(ge=0, max_digits=9, decimal_places=4)] | None = None

    def facts(self) -> dict[str, Any]:
        return {**self.model_dump(), "cpu_model": self.cpu_model or "", "os": self.os or ""}


class ProfileDetailOut(Schema):
    """A hardware profile and its hosts; unknown values are null."""

    slug: str
    name: str
    cpu_model: str | None
    cores: int | None
    threads: int | None
    base_clock_mhz: int | None
    boost_clock_mhz: int | None
    memory_bytes: int | None
    os: str | None
    price_per_hour: float | None
    hosts: list[str]


class ProfilePage(Schema):
    profiles: list[ProfileDetailOut]
    next: str | None


class CredentialIn(Schema, extra="forbid"):
    """An SSH key for hosts. Its private key is never returned."""

    name: Annotated[Text, Field(max_length=100)]
    private_key: Annotated[StorableText, Field(max_length=20_000)] | None = Field(
        None, description="In OpenSSH format; default: a new Ed25519 key pair."
    )


class CertificateIn(Schema, extra="forbid"):
    certificate: Annotated[StorableText, Field(max_length=MOST_CHARACTERS)] = Field(
        description="The content of a file such as `id_ed25519-cert.pub`; empty: none."
    )


class CertificateOut(Schema):
    """A certificate of a key. Empty `principals` mean any user; `valid_until` is null without an
    end. `authority` is the fingerprint of the key that signed it."""

    key_id: str
    principals: list[str]
    authority: str
    valid_until: datetime | None


class CredentialOut(Schema):
    """`public_key` is the line for the host's `authorized_keys`, or the key to be signed."""

    id: UUID
    name: str
    public_key: str
    fingerprint: str
    certificate: CertificateOut | None
    created_at: datetime


class CredentialPage(Schema):
    credentials: list[CredentialOut]
    next: str | None


#: A jump host with its key.
JumpLine = Annotated[StorableText, StringConstraints(max_length=2500)]


class ConnectionIn(Schema, extra="forbid"):
    """The SSH settings of a host; `credential` is the id of a key."""

    address: Text
    port: Annotated[Whole, Field(ge=1, le=65535)] = 22
    login: Text
    credential: UUID
    work_dir: Text = ".pitwall"
    python: Text = "python3"
    jump_hosts: list[JumpLine] = Field(
        [],
        max_length=MOST_JUMPS,
        description="The SSH servers that connections pass, in order, each with its host key: "
        "`user@bastion.example:22 ssh-ed25519 AAAA…`. The same key logs in to them.",
    )


class HostIn(ConnectionIn, extra="forbid"):
    """A machine that is reached over SSH; `profile` is the slug of its hardware profile."""

    name: Text
    profile: Annotated[StorableText, StringConstraints(max_length=60)] = Field(
        "", description="Empty: created from the facts of the host, or matched with a known one."
    )
    run_as: Annotated[str, StringConstraints(max_length=32)] = Field(
        "", description="The user for measured code; empty: the login user."
    )

    def new_host(self) -> NewHost:
        return NewHost(
            name=self.name,
            profile_slug=self.profile,
            address=self.address,
            port=self.port,
            login=self.login,
            credential_id=self.credential,
            work_dir=self.work_dir,
            python=self.python,
            run_as=self.run_as,
            jump_hosts=self.jump_hosts,
        )


class HostKeyIn(Schema, extra="forbid"):
    host_key: Annotated[Text, Field(max_length=2000)] = Field(
        description="`shown_key` of the check after comparing it: `ssh-ed25519 AAAA…`."
    )


class CheckAgainIn(Schema, extra="forbid"):
    again: CheckStep | None = Field(
        None, description="The first step; default: the first step without a result."
    )


class RemedyOut(Schema):
    """What to do, and the command or line for it, if there is one."""

    text: str
    command: str | None


class CheckOut(Schema):
    """A step; `outcome` is null if it was not tried. `shown_key` waits to be pinned. `other_host`:
    the host of the team that is the same machine."""

    step: CheckStep
    title: str
    outcome: CheckOutcome | None
    message: str
    remedies: list[RemedyOut]
    shown_key: str | None
    other_host: UUID | None
    at: datetime | None


class ChecksOut(Schema):
    """`through`: all steps are complete, and the host may be used. `blocked`: the step that needs
    an action. `running`: a worker executes the next steps."""

    through: bool
    running: bool
    blocked: CheckStep | None
    steps: list[CheckOut]


def build_profile_detail_out(profile: HardwareProfile) -> ProfileDetailOut:
    price = profile.price_per_hour
    return ProfileDetailOut(
        **build_profile_out(profile).model_dump(),
        price_per_hour=None if price is None else float(price),
        hosts=sorted(host.name for host in profile.hosts.all()),
    )


def build_credential_out(credential: Credential) -> CredentialOut:
    return CredentialOut(
        id=credential.pk,
        name=credential.name,
        public_key=credential.public_key,
        fingerprint=credential.fingerprint,
        certificate=_build_certificate_out(credential),
        created_at=credential.created_at,
    )


def _build_certificate_out(credential: Credential) -> CertificateOut | None:
    certificate = read_certificate(credential)
    if certificate is None:
        return None
    return CertificateOut(
        key_id=certificate.key_id,
        principals=list(certificate.principals),
        authority=certificate.authority,
        valid_until=certificate.valid_until,
    )


def build_checks_out(checks: CheckList) -> ChecksOut:
    blocked = checks.blocked
    return ChecksOut(
        through=checks.is_through,
        running=checks.running,
        blocked=CheckStep(blocked.step) if blocked else None,
        steps=[_build_check_out(step, check) for step, check in checks.rows],
    )


def _build_check_out(step: CheckStep, check: HostCheck | None) -> CheckOut:
    return CheckOut(
        step=step,
        title=step.label,
        outcome=CheckOutcome(check.outcome) if check else None,
        message=check.message if check else "",
        remedies=[
            RemedyOut(text=text, command=command or None)
            for text, command in (check.remedies if check else [])
        ],
        shown_key=(check.shown_key or None) if check else None,
        other_host=check.other_host_id if check else None,
        at=check.at if check else None,
    )
