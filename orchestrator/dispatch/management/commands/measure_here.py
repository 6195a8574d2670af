"""`manage.py measure_here` measures on this machine without a server, for `pitwall local`.

Standard output has a JSON object per line: `{"done", "total", "text"}`, and finally `{"report"}` or
`{"error"}`.
"""

import json
import secrets
import signal
import tempfile
from argparse import ArgumentParser
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from orchestrator.core.errors import InvalidRequestError, PitwallError
from orchestrator.dispatch.here.measuring import LocalMeasurement
from orchestrator.dispatch.here.report import build_local_report
from orchestrator.dispatch.here.rows import LocalRequest, build_rows
from orchestrator.dispatch.here.source import resolve_commit
from orchestrator.runs.models import Until

STOPS = (signal.SIGINT, signal.SIGTERM)


class Command(BaseCommand):
    help = __doc__
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--definition", type=Path, required=True)
        parser.add_argument("--repository", type=Path, required=True)
        parser.add_argument("--contender", required=True, metavar="REF")
        parser.add_argument("--baseline", metavar="REF")
        parser.add_argument("--cases", default="", metavar="EXPRESSION")
        parser.add_argument("--rounds", type=int)
        parser.add_argument("--builds", type=int)
        parser.add_argument("--until", default=Until.ROUNDS)
        parser.add_argument("--shared", action="store_true", help="other work runs here")
        parser.add_argument("--keep", type=Path, help="a work directory that is not removed")

    def handle(self, *args: Any, **options: Any) -> None:
        for number in STOPS:
            signal.signal(number, _stop)
        try:
            self._write(report=self._measured(options))
        except KeyboardInterrupt as error:
            raise SystemExit(130) from error
        except (PitwallError, OSError) as error:
            self._write(error=str(error))
            raise SystemExit(1) from error

    def _measured(self, options: dict[str, Any]) -> dict[str, Any]:
        refs = [each for each in (options["baseline"], options["contender"]) if each]
        shas = dict.fromkeys(resolve_commit(options["repository"], ref) for ref in refs)
        if len(shas) < len(refs):
            raise InvalidRequestError("baseline and contender are the same commit")
        rows = build_rows(
            LocalRequest(
                source=options["definition"].read_text(encoding="utf-8"),
                repository=options["repository"],
                shas=tuple(shas),
                cases=options["cases"],
                rounds=options["rounds"],
                builds=options["builds"],
                until=options["until"],
                shared=options["shared"],
                seed=secrets.randbits(32),
            )
        )
        kept = options["keep"]
        with nullcontext(str(kept)) if kept else tempfile.TemporaryDirectory() as folder:
            here = LocalMeasurement(rows, Path(folder).resolve(), self._write_progress)
            here.measure()
        return build_local_report(here.rows, here.results, here.notes, here.builds)

    def _write_progress(self, done: int, total: int, text: str) -> None:
        self._write(done=done, total=total, text=text)

    def _write(self, **fields: Any) -> None:
        self.stdout.write(json.dumps(fields))
        self.stdout.flush()


def _stop(*_: object) -> None:
    """Stop once: the following shutdown of the agent must not be interrupted."""
    for number in STOPS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt
