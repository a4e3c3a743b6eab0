"""OAuth clients: registration (RFC 7591), also by the owner of a company, and authentication at the token endpoint."""

from __future__ import annotations

import hmac
import re
import time
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import NotRequired, TypedDict, cast
from urllib.parse import urlencode, urlsplit

import orjson

from coaching_service.core import audit, rate_limits
from coaching_service.core.auth import OFFLINE_SCOPE, REST_SCOPES, new_token, token_hash
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.declared import Index, NotExported, Unsharded
from coaching_service.core.database.documents import Documents, now
from coaching_service.core.errors import Conflict, InvalidFields, NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.outbound import OutboundError, OutboundResponse
from coaching_service.people import assistants
from coaching_service.people.account import CompanyDeleted
from coaching_service.people.assistants import SCOPES, Scope
from coaching_service.people.webhooks import service as webhooks

# --- OAuth errors, in the shape of RFC 6749 ---------------------------------------------------------------------------


class OAuthError(Exception):
    """A rejected request: `error` is an OAuth error code, `description` a sentence for developers."""

    def __init__(self, error: str, description: str, status: int = 400, headers: dict[str, str] | None = None) -> None:
        super().__init__(description)
        self.error, self.description, self.status, self.headers = error, description, status, headers or {}

    def body(self) -> dict[str, str]:
        """Return the JSON object of the response."""
        return {"error": self.error, "error_description": self.description}


def invalid_request(description: str) -> OAuthError:
    """Return the error for a parameter that is missing, malformed or repeated."""
    return OAuthError("invalid_request", description)


def invalid_client(*, challenge: bool) -> OAuthError:
    """Return the error for an unknown client or a wrong secret, after which clients register again."""
    headers = {"WWW-Authenticate": 'Basic realm="oauth"'} if challenge else {}
    return OAuthError("invalid_client", "The client is unknown or its secret is wrong: register again", 401, headers)


# --- Redirect URIs: which may be registered, and which match a registered one -----------------------------------------


MAX_LENGTH = 2_000
_LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*", re.ASCII)
_PRINTABLE = re.compile(r"[\x21-\x7e]+", re.ASCII)
_LOOPBACK_URI = re.compile(r"(http://(?:localhost|127\.0\.0\.1|\[::1\]))(?::\d+)?([/?].*)?", re.ASCII | re.IGNORECASE)
# Browsers handle these schemes themselves instead of passing the code to an application.
_BROWSER_SCHEMES = re.compile(
    "about|blob|chrome|data|feed|file|filesystem|ftp|intent|jar|javascript|mailto|ms-.*|res|search|search-ms|sms|tel"
    "|vbscript|view-source|wss?"
)


def rejection_reason(uri: str) -> str | None:
    """Return why a URI may not be registered, or None for https, loopback http, or an application's own scheme."""
    if len(uri) > MAX_LENGTH or not _PRINTABLE.fullmatch(uri) or "\\" in uri:
        return f"must be at most {MAX_LENGTH} printable ASCII characters"
    if "#" in uri:
        return "must have no fragment"
    try:
        parts = urlsplit(uri)
        _ = parts.port  # raises ValueError for an invalid port
    except ValueError:
        return "must be an absolute URI"
    if not _SCHEME.fullmatch(parts.scheme):
        return "must be an absolute URI"
    if "@" in parts.netloc:
        return "must have no user name"
    if parts.scheme == "https":
        return None if parts.hostname else "must have a host"
    if parts.scheme == "http":
        return None if parts.hostname in _LOOPBACK_HOSTS else "must be https, except on loopback"
    if _BROWSER_SCHEMES.fullmatch(parts.scheme) or not (parts.netloc or parts.path.strip("/")):
        return "must be https, http on loopback, or an application's own scheme"
    return None


def matches(registered: str, uri: str) -> bool:
    """Return whether `uri` equals the registered one, apart from the port of a loopback address (RFC 8252, 7.3)."""
    if registered == uri:
        return True
    registered_parts, parts = _LOOPBACK_URI.fullmatch(registered), _LOOPBACK_URI.fullmatch(uri)
    if registered_parts is None or parts is None or rejection_reason(uri) is not None:
        return False
    return registered_parts.groups() == parts.groups()


