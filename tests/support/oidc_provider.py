"""An OpenID Connect provider on loopback; every user is the person that the test has set.

with start_provider() as provider:
    provider.person = {"sub": "7", "email": "ada@example.org", "email_verified": True}
"""

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

_KEY_ID = "key-1"


def _new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@dataclass(slots=True, kw_only=True)
class Provider:
    """`wrong` changes the claims of ID tokens; `forges` signs them with an unknown key."""

    issuer: str = ""
    client_id: str = "pitwall"
    client_secret: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    person: dict[str, Any] = field(default_factory=lambda: {"sub": "1"})
    wrong: dict[str, Any] = field(default_factory=dict)
    forges: bool = False
    key: rsa.RSAPrivateKey = field(default_factory=_new_key)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    tokens: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def discovery(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "jwks_uri": f"{self.issuer}/jwks",
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
        }

    def jwks(self) -> dict[str, Any]:
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key()))
        return {"keys": [{**public, "kid": _KEY_ID, "alg": "RS256", "use": "sig"}]}

    def authorize(self, request: dict[str, str]) -> str:
        """Return the redirect of the browser, with a code that is valid once."""
        assert (request["client_id"], request["response_type"]) == (self.client_id, "code")
        assert "openid" in request["scope"].split()
        code = secrets.token_urlsafe(16)
        self.codes[code] = request
        answer = urlencode({"code": code, "state": request["state"]})
        return f"{request['redirect_uri']}?{answer}"

    def token(self, given: dict[str, str]) -> dict[str, Any] | None:
        """Return the tokens for a code; None if client, code, address or PKCE are wrong."""
        query = self.codes.pop(given["code"], None)
        if query is None or given["client_secret"] != self.client_secret:
            return None
        digest = hashlib.sha256(given["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if (challenge, given["redirect_uri"]) != (query["code_challenge"], query["redirect_uri"]):
            return None
        self.tokens.append(secrets.token_urlsafe(16))
        return {
            "access_token": self.tokens[-1],
            "token_type": "Bearer",
            "id_token": self._id_token(),
        }

    def _id_token(self) -> str:
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": self.client_id, "iat": now, "exp": now + 60}
        key = _new_key() if self.forges else self.key
        payload = {**claims, **self.person, **self.wrong}
        return jwt.encode(payload, key, algorithm="RS256", headers={"kid": _KEY_ID})


@contextmanager
def start_provider() -> Iterator[Provider]:
    provider = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            provider.requests.append(parts.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            if parts.path == "/authorize":
                self.send_response(302)
                self.send_header("Location", provider.authorize(query))
                self.end_headers()
            elif parts.path == "/jwks":
                self._send(provider.jwks())
            elif parts.path == "/userinfo":
                known = [f"Bearer {token}" for token in provider.tokens]
                self._send(provider.person if self.headers["Authorization"] in known else None)
            else:
                is_discovery = parts.path == "/.well-known/openid-configuration"
                self._send(provider.discovery() if is_discovery else None)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self._send(provider.token({name: each[0] for name, each in parse_qs(body).items()}))

        def _send(self, answer: dict[str, Any] | None) -> None:
            content = json.dumps({"error": "invalid"} if answer is None else answer).encode()
            self.send_response(400 if answer is None else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        provider.issuer = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield provider
        finally:
            server.shutdown()
            thread.join()
