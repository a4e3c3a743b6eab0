"""Applications that identify themselves by the URL of a document (Client ID Metadata Documents)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import orjson
import pytest

from coaching_service.core import rate_limits
from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import now
from coaching_service.core.outbound import MAX_RESPONSE_BYTES, OutboundError, OutboundResponse
from coaching_service.oauth import clients, endpoints
from tests.support.mcp_client import McpHttpClient
from tests.support.oauth_flow import CALLBACK, OAuthApplication, approve
from tests.support.visitor import Visitor

_SUPPORTED = "client_id_metadata_document_supported"
URL = "https://assistant.example/oauth/client.json"
DOCUMENT = {"client_id": URL, "client_name": "An assistant", "redirect_uris": [CALLBACK, "http://localhost/callback"]}


class Site:
    """What the site of an application responds, and how often it was read."""

    def __init__(self) -> None:
        self.document: Any = DOCUMENT
        self.status, self.headers, self.reads = 200, {"Content-Type": "application/json"}, 0
        self.is_truncated = False
        self.error: OutboundError | None = None

    async def get(self, url: str, headers: Any = None) -> OutboundResponse:
        self.reads += 1
        if self.error is not None:
            raise self.error
        body = self.document if isinstance(self.document, bytes) else orjson.dumps(self.document)
        return OutboundResponse(self.status, self.headers, body[:MAX_RESPONSE_BYTES], self.is_truncated)


@pytest.fixture
async def site(services: Services, monkeypatch: pytest.MonkeyPatch) -> Site:
    await rate_limits.reset(services, "client-document", "127.0.0.1")
    await services.db["oauthClients"].delete_many({"clientId": {"$regex": "^https://"}})
    site = Site()
    monkeypatch.setattr(services.outbound, "get", site.get)
    return site


@pytest.fixture
def documented(unauthenticated: McpHttpClient) -> OAuthApplication:
    """An application that never registers."""
    return OAuthApplication(unauthenticated, {"client_id": URL, "redirect_uris": [CALLBACK]})


async def test_application_signs_in_with_the_url_of_its_document(
    browser: Visitor, documented: OAuthApplication, unauthenticated: McpHttpClient, site: Site, services: Services
) -> None:
    server = (await unauthenticated.send("GET", "/.well-known/oauth-authorization-server")).ok()
    assert server["client_id_metadata_document_supported"] is True

    page = (await browser.get(documented.authorize_url())).ok()
    page.says("Connect An assistant?", "described at assistant.example", "Redirects to claude.ai")
    tokens = await approve(browser, documented)
    assert (await unauthenticated.request("tools/list", Authorization=f"Bearer {tokens['access_token']}")).status == 200
    assert site.reads == 1, "the document is stored"

    stored = services.db["oauthClients"]
    await stored.update_one({"clientId": URL}, {"$set": {"documentUntil": now() - timedelta(seconds=1)}})
    tokens = (await documented.renew(tokens["refresh_token"])).ok()
    assert site.reads == 1, "tokens are renewed without reading it"
    site.document = {**DOCUMENT, "redirect_uris": ["https://assistant.example/callback"]}
    (await browser.get(documented.authorize_url())).ok(400).says("an address that is not its own")
    assert site.reads == 2
    loopback = documented.authorize_url(redirect_uri="https://assistant.example/callback", client_id=URL)
    (await browser.get(loopback)).ok().says("Connect An assistant?")


@pytest.mark.parametrize(
    ("control", "seconds"),
    [(None, 3600), ("max-age=600", 600), ("max-age=1", 300), ("public, max-age=99999999", 86400), ("no-store", 300)],
)
async def test_document_is_stored_as_long_as_it_allows(
    browser: Visitor, documented: OAuthApplication, site: Site, services: Services, control: str | None, seconds: int
) -> None:
    site.headers = {} if control is None else {"cache-control": control}
    (await browser.get(documented.authorize_url())).ok()
    stored = await services.db["oauthClients"].find_one({"clientId": URL})
    assert stored is not None
    assert abs((stored["documentUntil"] - now()).total_seconds() - seconds) < 60


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"document": {**DOCUMENT, "client_id": "https://assistant.example/other"}}, "of another application"),
        ({"document": [DOCUMENT]}, "of another application"),
        ({"document": b"<html>"}, "of another application"),
        ({"document": {**DOCUMENT, "redirect_uris": ["http://evil.example/"]}}, "redirect_uris.0"),
        ({"document": {**DOCUMENT, "redirect_uris": []}}, "redirect_uris"),
        ({"document": {**DOCUMENT, "client_name": None}}, "no name"),
        ({"document": {**DOCUMENT, "client_secret": "s"}}, "secret or key"),
        ({"document": {**DOCUMENT, "token_endpoint_auth_method": "private_key_jwt"}}, "secret or key"),
        ({"document": {**DOCUMENT, "grant_types": ["implicit"]}}, "grant_types"),
        ({"status": 404}, "not at its address"),
        ({"status": 302}, "not at its address"),
        ({"is_truncated": True}, "too long"),
        ({"error": OutboundError("ADDRESS_NOT_ALLOWED", "the name belongs to no public address")}, "cannot be read"),
    ],
)
async def test_unusable_document_is_shown_and_not_stored(
    browser: Visitor,
    documented: OAuthApplication,
    site: Site,
    services: Services,
    changed: dict[str, Any],
    words: str,
) -> None:
    for name, value in changed.items():
        setattr(site, name, value)
    (await browser.get(documented.authorize_url())).ok(400).says(words)
    assert await services.db["oauthClients"].find_one({"clientId": URL}) is None


@pytest.mark.parametrize(
    "client_id",
    [
        "http://assistant.example/client.json",
        "https://assistant.example",
        "https://assistant.example/",
        "https://assistant.example/a/../client.json",
        "https://assistant.example/client.json#me",
        "https://user@assistant.example/client.json",
        "https://127.0.0.1/client.json",
        "https://[::1]/client.json",
        "https://localhost/client.json",
        "https://assistant.example/\\client.json",
        "https://assistant.example/" + "x" * 2_000,
    ],
)
async def test_url_that_cannot_be_an_identifier_is_not_read(
    browser: Visitor, documented: OAuthApplication, site: Site, client_id: str
) -> None:
    (await browser.get(documented.authorize_url(client_id=client_id))).ok(400).says("is not registered")
    assert site.reads == 0


async def test_documents_read_for_one_address_are_limited(
    browser: Visitor, documented: OAuthApplication, site: Site
) -> None:
    site.status = 404
    for _ in range(60):
        (await browser.get(documented.authorize_url())).ok(400)
    assert (await browser.get(documented.authorize_url())).status == 429
    assert site.reads == 60


async def test_documents_can_be_turned_off(services: Services) -> None:
    assert clients.is_document_url(services, URL)
    off = replace(services, client_documents=False)
    assert not clients.is_document_url(off, URL)
    assert endpoints.authorization_server("https://a.example", documents=False)[_SUPPORTED] is False
