"""The token and the revocation endpoint: what clients send, and what they get."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_plus

from multidict import MultiMapping

from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import Document
from coaching_service.oauth import store
from coaching_service.oauth.clients import SCOPE, authenticated
from coaching_service.oauth.errors import OAuthError, invalid_client, invalid_request
from coaching_service.oauth.metadata import names_resource
from coaching_service.people.assistants import service as assistants

_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}", re.ASCII)


@dataclass(frozen=True)
class Form:
    """A form sent to us, without the fields that have no value, and its `Authorization` header."""

    fields: MultiMapping[str]
    authorization: str | None

    def get(self, name: str) -> str | None:
        """The field, or None. Raises OAuthError when it is sent twice."""
        values = self.fields.getall(name, [])
        if len(values) > 1:
            raise invalid_request(f"{name} must be sent once")
        return values[0] if values else None

    def need(self, name: str) -> str:
        """The field. Raises OAuthError when it is missing."""
        if (value := self.get(name)) is None:
            raise invalid_request(f"{name} is missing")
        return value


async def issue(services: Services, form: Form) -> dict[str, Any]:
    """The answer of the token endpoint. Raises OAuthError."""
    client = await _client(services, form)
    kind = form.need("grant_type")
    if not all(names_resource(services.base_url, given) for given in form.fields.getall("resource", [])):
        raise OAuthError("invalid_target", "resource is not this server's MCP endpoint")
    try:
        if kind == "authorization_code":
            tokens = await _by_code(services, form, client)
        elif kind == "refresh_token":
            tokens = await assistants.refresh_tokens(services, form.need("refresh_token"), client["clientId"])
        else:
            raise OAuthError("unsupported_grant_type", "grant_type must be authorization_code or refresh_token")
    except assistants.GrantRejected as refused:
        raise OAuthError("invalid_grant", str(refused)) from None
    await store.keep(services, client["clientId"])
    answer = {
        "access_token": tokens.access,
        "token_type": "Bearer",
        "expires_in": tokens.seconds,
        "scope": SCOPE,
    }
    return answer | ({"refresh_token": tokens.refresh} if tokens.refresh else {})


async def _by_code(services: Services, form: Form, client: Document) -> assistants.TokenPair:
    code, verifier = form.need("code"), form.need("code_verifier")
    if not _VERIFIER.fullmatch(verifier):
        raise invalid_request("code_verifier must be 43 to 128 unreserved characters")
    return await assistants.exchange_code(
        *(services, code, client["clientId"], verifier, form.get("redirect_uri")),
        refreshable="refresh_token" in client["grantTypes"],
    )


async def revoke(services: Services, form: Form) -> None:
    """End what a token belongs to, if it is this client's; an unknown token is nobody's loss. Raises OAuthError."""
    client = await _client(services, form)
    await assistants.revoke_token(services, form.need("token"), client["clientId"])


async def _client(services: Services, form: Form) -> Document:
    """The client that sends the form, by Basic or by fields."""
    named, secret = form.get("client_id"), form.get("client_secret")
    if form.authorization is None:
        if named is None:
            raise invalid_client(challenge=False)
        return await authenticated(services, named, secret, basic=False)
    if secret is not None:
        raise invalid_request("The client must prove itself in one way only")
    identifier, secret = _basic(form.authorization)
    if named not in (None, identifier):
        raise invalid_request("client_id and the Authorization header differ")
    return await authenticated(services, identifier, secret or None, basic=True)


def _basic(header: str) -> tuple[str, str]:
    scheme, _, encoded = header.partition(" ")
    try:
        text = base64.b64decode(encoded.strip(), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise invalid_client(challenge=True) from None
    if scheme.casefold() != "basic" or ":" not in text:
        raise invalid_client(challenge=True)
    identifier, _, secret = text.partition(":")
    return unquote_plus(identifier), unquote_plus(secret)