def display_host(uri: str) -> str:
    """Return what the consent page shows of a URI: its host, or the scheme of an application."""
    parts = urlsplit(uri)
    return parts.hostname or f"{parts.scheme}:" if parts.scheme in ("http", "https") else f"{parts.scheme}:"


def with_query(uri: str, values: dict[str, str | None]) -> str:
    """Return `uri` with `values` added to its query, which otherwise stays unchanged."""
    query = urlencode({name: value for name, value in values.items() if value is not None})
    return f"{uri}{'&' if '?' in uri else '?'}{query}"


# --- The scopes of OAuth: `mcp` and its parts for assistants, those of areas for applications over REST ---------------


SCOPE = "mcp"
_PARTS: dict[str, Scope] = {f"{SCOPE}:{scope}": scope for scope in SCOPES}
SUPPORTED = [SCOPE, *_PARTS]


def requested_rest_scopes(text: str, client: OAuthClient) -> tuple[str, ...]:
    """Return which scopes of REST are requested; of an application that a company registered only those it has.

    Assistants may request `offline_access` too: alone it is none.
    """
    known = client.get("scopes", REST_SCOPES)
    asked = tuple(word for word in dict.fromkeys(text.split()) if word in REST_SCOPES and word in known)
    return () if asked == (OFFLINE_SCOPE,) else asked


def requested_scopes(text: str) -> str:
    """Return which of the requested scopes exist; `mcp` if there are none, as unknown ones are ignored."""
    known = [word for word in dict.fromkeys(text.split()) if word in SUPPORTED]
    return " ".join(known) or SCOPE


def offered_scopes(text: str) -> tuple[Scope, ...]:
    """Return what a coach can allow an application that requests these scopes."""
    requested = requested_scopes(text).split()
    return SCOPES if SCOPE in requested else tuple(scope for name, scope in _PARTS.items() if name in requested)


def granted_scopes(requested: str, allowed: Collection[Scope]) -> str:
    """Return the scope of a token: those requested that were allowed.

    `mcp` remains when it was requested: applications reject a token with a scope that they have not requested.
    """
    return " ".join(word for word in requested.split() if word == SCOPE or _PARTS[word] in allowed) or SCOPE


METHODS = ("none", "client_secret_post", "client_secret_basic")
GRANT_TYPES = ("authorization_code", "refresh_token")
_MAX_URIS = 20
_MAX_NAME = 100
# A client without a grant is deleted early; one with a grant is kept as long as the grant lasts without use.
UNUSED_LIFETIME = timedelta(days=2)
USED_LIFETIME = timedelta(days=90)


class NewOAuthClient(TypedDict):
    """A client to register: an application that coaches may give access to.

    `method`: how it authenticates at the token endpoint (`none`, `client_secret_post` or `client_secret_basic`).
    `secretHash`: SHA-256 of its secret, None for a public client.
    """

    clientId: str
    name: str
    redirectUris: list[str]
    grantTypes: list[str]
    method: str
    secretHash: str | None


class OAuthClient(NewOAuthClient):
    """A client as it is stored; it belongs to no company.

    `documentUntil`: of a client with a metadata document, when the document has to be read again.
    """

    documentUntil: NotRequired[datetime]
    # Only of one that the owner of a company registered: the scopes it may request, and the secret before the last
    # rotation. Others have no company.
    scopes: NotRequired[list[str]]
    previousSecretHash: NotRequired[str | None]
    previousSecretUntil: NotRequired[datetime | None]


class RegisteredClient(OAuthClient):
    """A client that the owner of a company registered."""

    _id: ObjectId


_clients = Documents[OAuthClient](
    "oauthClients",
    (Index(("name",)),),
    global_indexes=(Index(("clientId",), unique=True), Index(("expiresAt",), expire_after=0)),
    cross_company_reason="an application registers before any coach gives it access, and acts for many companies",
    placement=Unsharded("applications act for many companies, and few register"),
    transfer=NotExported("applications have secrets, and are registered at one service"),
)


