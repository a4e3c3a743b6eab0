"""Client ID Metadata Documents: applications whose identifier is the https URL of a document that describes them.

Source: draft-ietf-oauth-client-id-metadata-document-00, which revision 2025-11-25 of MCP adopts.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import cast
from urllib.parse import urlsplit

import orjson

from coaching_service.core import rate_limits
from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import now
from coaching_service.core.outbound import OutboundError, OutboundResponse
from coaching_service.oauth import clients
from coaching_service.oauth.clients import OAuthClient, OAuthError, describe_client

_MAX_READS = 60  # from one network address in 15 minutes
_MAX_URL = 2_000
_MIN_CACHE, _USUAL_CACHE, _MAX_CACHE = timedelta(minutes=5), timedelta(hours=1), timedelta(hours=24)
_MAX_AGE = re.compile(r"\bmax-age\s*=\s*(\d{1,9})", re.ASCII | re.IGNORECASE)
_PRINTABLE = re.compile(r"[\x21-\x7e]+", re.ASCII)


class DocumentRejected(Exception):
    """A document cannot be read, or does not describe a client that may sign in; the message may be shown."""


def is_document_url(services: Services, client_id: str) -> bool:
    """Return whether an identifier is the URL of a document: https, with a path, without dot segments or fragment."""
    if not services.client_documents or "://" not in client_id:
        return False
    if len(client_id) > _MAX_URL or not _PRINTABLE.fullmatch(client_id) or "\\" in client_id:
        return False
    try:
        services.outbound.canonical_url(client_id)
    except OutboundError:
        return False
    parts = urlsplit(client_id)
    return parts.path not in ("", "/") and not parts.fragment and not {".", ".."} & {*parts.path.split("/")}


async def find_client(services: Services, client_id: str, network_address: str) -> OAuthClient | None:
    """Return a registered client, or the one that the document at the URL `client_id` describes now.

    The document is stored for as long as its `Cache-Control` allows, five minutes to a day, by default an hour. None if
    there is no such client. Raises DocumentRejected, and TooManyRequests if this address has too many documents read.
    """
    stored = await clients.find_client(services, client_id)
    if not is_document_url(services, client_id):
        return stored
    if stored is not None and stored.get("documentUntil", now()) > now():
        return stored
    await rate_limits.limit(services, "client-document", network_address, _MAX_READS)
    return await _read(services, client_id)


async def _read(services: Services, url: str) -> OAuthClient:
    try:
        response = await services.outbound.get(url, {"Accept": "application/json"})
    except OutboundError as error:
        raise DocumentRejected(f"The description of the application cannot be read: {error.message}") from None
    try:
        client = describe_client(url, _parse(response, url), secret=None)
    except OAuthError as error:
        raise DocumentRejected(f"The description of the application is not valid: {error.description}") from None
    until = _cached_until(response)
    await clients.save_document(services, client, until)
    return cast("OAuthClient", {**client, "documentUntil": until})


def _parse(response: OutboundResponse, url: str) -> dict[str, object]:
    """Return the metadata in a response. Raises DocumentRejected."""
    if response.status != 200 or response.is_truncated:
        raise DocumentRejected("The description of the application is not at its address, or is too long")
    try:
        document = orjson.loads(response.body)
    except orjson.JSONDecodeError:
        document = None
    if not isinstance(document, dict) or document.get("client_id") != url:
        raise DocumentRejected("The description of the application is of another application")
    if document.get("token_endpoint_auth_method", "none") != "none" or "client_secret" in document:
        raise DocumentRejected("The application signs in with a secret or key, which is not supported for this kind")
    if not isinstance(document.get("client_name"), str):
        raise DocumentRejected("The description of the application has no name")
    return {**document, "token_endpoint_auth_method": "none"}


def _cached_until(response: OutboundResponse) -> datetime:
    control = next((value for name, value in response.headers.items() if name.lower() == "cache-control"), "")
    age = _MAX_AGE.search(control)
    period = timedelta(seconds=int(age[1])) if age else _USUAL_CACHE
    if "no-store" in control.lower() or "no-cache" in control.lower():
        period = _MIN_CACHE
    return now() + min(max(period, _MIN_CACHE), _MAX_CACHE)
