"""`report.zip`: a report with its pictures, data and evidence, which opens without a network."""

import io
import stat
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from django.conf import settings
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe

from orchestrator.accounts.members import Member
from orchestrator.accounts.visitors import Visitor
from orchestrator.core.clock import utc_now
from orchestrator.reports.bundle import (
    BundleFile,
    describe_limits,
    iterate_definitions,
    iterate_evidence,
)
from orchestrator.reports.charts import Chart, build_charts
from orchestrator.reports.exports import report_csv, report_json, report_markdown
from orchestrator.reports.hardware import HEADS
from orchestrator.reports.provenance import load_provenance
from orchestrator.reports.report_builder import Report
from orchestrator.reports.report_spec import to_yaml
from orchestrator.reports.rerun import load_rerun, render_script
from orchestrator.web.reports.claim_views import build_claims_view
from orchestrator.web.reports.presenters import build_table_views

SCRIPT = "rerun.sh"
_STYLES = ("tokens", "base", "layout", "components", "results", "report-charts")


def build_bundle(member: Member, report: Report, page: str) -> Iterable[bytes]:
    """Return the parts of the ZIP file; `page` is the address of the report.

    Visitors get the files of what they see on its page. The files of trials are read while the
    response is sent.
    """
    visits = isinstance(member, Visitor)
    small = [*_list_documents(report, page, with_evidence=not visits)]
    evidence = () if visits else iterate_evidence(report)
    return _stream_zip(chain(small, evidence))


def _list_documents(report: Report, page: str, *, with_evidence: bool) -> Iterator[BundleFile]:
    charts = [chart for each in build_charts(report) for chart in each]
    texts = {
        "report.md": report_markdown(report, address=_get_path),
        "report.csv": report_csv(report),
        "report.json": report_json(report),
        **{_get_path(chart): chart.render_file() for chart in charts},
    }
    files = [BundleFile(name=name, content=text.encode()) for name, text in texts.items()]
    if with_evidence:
        files.append(BundleFile(name="report.yaml", content=to_yaml(report.spec).encode()))
        files += iterate_definitions(report)
        if rerun := load_rerun(report):
            script = render_script(report, rerun, page)
            files.append(BundleFile(name=SCRIPT, content=script.encode()))
    names = [file.name for file in files]
    yield BundleFile(
        name="index.html",
        content=_render_page(report, page, names, with_evidence=with_evidence).encode(),
    )
    yield from files


def _get_path(chart: Chart) -> str:
    return f"charts/{chart.file_name}"


def _render_page(report: Report, page: str, files: list[str], *, with_evidence: bool) -> str:
    record = load_provenance(report)
    context: dict[str, Any] = {
        "offline": True,
        "page": page,
        "report": report,
        "tables": build_table_views(report, _get_path, linked=False),
        "claims": build_claims_view(report, record),
        "provenance": record,
        "hardware_heads": HEADS,
        "files": files,
        "with_evidence": with_evidence,
        "limits": describe_limits(report) if with_evidence else "",
        "style": _read_styles(),
    }
    return render_to_string("reports/bundle.html", context)


@cache
def _read_styles() -> SafeString:
    folder = settings.BASE_DIR / "static" / "css"
    return mark_safe("\n".join((folder / f"{name}.css").read_text() for name in _STYLES))


class _Outlet(io.RawIOBase):
    """A file that cannot seek; `take` returns what was written since the last call."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        whole = b"".join(self._parts)
        self._parts.clear()
        return whole


def _stream_zip(files: Iterable[BundleFile]) -> Iterator[bytes]:
    """Yield a ZIP file in parts; at most one of its files is in memory."""
    outlet = _Outlet()
    now = utc_now().timetuple()[:6]
    with ZipFile(outlet, "w", ZIP_DEFLATED) as archive:
        for file in files:
            info = ZipInfo(f"report/{file.name}", now)
            info.compress_type = ZIP_DEFLATED
            mode = 0o755 if file.name == SCRIPT else 0o644
            info.external_attr = (stat.S_IFREG | mode) << 16
            archive.writestr(info, file.content)
            yield outlet.take()
    yield outlet.take()