class ClientRegistration(TypedDict):
    """The response of RFC 7591; the secret only for confidential clients."""

    client_id: str
    client_id_issued_at: int
    client_name: str
    redirect_uris: list[str]
    grant_types: list[str]
    response_types: list[str]
    token_endpoint_auth_method: str
    scope: str
    client_secret: NotRequired[str]
    client_secret_expires_at: NotRequired[int]


async def register(services: Services, metadata: Mapping[str, object]) -> ClientRegistration:
    """Register a client; returns the response of RFC 7591, with the secret of a confidential client.

    `metadata` is the client's, decoded from JSON; unknown members are ignored. Raises OAuthError.
    """
    secret = None if metadata.get("token_endpoint_auth_method") == "none" else new_token()
    client = describe_client(new_token(), metadata, secret)
    at = now()
    await _clients.across_companies(services).insert_one({**client, "createdAt": at, "expiresAt": at + UNUSED_LIFETIME})
    registration: ClientRegistration = {
        "client_id": client["clientId"],
        "client_id_issued_at": int(time.time()),
        "client_name": client["name"],
        "redirect_uris": client["redirectUris"],
        "grant_types": client["grantTypes"],
        "response_types": ["code"],
        "token_endpoint_auth_method": client["method"],
        "scope": SCOPE,
    }
    if secret is not None:
        registration |= {"client_secret": secret, "client_secret_expires_at": 0}
    return registration


def describe_client(client_id: str, metadata: Mapping[str, object], secret: str | None) -> NewOAuthClient:
    """Return the client that metadata describes (RFC 7591, 2); unknown members are ignored. Raises OAuthError."""
    uris = metadata.get("redirect_uris")
    if not isinstance(uris, list) or not 1 <= len(uris) <= _MAX_URIS:
        raise OAuthError("invalid_redirect_uri", f"redirect_uris must be an array of 1 to {_MAX_URIS} addresses")
    for index, uri in enumerate(uris):
        if reason := rejection_reason(uri) if isinstance(uri, str) else "must be a string":
            raise OAuthError("invalid_redirect_uri", f"redirect_uris.{index} {reason}")
    name = metadata.get("client_name")
    if name is not None and not isinstance(name, str):
        raise _invalid_metadata("client_name must be a string")
    printable = "".join(character if character.isprintable() else " " for character in name or "")
    method = metadata.get("token_endpoint_auth_method", "client_secret_basic")
    if method not in METHODS:
        raise _invalid_metadata(f"token_endpoint_auth_method must be one of: {', '.join(METHODS)}")
    grants, responses = metadata.get("grant_types"), metadata.get("response_types")
    if responses is not None and (not isinstance(responses, list) or "code" not in responses):
        raise _invalid_metadata("response_types must hold code")
    if grants is not None and (not isinstance(grants, list) or "authorization_code" not in grants):
        raise _invalid_metadata("grant_types must hold authorization_code")
    return {
        "clientId": client_id,
        "name": " ".join(printable.split())[:_MAX_NAME] or display_host(uris[0]),
        "redirectUris": list(dict.fromkeys(uris)),
        "grantTypes": [each for each in GRANT_TYPES if grants is None or each in grants],  # all by default
        "method": method,
        "secretHash": None if secret is None else token_hash(secret),
    }


def _invalid_metadata(description: str) -> OAuthError:
    return OAuthError("invalid_client_metadata", description)


async def authenticate(services: Services, client_id: str, secret: str | None, *, basic: bool) -> OAuthClient:
    """Return the client with this identifier and secret; a public client has none.

    `basic`: the credentials came in an Authorization header. Raises OAuthError.
    """
    client = await find_client(services, client_id)  # a document was stored before the code was issued
    if client is None:
        raise invalid_client(challenge=basic)
    if client["secretHash"] is None:
        return client
    valid: list[str | None] = [client["secretHash"]]
    if (client.get("previousSecretUntil") or now()) > now():
        valid.append(client.get("previousSecretHash"))
    given = token_hash(secret or "")
    if secret is None or not any(hmac.compare_digest(given, each) for each in valid if each is not None):
        raise invalid_client(challenge=basic)
    return client


