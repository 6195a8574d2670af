"""Where the code of a server listens, and which paths it answers, as far as its text shows it."""

import re

from orchestrator.benchmarks.proposals.source_files import CODE_FILES, SourceFiles

#: Code that reads the port from the variable PORT.
_READS_PORT = re.compile(
    r"environ(?:\.get)?[\[(]\s*['\"]PORT['\"]|getenv\(\s*['\"]PORT['\"]|process\.env\.PORT\b"
    r"|env::var\(\s*\"PORT\"|\$\{PORT[:}]",
    re.IGNORECASE,
)
_LISTENS = re.compile(
    r"\.listen\(\s*(\d{4,5})\b|ListenAndServe\(\s*\"[^\":]{0,40}:(\d{4,5})\""
    r"|\bport\s{0,4}[=:]\s{0,4}(\d{4,5})\b|bind\(\s*\"[^\":]{0,40}:(\d{4,5})\"",
    re.IGNORECASE,
)
_ROUTE = re.compile(
    r"(?:\b(?:get|route|Handle|HandleFunc|GetMapping|path)\s{0,4}\(|\bpath\s{0,4}==|#\[get\()"
    r"\s{0,8}[\"'](?:GET )?(/[A-Za-z0-9_./-]{0,100})[\"']",
    re.IGNORECASE,
)
_HEALTH = ("/health", "/healthz", "/readyz", "/ready", "/livez", "/live", "/ping", "/status")


def reads_port_variable(files: SourceFiles) -> str:
    """Return the first file that reads the variable PORT; empty if none does."""
    return next((path for path, text in _list_code(files) if _READS_PORT.search(text)), "")


def find_listening_port(files: SourceFiles) -> tuple[int, str] | None:
    """Return a port that the code always listens on, with the file; ports below 1024 need root."""
    for path, text in _list_code(files):
        for match in _LISTENS.finditer(text):
            port = int(next(group for group in match.groups() if group))
            if 1024 <= port < 1 << 16:
                return port, path
    return None


def find_routes(files: SourceFiles) -> list[str]:
    """Return the plain paths that the code answers to GET, in their order, each once."""
    texts = (text for _, text in _list_code(files))
    return list(dict.fromkeys(route for text in texts for route in _ROUTE.findall(text)))


def choose_paths(routes: list[str]) -> tuple[str, str]:
    """Return the path that shows that the server is ready, and the path of the load."""
    ready = next((path for path in _HEALTH if path in routes), "")
    others = [path for path in routes if path not in _HEALTH]
    load = "/" if "/" in routes or not others else others[0]
    return ready or load, load


def _list_code(files: SourceFiles) -> list[tuple[str, str]]:
    known = [path for path in CODE_FILES if path in files]
    named = [path for path in files if path.endswith((".js", ".mjs", ".cjs", ".ts"))]
    return [(path, files[path]) for path in dict.fromkeys((*known, *named))]
