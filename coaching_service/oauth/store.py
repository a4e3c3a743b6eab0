"""Registered clients in the database. They belong to no company."""

from __future__ import annotations

from datetime import timedelta

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import Document, Documents, now

# A client that nobody lets in is forgotten; one that is let in, when its grant would have run out.
UNUSED_LIVES = timedelta(days=2)
USED_LIVES = timedelta(days=90)

_clients = Documents[Document](
    "oauthClients",
    global_indexes=(Index(("clientId",), unique=True), Index(("expiresAt",), expire_after=0)),
    cross_company_reason="a program registers before any coach lets it in, and acts for many companies",
)


async def add(services: Services, client: Document) -> None:
    """Store a new client."""
    at = now()
    await _clients.across_companies(services).insert_one({**client, "createdAt": at, "expiresAt": at + UNUSED_LIVES})


async def one(services: Services, client_id: str) -> Document | None:
    """The client, or None."""
    return await _clients.across_companies(services).find_one({"clientId": client_id, "expiresAt": {"$gt": now()}})


async def keep(services: Services, client_id: str) -> None:
    """Remember that a client was let in or renewed its tokens."""
    await _clients.across_companies(services).update_one(
        {"clientId": client_id}, {"$set": {"expiresAt": now() + USED_LIVES}}
    )
