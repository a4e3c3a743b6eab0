"""A small OpenID provider on loopback, which signs in whom a test names, and can make the mistakes of the tests."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import unquote

from aiohttp import BasicAuth, web
from aiohttp.test_utils import TestServer
from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey
from yarl import URL

CLIENT_ID, CLIENT_SECRET = "coaching", "a secret: of this service"


def new_key(name: str) -> RSAKey:
    """Return a new signing key of a provider."""
    return RSAKey.generate_key(2048, {"kid": name, "use": "sig", "alg": "RS256"})


@cache
def _first_key() -> RSAKey:
    """The key of each provider: to generate one takes a tenth of a second."""
    return new_key("first")


@dataclass
class Provider:
    """Signs `user` in at once. `claims` replace those of its tokens (None leaves one out), `answer` its answer."""

    issuer: str
    redirect_uri: str
    user: dict[str, Any] = field(default_factory=dict)
    claims: dict[str, Any] = field(default_factory=dict)
    answer: dict[str, str] = field(default_factory=dict)
    header: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    published: list[RSAKey] = field(default_factory=lambda: [_first_key()])
    signing_key: Any = None
    requests: list[str] = field(default_factory=list)
    issued: dict[str, dict[str, str]] = field(default_factory=dict)

    def id_token(self, nonce: str) -> str:
        """Return a token about the user."""
        now = int(time.time())
        usual = {"iss": self.issuer, "aud": CLIENT_ID, "exp": now + 300, "iat": now, "nonce": nonce, **self.user}
        claims = {name: value for name, value in {**usual, **self.claims}.items() if value is not None}
        key = self.signing_key or self.published[0]
        header = {"alg": "RS256", "kid": getattr(key, "kid", None), **self.header}
        if header["alg"] == "none":
            parts = [base64.urlsafe_b64encode(json.dumps(each).encode()).decode() for each in (header, claims)]
            return "".join(f"{part.rstrip('=')}." for part in parts)
        return jwt.encode(header, claims, key, algorithms=[str(header["alg"])])

    async def describe(self, _: web.Request) -> web.Response:
        """The metadata."""
        self.requests.append("metadata")
        known = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
        }
        return web.json_response({**known, **self.metadata})

    async def list_keys(self, _: web.Request) -> web.Response:
        """The public keys."""
        self.requests.append("keys")
        return web.json_response(KeySet(list(self.published)).as_dict(private=False))

    async def authorize(self, request: web.Request) -> web.Response:
        """Sign the user in, and answer with a code."""
        query = request.query
        assert (query["client_id"], query["redirect_uri"]) == (CLIENT_ID, self.redirect_uri)
        assert (query["response_type"], query["code_challenge_method"]) == ("code", "S256")
        assert set(query["scope"].split()) >= {"openid", "email"}
        code = secrets.token_urlsafe()
        self.issued[code] = {"nonce": query["nonce"], "challenge": query["code_challenge"]}
        answer = {"code": code, "state": query["state"], **self.answer}
        return web.Response(status=302, headers={"Location": str(URL(self.redirect_uri).with_query(answer))})

    async def exchange(self, request: web.Request) -> web.Response:
        """Return tokens for a code, once, to the client that has asked for it."""
        self.requests.append("token")
        body = await request.post()
        client = BasicAuth.decode(request.headers["Authorization"])
        issued = self.issued.pop(str(body["code"]), None)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(str(body["code_verifier"]).encode()).digest())
        is_client = (unquote(client.login), unquote(client.password)) == (CLIENT_ID, CLIENT_SECRET)
        is_right = issued is not None and challenge.decode().rstrip("=") == issued["challenge"]
        if not is_client or not is_right or issued is None or body["redirect_uri"] != self.redirect_uri:
            return web.json_response({"error": "invalid_grant"}, status=400)
        token = {"access_token": "access", "token_type": "Bearer", "id_token": self.id_token(issued["nonce"])}
        return web.json_response(token)

    async def describe_user(self, request: web.Request) -> web.Response:
        """The claims that the ID token has not."""
        assert request.headers["Authorization"] == "Bearer access"
        return web.json_response(self.metadata["user"])


@asynccontextmanager
async def running_provider(redirect_uri: str) -> AsyncIterator[Provider]:
    """Run a provider."""
    app = web.Application()
    server = TestServer(app, host="127.0.0.1")
    provider = Provider("", redirect_uri)
    app.router.add_get("/.well-known/openid-configuration", provider.describe)
    app.router.add_get("/keys", provider.list_keys)
    app.router.add_get("/authorize", provider.authorize)
    app.router.add_post("/token", provider.exchange)
    app.router.add_get("/user", provider.describe_user)
    await server.start_server()
    provider.issuer = str(server.make_url("")).rstrip("/")
    yield provider
    await server.close()
