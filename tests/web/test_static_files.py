"""Everything that is referred to can be collected under a name with its hash."""

from pathlib import Path
from typing import Any

from django.conf import settings as project_settings
from django.core.management import call_command
from django.templatetags.static import static


def test_all_static_files_are_collected_with_hashes(settings: Any, tmp_path: Path) -> None:
    settings.STATIC_ROOT = str(tmp_path / "static")
    settings.STORAGES = {
        **project_settings.STORAGES,
        "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
    }
    call_command("collectstatic", interactive=False, verbosity=0)

    for name in ("css/tokens.css", "js/compare.js", "vendor/htmx/htmx.min.js", "favicon.svg"):
        assert Path(settings.STATIC_ROOT, Path(static(name)).relative_to("/static/")).is_file()
