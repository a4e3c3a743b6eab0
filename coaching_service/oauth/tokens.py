"""The token endpoint (RFC 6749, 3.2) and the revocation endpoint (RFC 7009), without HTTP."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import NotRequired, TypedDict
from urllib.parse import unquote_plus

from multidict import MultiMapping

from coaching_service.core.database.context import Services
from coaching_service.oauth.clients import OAuthClient, authenticate, extend_lifetime
from coaching_service.oauth.errors import OAuthError, invalid_client, invalid_request
from coaching_service.oauth.metadata import is_our_resource
from coaching_service.oauth.scopes import SCOPE, granted_scopes
from coaching_service.people.assistants import service as assistants

_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}", re.ASCII)


@dataclass(frozen=True)
class TokenRequest:
    """An urlencoded form, without its empty fields, and the `Authorization` header."""

    fields: MultiMapping[str]
    authorization: str | None

    def get(self, name: str) -> str | None:
        """Return the field, or None. Raises OAuthError if it is repeated."""
        values = self.fields.getall(name, [])
        if len(values) > 1:
            raise invalid_request(f"{name} must be sent once")
        return values[0] if values else None

    def require(self, name: str) -> str:
        """Return the field. Raises OAuthError if it is missing."""
        if (value := self.get(name)) is None:
            raise invalid_request(f"{name} is missing")
        return value


class TokenResponse(TypedDict):
    """The response of the token endpoint; `expires_in` in seconds."""

    access_token: str
    token_type: str
    expires_in: int
    scope: str
    refresh_token: NotRequired[str]


async def issue(services: Services, form: TokenRequest) -> TokenResponse:
    """Issue tokens for a code or a refresh token. Raises OAuthError."""
    client = await _authenticate_client(services, form)
    grant_type = form.require("grant_type")
    if not all(is_our_resource(services.base_url, resource) for resource in form.fields.getall("resource", [])):
        raise OAuthError("invalid_target", "resource is not this server's MCP endpoint")
    try:
        if grant_type == "authorization_code":
            tokens = await _exchange_code(services, form, client)
        elif grant_type == "refresh_token":
            tokens = await assistants.refresh_tokens(services, form.require("refresh_token"), client["clientId"])
        else:
            raise OAuthError("unsupported_grant_type", "grant_type must be authorization_code or refresh_token")
    except assistants.GrantRejected as refused:
        raise OAuthError("invalid_grant", str(refused)) from None
    await extend_lifetime(services, client["clientId"])
    response: TokenResponse = {
        "access_token": tokens.access,
        "token_type": "Bearer",
        "expires_in": tokens.seconds,
        "scope": granted_scopes(tokens.requested or SCOPE, tokens.scopes),
    }
    if tokens.refresh:
        response["refresh_token"] = tokens.refresh
    return response


async def _exchange_code(services: Services, form: TokenRequest, client: OAuthClient) -> assistants.TokenPair:
    code, verifier = form.require("code"), form.require("code_verifier")
    if not _VERIFIER.fullmatch(verifier):
        raise invalid_request("code_verifier must be 43 to 128 unreserved characters")
    return await assistants.exchange_code(
        *(services, code, client["clientId"], verifier, form.get("redirect_uri")),
        refreshable="refresh_token" in client["grantTypes"],
    )


async def revoke(services: Services, form: TokenRequest) -> None:
    """Revoke the grant of a token of this client; unknown tokens are ignored. Raises OAuthError."""
    client = await _authenticate_client(services, form)
    await assistants.revoke_token(services, form.require("token"), client["clientId"])


async def _authenticate_client(services: Services, form: TokenRequest) -> OAuthClient:
    """Return the client that sent the form, authenticated by the Authorization header or by form fields."""
    client_id, secret = form.get("client_id"), form.get("client_secret")
    if form.authorization is None:
        if client_id is None:
            raise invalid_client(challenge=False)
        return await authenticate(services, client_id, secret, basic=False)
    if secret is not None:
        raise invalid_request("The client must authenticate in one way only")
    basic_id, secret = _parse_basic(form.authorization)
    if client_id not in (None, basic_id):
        raise invalid_request("client_id and the Authorization header differ")
    return await authenticate(services, basic_id, secret or None, basic=True)


def _parse_basic(header: str) -> tuple[str, str]:
    scheme, _, encoded = header.partition(" ")
    try:
        text = base64.b64decode(encoded.strip(), validate=True).decode()
    except ValueError:
        raise invalid_client(challenge=True) from None
    if scheme.casefold() != "basic" or ":" not in text:
        raise invalid_client(challenge=True)
    identifier, _, secret = text.partition(":")
    return unquote_plus(identifier), unquote_plus(secret)