# --- Stored clients --------------------------------------------------------------------------------------------------


async def find_client(services: Services, client_id: str) -> OAuthClient | None:
    """Return the client, or None."""
    client: OAuthClient | None = await _clients.across_companies(services).find_one(  # type: ignore[assignment]  # the driver's documents are untyped
        {"clientId": client_id, "expiresAt": {"$gt": now()}}
    )
    return client


async def extend_lifetime(services: Services, client_id: str) -> None:
    """Record that a client received or renewed tokens."""
    await _clients.across_companies(services).update_one(
        {"clientId": client_id}, {"$max": {"expiresAt": now() + USED_LIFETIME}}
    )


# --- Applications that the owner of a company registers ---------------------------------------------------------------


MAX_REGISTERED = 50  # of a company
_REGISTERED_LIFETIME = timedelta(days=365 * 100)
SECRET_ROTATION = timedelta(hours=24)  # for so long the secret before the last rotation is accepted too


class NewApplication(TypedDict):
    """An application to register."""

    name: str
    redirectUris: list[str]
    scopes: list[str]


class TooManyApplications(Conflict):
    """The company has as many registered applications as it may have."""

    default_code = "TOO_MANY_APPLICATIONS"
    default_message = f"A company registers at most {MAX_REGISTERED} applications: delete one first"


async def list_registered(ctx: Context) -> list[RegisteredClient]:
    """Return the applications that the company has registered, by name."""
    return cast("list[RegisteredClient]", await _clients.find(ctx, {}, sort=("name",)))


async def get_registered(ctx: Context, application_id: ObjectId) -> RegisteredClient:
    """Return an application that the company has registered. Raises NotFound."""
    if (client := await _clients.find_one(ctx, {"_id": application_id})) is None:
        raise NotFound("application")
    return cast("RegisteredClient", client)


async def register_application(ctx: Context, new: NewApplication) -> tuple[RegisteredClient, str]:
    """Register an application of the company; returns it with its secret, which is shown once.

    Raises InvalidFields, TooManyApplications.
    """
    reasons = [(f"redirectUris.{index}", rejection_reason(uri)) for index, uri in enumerate(new["redirectUris"])]
    if len(reasons) > _MAX_URIS:
        reasons = [("redirectUris", f"must not be more than {_MAX_URIS} addresses")]
    if errors := [(field, reason) for field, reason in reasons if reason is not None]:
        raise InvalidFields([{"field": field, "code": "INVALID", "message": reason} for field, reason in errors])
    if await _clients.count(ctx, {}) >= MAX_REGISTERED:
        raise TooManyApplications
    secret = new_token()
    client: NewOAuthClient = {
        "clientId": new_token(),
        "name": new["name"],
        "redirectUris": list(dict.fromkeys(new["redirectUris"])),
        "grantTypes": [*GRANT_TYPES],
        "method": "client_secret_basic",
        "secretHash": token_hash(secret),
    }
    scopes = [scope for scope in REST_SCOPES if scope in new["scopes"]]
    stored = await _clients.insert(ctx, {**client, "scopes": scopes, "expiresAt": now() + _REGISTERED_LIFETIME})
    registered = cast("RegisteredClient", stored)
    await audit.record(ctx, "application.registered", registered["_id"], registered["name"])
    return registered, secret


async def rotate_secret(ctx: Context, application_id: ObjectId) -> str:
    """Return a new secret of an application of the company; the one before is accepted for a day. Raises NotFound."""
    client, secret = await get_registered(ctx, application_id), new_token()
    change = {
        "secretHash": token_hash(secret),
        "previousSecretHash": client["secretHash"],
        "previousSecretUntil": now() + SECRET_ROTATION,
    }
    await _clients.update(ctx, {"_id": application_id}, {"$set": change})
    await audit.record(ctx, "application.secret_rotated", application_id, client["name"])
    return secret


