"""Pitwall deployed as docs/deployment.md describes it: its environment, its nginx, its gunicorn."""

import os
import re
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from devstack.instance import choose_port
from devstack.places import CHECKOUT
from orchestrator.core.clock import utc_now
from orchestrator.dispatch.tls import make_certificates
from tests.support.engine import own_database_url
from tests.support.html_pages import csrf_token
from tests.support.programs import program

PAGE = (CHECKOUT / "docs" / "deployment.md").read_text()
NAME = "bench.example.org"
_PATIENCE_S = 60
_NOBODY = 65534


def block(language: str) -> str:
    """The only fenced block of the page in this language, without its indentation."""
    (text,) = re.findall(rf"^ *```{language}\n(.*?)^ *```", PAGE, re.MULTILINE | re.DOTALL)
    return "\n".join(line.removeprefix("   ") for line in text.splitlines())


def environment() -> dict[str, str]:
    """What the page has in docker/.env, with the secret key of new-env.sh."""
    lines = (line.partition("=") for line in block("ini").splitlines())
    return {name: value for name, _, value in lines} | {"PITWALL_SECRET_KEY": secrets.token_hex(32)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The ports on loopback that stand for 80, 443 and 8000, the authority, and nginx's logs."""

    http: int
    https: int
    web: int
    authority: Path
    folder: Path
    logs: tuple[Path, Path]

    def logged(self) -> str:
        """What nginx wrote into its log of requests and into its log of errors."""
        return "".join(path.read_text() for path in self.logs)

    def curl(self, url: str, *options: str) -> "Answer":
        """One request of a client that keeps cookies as a browser does."""
        jar, body, head = (str(self.folder / name) for name in ("jar", "body", "head"))
        done = subprocess.run(
            [
                *("curl", "--silent", "--show-error", "--max-time", "30", "--noproxy", "*"),
                *("--connect-to", f"{NAME}:443:127.0.0.1:{self.https}"),
                *("--connect-to", f"{NAME}:80:127.0.0.1:{self.http}"),
                *("--cacert", str(self.authority), "--cookie", jar, "--cookie-jar", jar),
                *("--output", body, "--dump-header", head, "--write-out", "%{http_code}"),
                *(*options, url),
            ],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        text = Path(body).read_text() if Path(body).exists() else ""
        return Answer(status=int(done.stdout), body=text, head=Path(head).read_text())


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """`head` has the status lines and headers of all answers that were followed."""

    status: int
    body: str
    head: str

    def cookie(self, name: str) -> str:
        """The last Set-Cookie line of this name."""
        return str(re.findall(rf"(?im)^set-cookie: ({name}=.*?)\r?$", self.head)[-1])

    def form_token(self) -> str:
        return csrf_token(self.body)


@contextmanager
def deployed(tmp_path: Path, nginx: str, **changes: str) -> Iterator[Site]:
    """gunicorn with the documented environment, behind nginx with the configuration `nginx`."""
    web = choose_port()
    static = str(tmp_path / "static")
    own = {"DATABASE_URL": own_database_url(), "PITWALL_STATIC_ROOT": static}
    ours = {**environment(), **own, **changes}
    manage(ours, "collectstatic", "--noinput")
    argv = [
        *("-m", "gunicorn", "--config", "python:orchestrator.config.serving"),
        *("--workers", "1", "--bind", f"127.0.0.1:{web}"),
    ]
    with (
        _running([sys.executable, *argv], tmp_path / "web.log", env=_environ(ours), cwd=CHECKOUT),
        _nginx(nginx, web, tmp_path) as site,
    ):
        yield site


def manage(given: Mapping[str, str], *argv: str, status: int = 0) -> str:
    """What a management command prints with this environment; it must end with `status`."""
    done = subprocess.run(
        [sys.executable, "manage.py", *argv],
        cwd=CHECKOUT, env=_environ(given), capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def _environ(given: Mapping[str, str]) -> dict[str, str]:
    """Nothing of this machine's settings but where Redis is."""
    kept = ("PATH", "HOME", "LANG", "REDIS_URL", "PITWALL_QUEUE", "LD_LIBRARY_PATH")
    return {**{name: os.environ[name] for name in kept if name in os.environ}, **given}


@contextmanager
def _nginx(text: str, web: int, tmp_path: Path) -> Iterator[Site]:
    """nginx as a user without rights, on ports of loopback in place of 80 and 443."""
    with tempfile.TemporaryDirectory(prefix="pitwall-nginx-") as name:
        folder = Path(name)
        certificates = make_certificates([NAME], now=utc_now())
        (folder / "cert.pem").write_text(certificates.cert)
        (folder / "key.pem").write_text(certificates.key)
        authority = tmp_path / "ca.pem"
        authority.write_text(certificates.ca)
        http, https = choose_port(), choose_port()
        changed = {
            "listen 80;": f"listen 127.0.0.1:{http};",
            "listen 443 ssl;": f"listen 127.0.0.1:{https} ssl;",
            "http://127.0.0.1:8000;": f"http://127.0.0.1:{web};",
            "/etc/ssl/certs/bench.example.org.pem;": f"{folder}/cert.pem;",
            "/etc/ssl/private/bench.example.org.key;": f"{folder}/key.pem;",
            "/var/log/nginx/pitwall.log": f"{folder}/access.log",
        }
        for old, new in changed.items():
            assert old in text, f"docs/deployment.md has no {old}"
            text = text.replace(old, new)
        (folder / "nginx.conf").write_text(_AROUND.replace("SERVERS", text).replace("HERE", name))
        user = _NOBODY if os.geteuid() == 0 else None
        if user is not None:
            for path in (folder, *folder.iterdir()):
                os.chown(path, user, user)
        argv = [str(program("nginx")), "-p", name, "-c", f"{name}/nginx.conf", "-e", "stderr"]
        with _running(argv, tmp_path / "nginx.log", user=user, group=user, extra_groups=[]):
            logs = (folder / "access.log", tmp_path / "nginx.log")
            site = Site(
                http=http, https=https, web=web, authority=authority, folder=tmp_path, logs=logs
            )
            _wait_for(site)
            yield site


_AROUND = """
daemon off;
pid HERE/nginx.pid;
events {}
http {
    access_log off;
    client_body_temp_path HERE/body;
    proxy_temp_path HERE/proxy;
    fastcgi_temp_path HERE/fastcgi;
    uwsgi_temp_path HERE/uwsgi;
    scgi_temp_path HERE/scgi;
    SERVERS
}
"""


def _wait_for(site: Site) -> None:
    """Until gunicorn answers behind nginx."""
    give_up = time.monotonic() + _PATIENCE_S
    while site.curl(f"https://{NAME}/healthz", "--retry", "5", "--retry-connrefused").status != 200:
        assert time.monotonic() < give_up, "Pitwall does not answer behind nginx"
        time.sleep(0.2)


@contextmanager
def _running(argv: list[str], log: Path, **options: object) -> Iterator[None]:
    with log.open("wb") as out:
        process = subprocess.Popen(argv, stdout=out, stderr=out, **options)  # type: ignore[call-overload]
    try:
        yield
        assert process.poll() is None, log.read_text()[-3000:]
    finally:
        process.terminate()
        process.wait(20)
