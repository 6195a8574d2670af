"""Start Traefik with a configuration from the command line, in place of this process.

TLS 1.3 only, so that every client negotiates the same version and cipher with the same server.
"""

import argparse
import json
import os
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("traefik", "bind", "port", "cert", "key", "folder"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--to", required=True, help="host:port,host:port,…")
    asked = parser.parse_args()
    routes = Path(asked.folder) / "routes.yml"
    # JSON is valid YAML.
    routes.write_text(json.dumps(routes_of(asked.to.split(","), asked.cert, asked.key)))
    argv = [
        asked.traefik,
        "--global.checknewversion=false",
        "--global.sendanonymoususage=false",
        "--log.level=ERROR",
        f"--entrypoints.web.address={asked.bind}:{asked.port}",
        "--entrypoints.web.http.tls=true",
        "--providers.file.watch=false",
        f"--providers.file.filename={routes}",
    ]
    os.execv(argv[0], argv)


def routes_of(servers: list[str], cert: str, key: str) -> dict[str, object]:
    """Return Traefik's dynamic configuration, which distributes requests to `servers` in turn."""
    certificate = {"certFile": cert, "keyFile": key}
    return {
        "http": {
            "routers": {"all": {"rule": "PathPrefix(`/`)", "service": "httpbin", "tls": {}}},
            "services": {
                "httpbin": {
                    "loadBalancer": {"servers": [{"url": f"http://{each}"} for each in servers]}
                }
            },
        },
        "tls": {
            "stores": {"default": {"defaultCertificate": certificate}},
            "options": {"default": {"minVersion": "VersionTLS13", "maxVersion": "VersionTLS13"}},
        },
    }


if __name__ == "__main__":
    main()
