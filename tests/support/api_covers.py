"""Which operations of the API do what each page does, or why none does.

`tests/api/test_completeness.py` holds it against the tables of `accounts/permissions.py`: a page
without an entry fails, and so does an operation that is not there.
"""

from collections.abc import Iterator, Mapping


def _each(lines: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """`page  GET /a, POST /b`: a line for each page, more operations on lines that begin with a
    comma."""
    for line in lines.strip().replace("\n        ,", ",").splitlines():
        page, _, operations = line.strip().partition(" ")
        yield page, tuple(" ".join(each.split()) for each in operations.split(","))


_VERSION = "/benchmarks/{project}/{benchmark}/definitions/{version}"

#: Page → the operations that do the same.
COVERED: Mapping[str, tuple[str, ...]] = dict(
    _each(
        f"""
        overview GET /runs, GET /hosts, GET /projects, GET /benchmarks, GET /schedules
        runs GET /runs
        run GET /runs/{{run_id}}
        run-progress GET /runs/{{run_id}}
        run-trials GET /runs/{{run_id}}/trials
        run-refs GET /projects/{{project}}/refs, GET /projects/{{project}}/commits
        run-new POST /runs, POST /schedules, GET /benchmarks, GET /hosts
        run-preview POST /runs/plan
        run-again POST /runs/{{run_id}}/again
        run-keep POST /projects/{{project}}/pins
        run-cancel POST /runs/{{run_id}}/cancel
        run-cancel-part POST /runs/{{run_id}}/jobs/{{job_id}}/cancel
        , POST /runs/{{run_id}}/cases/{{case}}/cancel
        build-log GET /builds/{{build_id}}/log
        trial GET /trials/{{trial_id}}, GET /trials/{{trial_id}}/latency
        trial-artifact GET /trials/{{trial_id}}/artifacts/{{name}}
        trial-histogram GET /trials/{{trial_id}}/histogram
        validity GET /validity-rules
        load-tools GET /load-tools
        compare GET /comparisons, GET /comparisons/csv, GET /comparisons/markdown
        compare-case GET /comparisons, GET /latency
        compare-choose GET /benchmarks, GET /projects/{{project}}/commits
        history GET /history, GET /annotations, GET /baselines, GET /change-points
        history-data GET /history
        history-commit GET /history, GET /annotations
        history-point GET /history, GET /latency, GET /latency/histogram
        history-baseline POST /baselines
        history-baseline-remove DELETE /baselines/{{baseline_id}}
        history-dismiss POST /change-points/{{change_id}}/dismiss
        history-confirm POST /change-points/{{change_id}}/confirm
        annotation-new POST /annotations
        annotation-edit PUT /annotations/{{annotation_id}}
        annotation-delete DELETE /annotations/{{annotation_id}}
        alerts GET /alerts
        alert GET /alerts/{{alert_id}}
        alert-change POST /alerts/{{alert_id}}/accept, POST /alerts/{{alert_id}}/acknowledge
        , POST /alerts/{{alert_id}}/dismiss, POST /alerts/{{alert_id}}/reopen
        , POST /alerts/{{alert_id}}/resolve, POST /alerts/{{alert_id}}/silence
        , PUT /alerts/{{alert_id}}/assignee, PUT /alerts/{{alert_id}}/note
        alerts-change GET /alerts, POST /alerts/{{alert_id}}/acknowledge
        , POST /alerts/{{alert_id}}/dismiss, POST /alerts/{{alert_id}}/resolve
        , POST /alerts/{{alert_id}}/silence, PUT /alerts/{{alert_id}}/assignee
        alert-confirm POST /alerts/{{alert_id}}/confirm, POST /change-points/{{change_id}}/confirm
        reports GET /reports
        report GET /reports/{{name}}
        report-export GET /reports/{{name}}/csv, GET /reports/{{name}}/markdown
        report-new POST /reports/preview, GET /benchmarks
        report-save POST /reports, GET /reports
        report-edit PUT /reports/{{name}}, GET /reports/{{name}}/source
        report-delete DELETE /reports/{{name}}
        hosts GET /hosts
        host GET /hosts/{{host_id}}, GET /hosts/{{host_id}}/calibrations
        host-new POST /hosts, GET /credentials, POST /credentials
        host-checks POST /hosts/{{host_id}}/checks, GET /hosts/{{host_id}}/checks
        host-pin PUT /hosts/{{host_id}}/key
        host-way PUT /hosts/{{host_id}}/way
        host-remove DELETE /hosts/{{host_id}}
        host-care PATCH /hosts/{{host_id}}
        host-golden PUT /hosts/{{host_id}}/golden
        host-golden-remove DELETE /hosts/{{host_id}}/golden
        host-golden-forget POST /hosts/{{host_id}}/golden/forget
        host-calibrate POST /hosts/{{host_id}}/calibrations
        host-maintenance POST /hosts/{{host_id}}/maintenance
        host-release POST /hosts/{{host_id}}/release
        host-retire POST /hosts/{{host_id}}/retire
        profiles GET /profiles, PUT /profiles/{{profile}}
        benchmarks GET /benchmarks
        benchmark-new POST /benchmarks/{{project}}/{{benchmark}}/definitions, GET /suites
        benchmark-check POST /definitions/check
        benchmark POST /benchmarks/{{project}}/{{benchmark}}/definitions, GET {_VERSION}
        , GET /benchmarks/{{project}}/{{benchmark}}
        , GET /benchmarks/{{project}}/{{benchmark}}/definitions
        benchmark-diff GET {_VERSION}/changes
        benchmark-keep POST /benchmarks/{{project}}/{{benchmark}}/keep
        catalogue GET /suites
        catalogue-suite GET /suites
        project-new POST /projects, GET /projects
        project-import GET /projects/{{project}}/definition-files
        , POST /projects/{{project}}/imports
        project GET /projects/{{project}}, GET /projects/{{project}}/retention
        , PUT /projects/{{project}}/retention, GET /projects/{{project}}/pins
        , GET /projects/{{project}}/removals
        project-changes GET /projects/{{project}}/changes, PUT /projects/{{project}}/changes
        project-pin POST /projects/{{project}}/pins
        project-pin-remove DELETE /projects/{{project}}/pins/{{pin_id}}
        project-public GET /projects/{{project}}/public, PUT /projects/{{project}}/public
        project-badges GET /benchmarks/{{project}}/{{benchmark}}/badges
        sharing GET /share-links, GET /projects/{{project}}/public
        share-new POST /share-links
        share-revoke DELETE /share-links/{{link_id}}
        references GET /references
        reference GET /references/{{reference_id}}, GET /references/{{reference_id}}/figures
        reference-import POST /references, GET /references
        reference-catalogue POST /references/published
        reference-remove DELETE /references/{{reference_id}}
        schedules GET /schedules
        schedule-edit PUT /schedules/{{schedule_id}}, GET /schedules/{{schedule_id}}
        schedule-enable PATCH /schedules/{{schedule_id}}
        schedule-delete DELETE /schedules/{{schedule_id}}
        settings GET /tokens, POST /tokens
        settings-limits GET /limits
        token-revoke DELETE /tokens/{{token_id}}
        members GET /members, GET /invitations
        member-role PUT /members/{{username}}
        member-remove DELETE /members/{{username}}
        invitation-new POST /invitations
        invitation-withdraw DELETE /invitations/{{invitation_id}}
        audit GET /audit
        audit-export GET /audit/csv, GET /audit/json-lines
        """
    )
)

_SIGNING_IN = "a person signs in with a browser; a program has a token"
_ACCOUNT = "of a person, for whom a token cannot speak: it is of one team"
_PICTURE = "a picture at its own address; GET /benchmarks/{project}/{benchmark}/badges tells it"
_FILE = "a file at its own address, for everybody"

#: Page → why no operation does the same.
NOT_COVERED: Mapping[str, str] = {
    **dict.fromkeys(("login", "logout", "account_login", "openid_connect_login"), _SIGNING_IN),
    **dict.fromkeys(("openid_connect_callback", "socialaccount_login_cancelled"), _SIGNING_IN),
    **dict.fromkeys(("mfa_authenticate", "account_reauthenticate", "mfa_reauthenticate"),
                    _SIGNING_IN),
    **dict.fromkeys(
        ("account", "account-unlink", "account_change_password", "account_set_password",
         "mfa_index", "mfa_activate_totp", "mfa_deactivate_totp", "mfa_generate_recovery_codes",
         "mfa_view_recovery_codes", "mfa_download_recovery_codes"),
        _ACCOUNT,
    ),
    "invitation": "whoever is invited joins as a person, before there is a token",
    "team-leave": "a person's own decision; their tokens end with it",
    "team-switch": "a token is of one team",
    "forge-hook": "forges send to it, and prove with a signature who they are",
    **dict.fromkeys(("badge-value", "badge-verdict", "embed"), _PICTURE),
    **dict.fromkeys(("favicon", "command-line", "definition-schema"), _FILE),
}  # fmt: skip
