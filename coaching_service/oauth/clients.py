"""Programs that ask to be let in: how they register (RFC 7591), and how they prove who they are."""

from __future__ import annotations

import hmac
import time
from typing import Any

from coaching_service.core.auth.secrets import new_token, token_hash
from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import Document
from coaching_service.oauth import redirects, store
from coaching_service.oauth.errors import OAuthError, invalid_client

METHODS = ("none", "client_secret_post", "client_secret_basic")
GRANT_TYPES = ("authorization_code", "refresh_token")
SCOPE = "mcp"
_MAX_URIS = 20
_MAX_NAME = 100


async def register(services: Services, asked: dict[str, Any]) -> dict[str, Any]:
    """Register a client; gives the answer of RFC 7591, the secret in it where there is one.

    `asked` is the client's metadata; what is not known of it is ignored. Raises OAuthError.
    """
    uris = _redirect_uris(asked.get("redirect_uris"))
    method = asked.get("token_endpoint_auth_method", "client_secret_basic")
    if method not in METHODS:
        raise _metadata(f"token_endpoint_auth_method must be one of: {', '.join(METHODS)}")
    client = {
        "clientId": new_token(),
        "name": _name(asked.get("client_name"), uris),
        "redirectUris": uris,
        "grantTypes": _grant_types(asked.get("grant_types"), asked.get("response_types")),
        "method": method,
        "secretHash": None,
    }
    secret = None
    if method != "none":
        secret = new_token()
        client["secretHash"] = token_hash(secret)
    await store.add(services, client)
    return _answer(client, secret)


def _redirect_uris(uris: Any) -> list[str]:
    if not isinstance(uris, list) or not 1 <= len(uris) <= _MAX_URIS:
        raise OAuthError("invalid_redirect_uri", f"redirect_uris must be an array of 1 to {_MAX_URIS} addresses")
    for at, uri in enumerate(uris):
        if reason := redirects.objection(uri) if isinstance(uri, str) else "must be a string":
            raise OAuthError("invalid_redirect_uri", f"redirect_uris.{at} {reason}")
    return list(dict.fromkeys(uris))


def _grant_types(grants: Any, responses: Any) -> list[str]:
    """The grant types of ours that a client takes; one that says nothing takes all."""
    if responses is not None and (not isinstance(responses, list) or "code" not in responses):
        raise _metadata("response_types must hold code")
    if grants is None:
        return list(GRANT_TYPES)
    if not isinstance(grants, list) or "authorization_code" not in grants:
        raise _metadata("grant_types must hold authorization_code")
    return [kind for kind in GRANT_TYPES if kind in grants]


def _name(name: Any, uris: list[str]) -> str:
    """What a program calls itself, in one line that can be shown; else where it is."""
    if name is not None and not isinstance(name, str):
        raise _metadata("client_name must be a string")
    shown = " ".join("".join(each if each.isprintable() else " " for each in name or "").split())
    return shown[:_MAX_NAME] or redirects.host_of(uris[0])


def _metadata(about: str) -> OAuthError:
    return OAuthError("invalid_client_metadata", about)


def _answer(client: Document, secret: str | None) -> dict[str, Any]:
    told: dict[str, Any] = {
        "client_id": client["clientId"],
        "client_id_issued_at": int(time.time()),
        "client_name": client["name"],
        "redirect_uris": client["redirectUris"],
        "grant_types": client["grantTypes"],
        "response_types": ["code"],
        "token_endpoint_auth_method": client["method"],
        "scope": SCOPE,
    }
    return told | ({"client_secret": secret, "client_secret_expires_at": 0} if secret else {})


async def authenticated(services: Services, client_id: str, secret: str | None, *, basic: bool) -> Document:
    """The client that proves who it is: by its secret, or by nothing where it has none. Raises OAuthError."""
    client = await store.one(services, client_id)
    if client is None:
        raise invalid_client(challenge=basic)
    hashed = client["secretHash"]
    if hashed is not None and (secret is None or not hmac.compare_digest(token_hash(secret), hashed)):
        raise invalid_client(challenge=basic)
    return client
