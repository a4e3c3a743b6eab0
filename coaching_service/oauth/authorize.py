"""A request to be let in: judged before anybody is asked, and answered by sending the browser back.

The pages are in web/: it shows the sign-in and the question, and calls `approved` or `denied`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import quote_plus

from multidict import MultiDict, MultiMapping

from coaching_service.core.database.context import Context, Services
from coaching_service.oauth import redirects, store
from coaching_service.oauth.metadata import names_resource, resource_of
from coaching_service.people.assistants import service as assistants
from coaching_service.people.assistants.service import GrantRequest

_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_MAX_STATE = 2_500  # as it is sent: an address has to hold it, once more encoded, through the sign-in
_ONCE = (
    *("response_type", "client_id", "redirect_uri", "code_challenge", "code_challenge_method", "state", "scope"),
    *("response_mode", "prompt", "request", "request_uri"),
)


class NotRedirectable(Exception):
    """The request names no client, or an address that is not the client's: a person is told, nobody is sent on."""


class SentBack(Exception):
    """The request is refused by sending the browser to `location`."""

    def __init__(self, location: str) -> None:
        super().__init__("refused")
        self.location = location


@dataclass(frozen=True)
class AuthorizationRequest:
    """A request that may be put to a coach."""

    asked: GrantRequest
    state: str | None


async def read(services: Services, query: MultiMapping[str]) -> AuthorizationRequest:
    """The request in a query, where a parameter without a value counts as left out (RFC 6749, 3.1).

    Raises NotRedirectable, or SentBack with the reason in the address.
    """
    query = MultiDict((name, value) for name, value in query.items() if value)
    client, redirect_uri = await _client(services, query)
    state = query.get("state")
    if (wrong := _objection(services, query)) is not None:
        error, about = wrong
        state = state if len(query.getall("state", [])) == 1 else None
        raise SentBack(_back(services, redirect_uri, state, {"error": error, "error_description": about}))
    asked = GrantRequest(
        client_id=client["clientId"],
        client_name=client["name"],
        redirect_uri=redirect_uri,
        redirect_host=redirects.host_of(redirect_uri),
        challenge=query["code_challenge"],
        resource=resource_of(services.base_url),
        redirect_uri_given="redirect_uri" in query,
    )
    return AuthorizationRequest(asked, state)


async def _client(services: Services, query: MultiMapping[str]) -> tuple[Mapping[str, str], str]:
    """The client that asks, and the address of its that the answer goes to."""
    names, uris = query.getall("client_id", []), query.getall("redirect_uri", [])
    client = await store.one(services, names[0]) if len(names) == 1 else None
    if client is None:
        raise NotRedirectable("The program that sent you here is not registered; start again from there")
    registered = client["redirectUris"]
    if not uris and len(registered) == 1:
        return client, registered[0]
    if len(uris) != 1 or not any(redirects.matches(each, uris[0]) for each in registered):
        raise NotRedirectable("The program that sent you here gave an address that is not its own")
    return client, uris[0]


Query = MultiMapping[str]
# What is wrong with a request whose sender is known, in this order: OAuth's word, and a sentence for developers.
_OBJECTIONS: tuple[tuple[Callable[[Query], bool], str, str], ...] = (
    (lambda q: any(len(q.getall(name, [])) > 1 for name in _ONCE), "invalid_request", "A parameter is sent twice"),
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
    (lambda q: q.get("prompt") == "none", "interaction_required", "A person has to be asked"),
)


def _objection(services: Services, query: Query) -> tuple[str, str] | None:
    for wrong, error, about in _OBJECTIONS:
        if wrong(query):
            return error, about
    if not all(names_resource(services.base_url, given) for given in query.getall("resource", [])):
        return "invalid_target", "resource is not this server's MCP endpoint"
    return None


def _back(services: Services, redirect_uri: str, state: str | None, values: dict[str, str]) -> str:
    return redirects.with_query(redirect_uri, {**values, "state": state, "iss": services.base_url})


async def approved(ctx: Context, request: AuthorizationRequest, *, read_only: bool) -> str:
    """The coach asking lets the client in; gives the address the browser is sent to, the code in it."""
    code = await assistants.create_grant(ctx, request.asked, read_only=read_only)
    return _back(ctx.services, request.asked.redirect_uri, request.state, {"code": code})


def denied(services: Services, request: AuthorizationRequest) -> str:
    """The address the browser is sent to when a coach lets nobody in."""
    refused = {"error": "access_denied", "error_description": "The coach did not agree"}
    return _back(services, request.asked.redirect_uri, request.state, refused)
