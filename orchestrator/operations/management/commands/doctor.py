"""`manage.py doctor`: checks this deployment and says what to fix."""

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from orchestrator.operations import doctor_servers, doctor_settings
from orchestrator.operations.doctor import Check, Finding, Outcome, run_checks

CHECKS: tuple[Check, ...] = (
    doctor_settings.check_debug,
    doctor_settings.check_secret_key,
    doctor_settings.check_base_url,
    doctor_settings.check_allowed_hosts,
    doctor_settings.check_trusted_proxies,
    doctor_settings.check_metrics_token,
    doctor_settings.check_local_repositories,
    doctor_settings.check_local_host,
    doctor_settings.check_static_files,
    doctor_settings.check_data_folder,
    doctor_settings.check_mail,
    doctor_servers.check_database,
    doctor_servers.check_migrations,
    doctor_servers.check_database_settings,
    doctor_servers.check_database_role,
    doctor_servers.check_clock,
    doctor_servers.check_sealed_secrets,
    doctor_servers.check_redis,
    doctor_servers.check_processes,
    doctor_servers.check_mail_server,
    doctor_servers.check_repositories,
    doctor_servers.check_hosts,
)


class Command(BaseCommand):
    help = "Check this deployment and report what to fix. Exit status 1 if something must be fixed."
    # Django's system checks would stop it at faults that it should report.
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        findings = []
        for finding in run_checks(CHECKS):
            findings.append(finding)
            if not options["json"]:
                self._print_finding(finding)
        bad = sum(finding.outcome == Outcome.FAILED for finding in findings)
        if options["json"]:
            report = {"ok": not bad, "findings": [asdict(finding) for finding in findings]}
            self.stdout.write(json.dumps(report, indent=2))
        if bad:
            raise CommandError(f"{bad} to fix", returncode=1)
        if not options["json"]:
            self.stdout.write("Nothing must be fixed.")

    def _print_finding(self, finding: Finding) -> None:
        self.stdout.write(f"{finding.outcome:<7} {finding.part}: {finding.message}")
        if finding.remedy:
            self.stdout.write(f"        -> {finding.remedy}")
