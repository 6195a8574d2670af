"""Permissions for pages and for operations of the API: the only table.

`web/access.py` and `api/auth.py` check it first. Services check the role again, since schedules and
commands call them too. Selectors return nothing of another team, nor of another project than that
of a token. A page or operation without a row is for owners only, and a test fails until it has one.
`manage.py permissions` prints the table.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role, Scope

#: Below all roles: everybody, and everybody who is signed in, whatever their role.
ANYBODY, PERSON = "anybody", "person"
VIEWER, MEMBER, MAINTAINER, OWNER = (str(role) for role in Role.values)
READ, RUN, RESULTS, MANAGE = (str(scope) for scope in Scope.values)
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRow:
    """The lowest role to view a page, and to submit its form; None if it has no such method."""

    see: str | None = None
    do: str | None = None

    def role(self, method: str) -> str:
        return (self.see if method in SAFE else self.do) or OWNER


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRow:
    """The lowest role, and the scope of a token; `whole_team`: not with a token of one project."""

    role: str
    scope: str
    whole_team: bool = False


def _build_page_rows(names: str, **row: str) -> dict[str, PageRow]:
    return {name: PageRow(**row) for name in names.split()}


def _build_operation_rows(
    lines: str, role: str, scope: str, whole_team: bool = False
) -> dict[str, OperationRow]:
    row = OperationRow(role=role, scope=scope, whole_team=whole_team)
    return {" ".join(line.split()): row for line in lines.strip().splitlines()}


#: By URL name in `web/<area>/urls.py`.
PAGES: Mapping[str, PageRow] = {
    **_build_page_rows("favicon definition-schema command-line documents document", see=ANYBODY),
    **_build_page_rows("login account_login invitation setup", see=ANYBODY, do=ANYBODY),
    **_build_page_rows("openid_connect_callback socialaccount_login_cancelled", see=ANYBODY),
    # Forges authenticate with a signature, clients of Codespeed with a token (as POST /results).
    **_build_page_rows(
        "logout openid_connect_login forge-hook codespeed-results codespeed-result", do=ANYBODY
    ),
    # For a user, whatever their role in teams; and for the steps of a login.
    **_build_page_rows(
        """account mfa_index account_change_password account_set_password account_reauthenticate
        mfa_authenticate mfa_reauthenticate mfa_activate_totp mfa_deactivate_totp
        mfa_generate_recovery_codes""",
        see=PERSON,
        do=PERSON,
    ),
    **_build_page_rows("account-unlink", see=PERSON, do=PERSON),
    **_build_page_rows("mfa_view_recovery_codes mfa_download_recovery_codes", see=PERSON),
    **_build_page_rows(
        """overview runs queue run run-progress run-trials run-refs run-idle-checks build-log trial
        trial-artifact trial-histogram validity load-tools compare compare-case compare-choose
        history history-data history-commit history-point alerts alert reports report report-export
        report-new hosts host benchmark-diff catalogue catalogue-suite references reference imports
        import schedules backfills backfill benchmarks members sharing settings-quotas
        project-badges badge-value badge-verdict embed channel delivery project-fetch
        host-setup-script""",
        see=VIEWER,
    ),
    # Forms that viewers may view, to learn what can be requested.
    **_build_page_rows(
        """run-new backfill-new benchmark-new benchmark project-new project-import report-edit
        reference-import import-new profiles settings alerts-change report-save""",
        see=VIEWER,
        do=MEMBER,
    ),
    **_build_page_rows("run-preview benchmark-check team-switch", do=VIEWER),
    **_build_page_rows(
        """backfill-cancel run-rerun run-pin run-cancel run-cancel-part run-measure-now
        history-baseline annotation-new annotation-edit history-dismiss history-confirm
        alert-change alert-confirm host-golden host-calibrate host-maintenance host-release
        host-reserve host-reservation-end
        benchmark-repository-definition project-pin case-visibility reference-catalogue
        import-start import-discard schedule-enable channel-test delivery-redeliver forge-answer
        project-fetch-now catalogue-run""",
        do=MEMBER,
    ),
    **_build_page_rows("share-new schedule-edit", see=MEMBER, do=MEMBER),
    # Actions that ask first: a GET shows the question.
    **_build_page_rows("team-leave", see=VIEWER, do=VIEWER),
    **_build_page_rows(
        """annotation-delete history-baseline-remove host-golden-remove host-golden-reset
        project-pin-remove reference-remove report-delete schedule-delete share-revoke
        token-revoke""",
        see=MEMBER,
        do=MEMBER,
    ),
    **_build_page_rows(
        """benchmark-delete channel-delete host-remove host-retire invitation-withdraw
        member-remove profile-delete project-access-host-key-forget project-access-key
        project-access-remove project-delete project-forge-remove project-forge-secret
        project-reclone project-secret-delete""",
        see=MAINTAINER,
        do=MAINTAINER,
    ),
    **_build_page_rows(
        """project project-access project-changes project-forge project-public project-repository
        channels host-checks report-visibility""",
        see=VIEWER,
        do=MAINTAINER,
    ),
    **_build_page_rows("host-new project-secret project-secrets", see=MAINTAINER, do=MAINTAINER),
    **_build_page_rows(
        """host-key-accept host-ssh host-certificate host-settings member-role invitation-new
        channel-enable
        project-access-host-key project-access-host-key-reject project-restore
        benchmark-restore measure-here""",
        do=MAINTAINER,
    ),
    **_build_page_rows("audit audit-export deleted", see=MAINTAINER),
}

#: By method and path below /api/v1, as in the OpenAPI document.
OPERATIONS: Mapping[str, OperationRow] = {
    **_build_operation_rows(
        """
        GET /alerts
        GET /alerts/{alert_id}
        GET /annotations
        GET /annotations/{annotation_id}
        GET /baselines
        GET /benchmarks
        GET /benchmarks/{project}/{benchmark}/definitions
        GET /benchmarks/{project}/{benchmark}/definitions/{version}
        GET /benchmarks/{project}/{benchmark}/definitions/{version}/changes
        GET /builds/{build_id}/log
        GET /change-points
        GET /change-points/{change_id}
        GET /comparisons
        GET /comparisons/csv
        GET /comparisons/markdown
        POST /definitions/check
        GET /history
        GET /hosts
        GET /hosts/{host_id}
        GET /hosts/{host_id}/calibrations
        GET /latency
        GET /latency/histogram
        GET /load-tools
        GET /projects/{project}/changes
        GET /projects/{project}/definition-files
        GET /projects/{project}/forge
        GET /projects/{project}/forge/webhooks
        GET /projects/{project}/forge/requests
        GET /benchmark-requests/{request_id}
        GET /projects/{project}/pins
        GET /projects/{project}/proposal
        GET /projects/{project}/repository-access
        GET /projects/{project}/removals
        GET /projects/{project}/retention
        GET /benchmarks/{project}/{benchmark}
        GET /benchmarks/{project}/{benchmark}/dependents
        GET /hosts/{host_id}/checks
        GET /profiles
        GET /profiles/{profile}
        GET /projects
        GET /projects/{project}
        GET /projects/{project}/commits
        GET /projects/{project}/dependents
        GET /projects/{project}/refs
        GET /references
        GET /references/{reference_id}
        GET /references/{reference_id}/figures
        GET /reports
        POST /reports/preview
        GET /reports/{name}
        GET /reports/{name}/csv
        GET /reports/{name}/markdown
        GET /reports/{name}/source
        GET /results
        GET /results/imports
        GET /results/imports/{import_id}
        GET /queue
        GET /runs
        POST /runs/plan
        GET /backfills
        GET /backfills/{backfill_id}
        POST /backfills/plan
        GET /runs/{run_id}
        GET /runs/{run_id}/trials
        GET /schedules
        GET /schedules/{schedule_id}
        GET /suites
        GET /benchmarks/{project}/{benchmark}/badges
        GET /projects/{project}/public
        GET /share-links
        GET /validity-rules
        GET /trials/{trial_id}
        GET /trials/{trial_id}/artifacts/{name}
        GET /trials/{trial_id}/histogram
        GET /trials/{trial_id}/latency
        """,
        VIEWER,
        READ,
    ),
    **_build_operation_rows(
        """
        POST /backfills
        POST /backfills/{backfill_id}/cancel
        POST /runs
        POST /runs/{run_id}/cancel
        POST /runs/{run_id}/measure-now
        POST /runs/{run_id}/rerun
        POST /runs/{run_id}/cases/{case}/cancel
        POST /runs/{run_id}/jobs/{job_id}/cancel
        POST /runs/{run_id}/pull-request
        POST /alerts/{alert_id}/confirm
        POST /change-points/{change_id}/confirm
        """,
        MEMBER,
        RUN,
    ),
    **_build_operation_rows(
        """
        POST /hosts/{host_id}/calibrations
        """,
        MEMBER,
        RUN,
        whole_team=True,
    ),
    **_build_operation_rows(
        """
        POST /results
        POST /results/files
        POST /results/histories
        POST /results/imports/{import_id}/start
        DELETE /results/imports/{import_id}
        """,
        MEMBER,
        RESULTS,
    ),
    **_build_operation_rows(
        """
        POST /alerts/{alert_id}/accept
        POST /alerts/{alert_id}/acknowledge
        PUT /alerts/{alert_id}/assignee
        POST /alerts/{alert_id}/dismiss
        PUT /alerts/{alert_id}/note
        POST /alerts/{alert_id}/reopen
        POST /alerts/{alert_id}/resolve
        POST /alerts/{alert_id}/silence
        POST /annotations
        DELETE /annotations/{annotation_id}
        PUT /annotations/{annotation_id}
        POST /baselines
        DELETE /baselines/{baseline_id}
        POST /benchmark-requests/{request_id}/approve
        POST /benchmark-requests/{request_id}/decline
        PUT /benchmarks/{project}/{benchmark}/cases/{case}/visibility
        POST /benchmarks/{project}/{benchmark}/definitions
        POST /benchmarks/{project}/{benchmark}/repository-definition
        POST /benchmarks/{project}/{benchmark}/try
        POST /change-points/{change_id}/dismiss
        POST /projects/{project}/fetch
        POST /projects/{project}/imports
        POST /projects/{project}/pins
        DELETE /projects/{project}/pins/{pin_id}
        POST /schedules
        DELETE /schedules/{schedule_id}
        PATCH /schedules/{schedule_id}
        PUT /schedules/{schedule_id}
        POST /reports
        DELETE /reports/{name}
        PUT /reports/{name}
        POST /share-links
        DELETE /share-links/{link_id}
        """,
        MEMBER,
        MANAGE,
    ),
    **_build_operation_rows(
        """
        POST /channels/{channel_id}/test
        POST /deliveries/{delivery_id}/redeliver
        POST /projects
        PUT /profiles/{profile}
        POST /references
        POST /references/published
        DELETE /references/{reference_id}
        DELETE /hosts/{host_id}/golden
        PUT /hosts/{host_id}/golden
        POST /hosts/{host_id}/golden/reset
        POST /hosts/{host_id}/maintenance
        POST /hosts/{host_id}/release
        POST /hosts/{host_id}/reservation
        DELETE /hosts/{host_id}/reservation
        POST /tokens
        DELETE /tokens/{token_id}
        """,
        MEMBER,
        MANAGE,
        whole_team=True,
    ),
    **_build_operation_rows(
        """
        DELETE /benchmarks/{project}/{benchmark}
        DELETE /projects/{project}
        PATCH /projects/{project}
        POST /projects/{project}/clone
        PUT /projects/{project}/changes
        PUT /projects/{project}/forge
        DELETE /projects/{project}/forge
        POST /projects/{project}/forge/secret
        PUT /projects/{project}/public
        PUT /reports/{name}/visibility
        DELETE /projects/{project}/repository-access
        DELETE /projects/{project}/repository-access/host-key
        DELETE /projects/{project}/repository-access/offered-host-key
        POST /projects/{project}/repository-access/deploy-key
        POST /projects/{project}/repository-access/host-key
        PUT /projects/{project}/repository-access/token
        GET /projects/{project}/secrets
        DELETE /projects/{project}/secrets/{name}
        GET /projects/{project}/secrets/{name}
        PUT /projects/{project}/secrets/{name}
        PUT /projects/{project}/retention
        """,
        MAINTAINER,
        MANAGE,
    ),
    **_build_operation_rows(
        """
        POST /channels
        DELETE /channels/{channel_id}
        PATCH /channels/{channel_id}
        GET /credentials
        POST /credentials
        PUT /credentials/{credential_id}/certificate
        POST /hosts
        DELETE /hosts/{host_id}
        POST /hosts/{host_id}/checks
        PUT /hosts/{host_id}/key
        PUT /hosts/{host_id}/ssh
        PATCH /hosts/{host_id}
        POST /hosts/{host_id}/retire
        DELETE /profiles/{profile}
        GET /deleted
        POST /deleted/projects/{project_id}/restore
        POST /deleted/benchmarks/{benchmark_id}/restore
        GET /audit
        GET /audit/csv
        GET /audit/json-lines
        PUT /members/{username}
        DELETE /members/{username}
        GET /invitations
        DELETE /invitations/{invitation_id}
        """,
        MAINTAINER,
        MANAGE,
        whole_team=True,
    ),
    **_build_operation_rows(
        """
        GET /channels
        GET /channels/{channel_id}
        GET /channels/{channel_id}/deliveries
        GET /deliveries/{delivery_id}
        GET /quotas
        GET /members
        GET /tokens
        """,
        VIEWER,
        READ,
        whole_team=True,
    ),
}
#: For operations without a row.
CLOSED = OperationRow(role=OWNER, scope=MANAGE, whole_team=True)


def check_page(member: Member, name: str, method: str) -> None:
    """Raise PermissionRefusedError unless the member may use the page with this method.

    A GET of a page that only accepts forms is answered by the page itself: 405.
    """
    row = PAGES.get(name, PageRow())
    if row.do and not row.see and method in SAFE:
        return
    role = row.role(method)
    if role in Role.values:
        member.require(role, to="do this")


def check_operation(member: Member, name: str) -> None:
    """Raise PermissionRefusedError unless the member and their token may use the operation."""
    row = OPERATIONS.get(name, CLOSED)
    member.require_scope(row.scope, to=f"use {name}")
    if row.whole_team:
        member.require_whole_team(to=f"use {name}")
    member.require(row.role, to=f"use {name}")
