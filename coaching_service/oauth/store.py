"""Registered OAuth clients in the database. They belong to no company."""

from __future__ import annotations

from datetime import datetime, timedelta

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import Documents, now
from coaching_service.core.database.portable import NotExported
from coaching_service.core.database.sharding import Unsharded
from coaching_service.oauth.models import NewOAuthClient, OAuthClient

# A client without a grant is deleted early; one with a grant is kept as long as the grant lasts without use.
UNUSED_LIFETIME = timedelta(days=2)
USED_LIFETIME = timedelta(days=90)

_clients = Documents[OAuthClient](
    "oauthClients",
    global_indexes=(Index(("clientId",), unique=True), Index(("expiresAt",), expire_after=0)),
    cross_company_reason="an application registers before any coach gives it access, and acts for many companies",
    placement=Unsharded("applications act for many companies, and few register"),
    transfer=NotExported("applications belong to no company"),
)


async def create_client(services: Services, client: NewOAuthClient) -> None:
    """Store a new client."""
    created_at = now()
    expires_at = created_at + UNUSED_LIFETIME
    await _clients.across_companies(services).insert_one({**client, "createdAt": created_at, "expiresAt": expires_at})


async def save_document(services: Services, client: NewOAuthClient, until: datetime) -> None:
    """Store a client as its metadata document describes it, which has to be read again after `until`."""
    at = now()
    await _clients.across_companies(services).update_one(
        {"clientId": client["clientId"]},
        {
            "$set": {**client, "documentUntil": until},
            "$setOnInsert": {"createdAt": at},
            "$max": {"expiresAt": at + UNUSED_LIFETIME},
        },
        upsert=True,
    )


async def find_client(services: Services, client_id: str) -> OAuthClient | None:
    """Return the client, or None."""
    client: OAuthClient | None = await _clients.across_companies(services).find_one(  # type: ignore[assignment]  # the driver's documents are untyped
        {"clientId": client_id, "expiresAt": {"$gt": now()}}
    )
    return client


async def extend_lifetime(services: Services, client_id: str) -> None:
    """Record that a client received or renewed tokens."""
    await _clients.across_companies(services).update_one(
        {"clientId": client_id}, {"$set": {"expiresAt": now() + USED_LIFETIME}}
    )
