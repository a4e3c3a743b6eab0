"""Documents and results of the authorization server."""

from __future__ import annotations

from datetime import datetime
from typing import NotRequired, TypedDict


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


class TokenResponse(TypedDict):
    """The response of the token endpoint; `expires_in` in seconds."""

    access_token: str
    token_type: str
    expires_in: int
    scope: str
    refresh_token: NotRequired[str]
