"""The steps of OAuth: those of an assistant, and those of the coach's browser."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from aiohttp.test_utils import TestServer

from tests.conftest import PASSWORD
from tests.support.assistants import pkce
from tests.support.client import CoachClient, Reply
from tests.support.mcp_client import McpHttpClient
from tests.support.visitor import HtmlPage, Visitor

CALLBACK = "https://claude.ai/api/mcp/auth_callback"


@dataclass
class OAuthApplication:
    """A registered client with its state during a flow."""

    http: McpHttpClient
    registered: dict[str, Any]
    verifier: str = ""
    state: str = field(default_factory=lambda: secrets.token_urlsafe(8) + "%3A&=+ü")

    @property
    def resource(self) -> str:
        """The resource that it requests tokens for."""
        return f"{self.http.base_url}/mcp"

    def authorize_url(self, **changed: Any) -> str:
        """Return the URL to open in a browser. None omits a parameter, a list sends it several times."""
        self.verifier, challenge = pkce()
        parameters = {
            "response_type": "code",
            "client_id": self.registered["client_id"],
            "redirect_uri": self.registered["redirect_uris"][0],
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            "state": self.state,
            "scope": "mcp",
            "resource": self.resource,
            **changed,
        }
        query = urlencode({name: value for name, value in parameters.items() if value is not None}, doseq=True)
        return f"/oauth/authorize?{query}"

    async def exchange(self, code: str, **changed: Any) -> Reply:
        """Exchange a code for tokens."""
        usual = {"redirect_uri": self.registered["redirect_uris"][0], "code_verifier": self.verifier}
        return await self.post("/oauth/token", grant_type="authorization_code", code=code, **{**usual, **changed})

    async def renew(self, refresh_token: str, **changed: Any) -> Reply:
        """Exchange a refresh token for new ones."""
        return await self.post("/oauth/token", grant_type="refresh_token", refresh_token=refresh_token, **changed)

    async def post(self, path: str, *, headers: dict[str, str] | None = None, **fields: Any) -> Reply:
        """Send a form as this client, by fields. None omits a field."""
        known = {"client_id": self.registered["client_id"], "client_secret": self.registered.get("client_secret")}
        sent = {name: value for name, value in {**known, **fields}.items() if value is not None}
        form = {"Content-Type": "application/x-www-form-urlencoded", **(headers or {})}
        return await self.http.send("POST", path, data=urlencode(sent, doseq=True), headers=form)


async def register(http: McpHttpClient, **metadata: Any) -> OAuthApplication:
    """Register a client; by default a public one with one redirect URI."""
    sent = {"redirect_uris": [CALLBACK], "token_endpoint_auth_method": "none", "client_name": "Claude", **metadata}
    reply = await http.send("POST", "/oauth/register", json=sent)
    return OAuthApplication(http, reply.ok(201))


async def signed_in(public_server: TestServer, coach: CoachClient) -> Visitor:
    """Return a browser in which the coach is signed in."""
    visitor = Visitor(public_server)
    (await visitor.sign_in(str(coach.ctx.caller.email), PASSWORD)).ok()
    return visitor


async def decide(visitor: Visitor, application: OAuthApplication, decision: str = "allow", **changed: Any) -> HtmlPage:
    """Submit the coach's decision on the consent page, and return the redirect."""
    page = (await visitor.get(application.authorize_url(**changed))).ok()
    return await visitor.submit_only(page, "/oauth/authorize", decision=decision)


def redirect_query(page: HtmlPage) -> dict[str, str]:
    """Assert that a page is a redirect, and return its query."""
    assert page.status == 302, f"{page.status}: {page.text[:300]}"
    return {name: values[0] for name, values in parse_qs(urlsplit(page.headers["Location"]).query).items()}


async def approve(visitor: Visitor, application: OAuthApplication, **changed: Any) -> dict[str, Any]:
    """Return the tokens of an OAuth application that the coach has authorized."""
    code = redirect_query(await decide(visitor, application, **changed))["code"]
    tokens: dict[str, Any] = (await application.exchange(code)).ok()
    return tokens