async def delete_application(ctx: Context, application_id: ObjectId) -> None:
    """Delete an application of the company with what coaches of any company have allowed it. Raises NotFound."""
    if (client := await _clients.delete(ctx, {"_id": application_id})) is None:
        raise NotFound("application")
    await _end_access(ctx.services, client["clientId"])
    await audit.record(ctx, "application.deleted", application_id, client["name"])


async def end_access_of_applications(ctx: Context, _: CompanyDeleted) -> None:
    """End the access of the applications that a company registered, which is being deleted.

    It ends before the deletion is committed, outside of its transaction: what ends too early can be allowed again.
    """
    for client in await list_registered(ctx):
        await _end_access(ctx.services, client["clientId"])


async def _end_access(services: Services, client_id: str) -> None:
    await assistants.revoke_all_of_client(services, client_id)
    await webhooks.delete_of_application(services, client_id)


# --- Client ID Metadata Documents: applications whose identifier is the https URL of a document that describes them ---
# Source: draft-ietf-oauth-client-id-metadata-document-00, which revision 2025-11-25 of MCP adopts.


_MAX_READS = 60  # from one network address in 15 minutes

_MIN_CACHE, _USUAL_CACHE, _MAX_CACHE = timedelta(minutes=5), timedelta(hours=1), timedelta(hours=24)
_MAX_AGE = re.compile(r"\bmax-age\s*=\s*(\d{1,9})", re.ASCII | re.IGNORECASE)


class DocumentRejected(Exception):
    """A document cannot be read, or does not describe a client that may sign in; the message may be shown."""


def is_document_url(services: Services, client_id: str) -> bool:
    """Return whether an identifier is the URL of a document: https, with a path, without dot segments or fragment."""
    if not services.client_documents or "://" not in client_id:
        return False
    if len(client_id) > MAX_LENGTH or not _PRINTABLE.fullmatch(client_id) or "\\" in client_id:
        return False
    try:
        services.outbound.canonical_url(client_id)
    except OutboundError:
        return False
    parts = urlsplit(client_id)
    return parts.path not in ("", "/") and not parts.fragment and not {".", ".."} & {*parts.path.split("/")}


async def find_or_read_client(services: Services, client_id: str, network_address: str) -> OAuthClient | None:
    """Return a registered client, or the one that the document at the URL `client_id` describes now.

    The document is stored for as long as its `Cache-Control` allows, five minutes to a day, by default an hour. None if
    there is no such client. Raises DocumentRejected, and TooManyRequests if this address has too many documents read.
    """
    stored = await find_client(services, client_id)
    if not is_document_url(services, client_id):
        return stored
    if stored is not None and stored.get("documentUntil", now()) > now():
        return stored
    await rate_limits.limit(services, "client-document", network_address, _MAX_READS)
    try:
        response = await services.outbound.get(client_id, {"Accept": "application/json"})
    except OutboundError as error:
        raise DocumentRejected(f"The description of the application cannot be read: {error.message}") from None
    try:
        client = describe_client(client_id, _parse(response, client_id), secret=None)
    except OAuthError as error:
        raise DocumentRejected(f"The description of the application is not valid: {error.description}") from None
    control = next((value for name, value in response.headers.items() if name.lower() == "cache-control"), "").lower()
    age = _MAX_AGE.search(control)
    period = timedelta(seconds=int(age[1])) if age else _USUAL_CACHE
    if "no-store" in control or "no-cache" in control:
        period = _MIN_CACHE
    at = now()
    described = cast("OAuthClient", {**client, "documentUntil": at + min(max(period, _MIN_CACHE), _MAX_CACHE)})
    change = {"$set": described, "$setOnInsert": {"createdAt": at}, "$max": {"expiresAt": at + UNUSED_LIFETIME}}
    await _clients.across_companies(services).update_one({"clientId": client_id}, change, upsert=True)
    return described


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
