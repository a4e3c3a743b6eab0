"""Authorization requests (RFC 6749, 4.1): validated before the consent page is shown, answered by a redirect.

The consent page is in web/, which calls `approve` or `deny`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from urllib.parse import quote_plus

from multidict import MultiDict, MultiMapping

from coaching_service.core.database.context import Context, Services
from coaching_service.oauth import redirects
from coaching_service.oauth.client_documents import DocumentRejected, find_client
from coaching_service.oauth.clients import OAuthClient
from coaching_service.oauth.metadata import is_our_resource, resource_of
from coaching_service.oauth.scopes import offered_scopes, requested_scopes
from coaching_service.people.assistants import service as assistants
from coaching_service.people.assistants.models import Scope
from coaching_service.people.assistants.service import GrantRequest

_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_MAX_STATE = 2_500  # URL-encoded characters: the URL of the sign-in page holds it, encoded once more
_SINGLE_PARAMETERS = (
    *("response_type", "client_id", "redirect_uri", "code_challenge", "code_challenge_method", "state", "scope"),
    *("response_mode", "prompt", "request", "request_uri"),
)


class NotRedirectable(Exception):
    """The client or its redirect URI is unknown: a page shows the message, and the browser is not redirected."""


class RejectedWithRedirect(Exception):
    """The request is rejected by redirecting the browser to `location`."""

    def __init__(self, location: str) -> None:
        super().__init__("rejected")
        self.location = location


@dataclass(frozen=True)
class AuthorizationRequest:
    """A valid request, for which the consent page can be shown."""

    grant_request: GrantRequest
    state: str | None


async def parse_request(services: Services, query: MultiMapping[str], network_address: str) -> AuthorizationRequest:
    """Return the request in a query; a parameter without a value counts as omitted (RFC 6749, 3.1).

    Raises NotRedirectable, RejectedWithRedirect with the reason in the URL, or TooManyRequests.
    """
    query = MultiDict((name, value) for name, value in query.items() if value)
    client, redirect_uri = await _find_client(services, query, network_address)
    state = query.get("state")
    if (problem := _find_problem(services, query)) is not None:
        error, description = problem
        state = state if len(query.getall("state", [])) == 1 else None
        values = {"error": error, "error_description": description}
        raise RejectedWithRedirect(_redirect_url(services, redirect_uri, state, values))
    grant_request = GrantRequest(
        client_id=client["clientId"],
        client_name=client["name"],
        redirect_uri=redirect_uri,
        redirect_host=redirects.display_host(redirect_uri),
        client_host=redirects.display_host(client["clientId"]) if "documentUntil" in client else None,
        challenge=query["code_challenge"],
        resource=resource_of(services.base_url),
        redirect_uri_given="redirect_uri" in query,
        requested=requested_scopes(query.get("scope", "")),
        offered=offered_scopes(query.get("scope", "")),
    )
    return AuthorizationRequest(grant_request, state)


async def _find_client(services: Services, query: MultiMapping[str], network_address: str) -> tuple[OAuthClient, str]:
    """Return the client and the redirect URI to use. Raises NotRedirectable, TooManyRequests."""
    names, uris = query.getall("client_id", []), query.getall("redirect_uri", [])
    try:
        client = await find_client(services, names[0], network_address) if len(names) == 1 else None
    except DocumentRejected as rejection:
        raise NotRedirectable(str(rejection)) from None
    if client is None:
        raise NotRedirectable("The application that sent you here is not registered; start again from there")
    registered = client["redirectUris"]
    if not uris and len(registered) == 1:
        return client, registered[0]
    if len(uris) != 1 or not any(redirects.matches(uri, uris[0]) for uri in registered):
        raise NotRedirectable("The application that sent you here gave an address that is not its own")
    return client, uris[0]


Query = MultiMapping[str]
# Checks of a request whose client is known, in this order, each with its OAuth error code and description.
_CHECKS: tuple[tuple[Callable[[Query], bool], str, str], ...] = (
    (
        lambda q: any(len(q.getall(name, [])) > 1 for name in _SINGLE_PARAMETERS),
        "invalid_request",
        "A parameter is repeated",
    ),
    (lambda q: "request" in q or "request_uri" in q, "request_not_supported", "Send the parameters themselves"),
    (lambda q: "response_type" not in q, "invalid_request", "response_type is missing"),
    (lambda q: q["response_type"] != "code", "unsupported_response_type", "response_type must be code"),
    (lambda q: q.get("response_mode", "query") != "query", "invalid_request", "response_mode must be query"),
    (
        lambda q: q.get("code_challenge_method") != "S256" or not _CHALLENGE.fullmatch(q.get("code_challenge", "")),
        "invalid_request",
        "PKCE is needed: code_challenge with code_challenge_method S256",
    ),
    (lambda q: len(quote_plus(q.get("state", ""))) > _MAX_STATE, "invalid_request", "state is too long"),
    (lambda q: q.get("prompt") == "none", "interaction_required", "The consent page must be shown"),
)


def _find_problem(services: Services, query: Query) -> tuple[str, str] | None:
    for is_invalid, error, description in _CHECKS:
        if is_invalid(query):
            return error, description
    if not all(is_our_resource(services.base_url, resource) for resource in query.getall("resource", [])):
        return "invalid_target", "resource is not this server's MCP endpoint"
    return None


def _redirect_url(services: Services, redirect_uri: str, state: str | None, values: dict[str, str]) -> str:
    return redirects.with_query(redirect_uri, {**values, "state": state, "iss": services.base_url})


async def approve(
    ctx: Context, request: AuthorizationRequest, scopes: Collection[Scope], *, confirm_in_chat: bool
) -> str:
    """Grant the client access on behalf of the caller; returns the URL to redirect to, with the code."""
    code = await assistants.create_grant(ctx, request.grant_request, scopes, confirm_in_chat=confirm_in_chat)
    return _redirect_url(ctx.services, request.grant_request.redirect_uri, request.state, {"code": code})


def deny(services: Services, request: AuthorizationRequest) -> str:
    """Return the URL to redirect to when the coach denies access."""
    values = {"error": "access_denied", "error_description": "The coach did not agree"}
    return _redirect_url(services, request.grant_request.redirect_uri, request.state, values)
