"""HTTP endpoints of the authorization server: discovery, registration, tokens, revocation. CORS is open."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict
from urllib.parse import parse_qsl, quote_plus, unquote_plus, urlsplit

import orjson
from aiohttp import hdrs, web
from aiohttp.typedefs import Handler
from multidict import MultiDict, MultiMapping

from coaching_service.core import rate_limits
from coaching_service.core.auth import REST_SCOPES
from coaching_service.core.database.context import Context, Services
from coaching_service.core.errors import CompanySuspended, OutcomeUnknown, ServiceError, Unavailable
from coaching_service.core.http.handlers import interruptible, reported
from coaching_service.core.http.request_parsing import network_address, read_bytes
from coaching_service.core.http.responses import to_json
from coaching_service.oauth import clients
from coaching_service.oauth.clients import DocumentRejected, find_or_read_client
from coaching_service.people import assistants
from coaching_service.people.assistants import GrantRequest, Scope

# --- The discovery documents: protected resource (RFC 9728) and authorization server (RFC 8414) metadata --------------


def resource_of(base_url: str) -> str:
    """Return the resource identifier (audience) of access tokens."""
    return f"{base_url}/mcp"


def is_our_resource(base_url: str, resource: str) -> bool:
    """Return whether `resource` is the URL of the MCP endpoint or of the service, with or without a trailing slash.

    The endpoint may be narrowed by a query: the access token is the same.
    """
    return _canonical(resource) == _canonical(base_url) or is_for_tools(base_url, resource)


def is_for_tools(base_url: str, resource: str) -> bool:
    """Return whether `resource` is the MCP endpoint, which has other access tokens than REST."""
    return _canonical(resource) == _canonical(resource_of(base_url))


def _canonical(url: str) -> str | None:
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    if parts.fragment:
        return None
    return f"{parts.scheme.lower()}://{parts.netloc.lower()}{parts.path.rstrip('/')}"


def protected_resource(base_url: str, *, of_tools: bool) -> dict[str, Any]:
    """Return the protected resource metadata, of the MCP endpoint or of REST."""
    return {
        "resource": resource_of(base_url) if of_tools else base_url,
        "authorization_servers": [base_url],
        "scopes_supported": clients.SUPPORTED if of_tools else list(REST_SCOPES),
        "bearer_methods_supported": ["header"],
        "resource_name": "Coaching service",
    }


def authorization_server(base_url: str, *, documents: bool) -> dict[str, Any]:
    """Return the authorization server metadata. `documents`: clients may identify themselves by a document."""
    return {
        "issuer": base_url,
        "authorization_endpoint": f"{base_url}/oauth/authorize",
        "token_endpoint": f"{base_url}/oauth/token",
        "registration_endpoint": f"{base_url}/oauth/register",
        "revocation_endpoint": f"{base_url}/oauth/revoke",
        "scopes_supported": [*clients.SUPPORTED, *REST_SCOPES],
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": list(clients.GRANT_TYPES),
        "token_endpoint_auth_methods_supported": list(clients.METHODS),
        "revocation_endpoint_auth_methods_supported": list(clients.METHODS),
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": documents,
    }


# --- The token endpoint (RFC 6749, 3.2) and the revocation endpoint (RFC 7009), without HTTP --------------------------


_UNKNOWN_RESOURCE = "resource is neither this service nor its MCP endpoint"
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
            raise clients.invalid_request(f"{name} must be sent once")
        return values[0] if values else None

    def require(self, name: str) -> str:
        """Return the field. Raises OAuthError if it is missing."""
        if (value := self.get(name)) is None:
            raise clients.invalid_request(f"{name} is missing")
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
    resources = form.fields.getall("resource", [])
    if not all(is_our_resource(services.base_url, resource) for resource in resources):
        raise clients.OAuthError("invalid_target", _UNKNOWN_RESOURCE)
    for_tools = any(is_for_tools(services.base_url, resource) for resource in resources)
    try:
        if grant_type == "authorization_code":
            code, verifier = form.require("code"), form.require("code_verifier")
            if not _VERIFIER.fullmatch(verifier):
                raise clients.invalid_request("code_verifier must be 43 to 128 unreserved characters")
            tokens = await assistants.exchange_code(
                *(services, code, client["clientId"], verifier, form.get("redirect_uri")),
                refreshable="refresh_token" in client["grantTypes"],
                for_tools=for_tools,
            )
        elif grant_type == "refresh_token":
            tokens = await assistants.refresh_tokens(
                services, form.require("refresh_token"), client["clientId"], for_tools=for_tools
            )
        else:
            raise clients.OAuthError("unsupported_grant_type", "grant_type must be authorization_code or refresh_token")
    except assistants.GrantRejected as refused:
        raise clients.OAuthError("invalid_grant", str(refused)) from None
    await clients.extend_lifetime(services, client["clientId"])
    scopes = tokens.rest_scopes or [clients.granted_scopes(tokens.requested or clients.SCOPE, tokens.scopes)]
    response: TokenResponse = {
        "access_token": tokens.access,
        "token_type": "Bearer",
        "expires_in": tokens.seconds,
        "scope": " ".join(scopes),
    }
    if tokens.refresh:
        response["refresh_token"] = tokens.refresh
    return response


async def revoke(services: Services, form: TokenRequest) -> None:
    """Revoke the grant of a token of this client; unknown tokens are ignored. Raises OAuthError."""
    client = await _authenticate_client(services, form)
    await assistants.revoke_token(services, form.require("token"), client["clientId"])


async def _authenticate_client(services: Services, form: TokenRequest) -> clients.OAuthClient:
    """Return the client that sent the form, authenticated by the Authorization header or by form fields."""
    client_id, secret = form.get("client_id"), form.get("client_secret")
    if form.authorization is None:
        if client_id is None:
            raise clients.invalid_client(challenge=False)
        return await clients.authenticate(services, client_id, secret, basic=False)
    if secret is not None:
        raise clients.invalid_request("The client must authenticate in one way only")
    scheme, _, encoded = form.authorization.partition(" ")
    try:
        text = base64.b64decode(encoded.strip(), validate=True).decode()
    except ValueError:
        text = ""
    if scheme.casefold() != "basic" or ":" not in text:
        raise clients.invalid_client(challenge=True)
    basic_id, secret = map(unquote_plus, text.split(":", 1))
    if client_id not in (None, basic_id):
        raise clients.invalid_request("client_id and the Authorization header differ")
    return await clients.authenticate(services, basic_id, secret or None, basic=True)


_ERRORS: dict[type[ServiceError], str] = {
    Unavailable: "temporarily_unavailable",
    OutcomeUnknown: "temporarily_unavailable",
    CompanySuspended: "access_denied",
}
_FORM, _JSON = "application/x-www-form-urlencoded", "application/json"
_MAX_BODY_BYTES = 64 * 1024
_MAX_FIELDS = 50
# Per network address in 15 minutes: hosted assistants register for each sign-in, all their users from few addresses.
_MAX_REGISTRATIONS = 600
_RESOURCE, _SERVER = "/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server"


@dataclass(frozen=True)
class Endpoints:
    """The authorization server's endpoints. `proxies`: number of our own reverse proxies in front of the service."""

    services: Services
    proxies: int = 0

    def routes(self) -> list[web.RouteDef]:
        """Return the aiohttp routes. The resource of the root is REST, with `/mcp` behind it the tools."""
        base_url = self.services.base_url
        server = authorization_server(base_url, documents=self.services.client_documents)
        pairs = [
            _with_cors(web.get, _RESOURCE, _document(protected_resource(base_url, of_tools=False))),
            _with_cors(web.get, f"{_RESOURCE}/mcp", _document(protected_resource(base_url, of_tools=True))),
            *(_with_cors(web.get, _SERVER + suffix, _document(server)) for suffix in ("", "/mcp")),
        ]
        pairs += [
            _with_cors(web.post, "/oauth/register", interruptible(self.services, self.register)),
            _with_cors(web.post, "/oauth/token", interruptible(self.services, self.token)),
            _with_cors(web.post, "/oauth/revoke", interruptible(self.services, self.revoke)),
        ]
        return [route for pair in pairs for route in pair]

    async def register(self, request: web.Request) -> web.Response:
        """Register a client (RFC 7591), limited per network address."""
        address = network_address(request, self.proxies)
        count, seconds = await rate_limits.count(self.services, "register", address)
        if count > _MAX_REGISTRATIONS:
            description = "Too many registrations; try again later"
            self.services.metrics.rate_limited.labels("register").inc()
            raise clients.OAuthError("temporarily_unavailable", description, 429, {"Retry-After": str(seconds)})
        if request.content_type != _JSON:
            raise clients.OAuthError("invalid_client_metadata", "The body must be JSON", 415)
        try:
            metadata_sent = orjson.loads(await read_bytes(request, _MAX_BODY_BYTES))
        except orjson.JSONDecodeError:
            metadata_sent = None
        if not isinstance(metadata_sent, dict):
            raise clients.OAuthError("invalid_client_metadata", "The body must be a JSON object")
        return _json(await clients.register(self.services, metadata_sent), 201)

    async def token(self, request: web.Request) -> web.Response:
        """Exchange a code or a refresh token for tokens."""
        return _json(await issue(self.services, await _read_form(request)))

    async def revoke(self, request: web.Request) -> web.Response:
        """Revoke a token (RFC 7009)."""
        await revoke(self.services, await _read_form(request))
        return _json({})


async def _read_form(request: web.Request) -> TokenRequest:
    if request.content_type != _FORM:
        raise clients.OAuthError("invalid_request", f"The body must be a form, sent with Content-Type: {_FORM}", 415)
    try:
        text = (await read_bytes(request, _MAX_BODY_BYTES)).decode()
        # A parameter without a value counts as omitted (RFC 6749, 3.2).
        fields = MultiDict(parse_qsl(text, keep_blank_values=False, max_num_fields=_MAX_FIELDS))
    except ValueError:
        raise clients.invalid_request("The body is not a form") from None
    return TokenRequest(fields, request.headers.get(hdrs.AUTHORIZATION))


def _document(body: Mapping[str, object]) -> Handler:
    async def document(_: web.Request) -> web.Response:
        headers = {hdrs.CONTENT_TYPE: _JSON, hdrs.CACHE_CONTROL: "public, max-age=300"}
        return web.Response(body=to_json(body), headers=headers)

    return document


def _with_cors(method: Callable[..., web.RouteDef], path: str, handler: Handler) -> tuple[web.RouteDef, web.RouteDef]:
    """Return a route that pages of any origin may call, and its preflight. It uses no cookies."""

    async def handle(request: web.Request) -> web.StreamResponse:
        response: web.StreamResponse
        try:
            response = await handler(request)
        except clients.OAuthError as error:
            response = _json(error.body(), error.status)
            response.headers.update(error.headers)
        except ServiceError as error:
            failure = reported(request, error)
            code = _ERRORS.get(type(failure), "invalid_request")
            response = _json({"error": code, "error_description": str(failure)}, failure.status)
            response.headers.update(failure.headers)
        response.headers["Access-Control-Allow-Origin"] = "*"
        return response

    async def preflight(_: web.Request) -> web.Response:
        return web.Response(
            status=204,
            headers={
                "Access-Control-Allow-Origin": "*",
                "Access-Control-Allow-Methods": "GET, POST",
                "Access-Control-Allow-Headers": "Authorization, Content-Type, MCP-Protocol-Version",
                "Access-Control-Max-Age": "600",
            },
        )

    return method(path, handle), web.options(path, preflight)


def _json(body: Mapping[str, object], status: int = 200) -> web.Response:
    headers = {hdrs.CONTENT_TYPE: _JSON, hdrs.CACHE_CONTROL: "no-store", "Pragma": "no-cache"}
    return web.Response(body=to_json(body), status=status, headers=headers)


# --- Authorization requests (RFC 6749, 4.1): validated before the consent page is shown, answered by a redirect -------
# The consent page is in web/, which calls `approve` or `deny`.


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
    problem = next(((error, text) for is_invalid, error, text in _CHECKS if is_invalid(query)), None)
    if not all(is_our_resource(services.base_url, resource) for resource in query.getall("resource", [])):
        problem = problem or ("invalid_target", _UNKNOWN_RESOURCE)
    text, resources = query.get("scope", ""), query.getall("resource", [])
    for_tools = any(is_for_tools(services.base_url, resource) for resource in resources)
    rest_scopes = () if for_tools else clients.requested_rest_scopes(text, client)
    known = {*clients.SUPPORTED, *REST_SCOPES}
    is_unknown = bool(resources) and not for_tools and bool(text) and known.isdisjoint(text.split())
    if not rest_scopes and ("scopes" in client or is_unknown):
        description = "Request scopes that the resource supports; a registered application can request only its own"
        problem = problem or ("invalid_scope", description)
    if problem is not None:
        state = state if len(query.getall("state", [])) == 1 else None
        values = {"error": problem[0], "error_description": problem[1]}
        raise RejectedWithRedirect(_redirect_url(services, redirect_uri, state, values))
    grant_request = GrantRequest(
        client_id=client["clientId"],
        client_name=client["name"],
        redirect_uri=redirect_uri,
        redirect_host=clients.display_host(redirect_uri),
        client_host=clients.display_host(client["clientId"]) if "documentUntil" in client else None,
        challenge=query["code_challenge"],
        resource=services.base_url if rest_scopes else resource_of(services.base_url),
        redirect_uri_given="redirect_uri" in query,
        requested=clients.requested_scopes(text),
        offered=() if rest_scopes else clients.offered_scopes(text),
        rest_scopes=rest_scopes,
    )
    return AuthorizationRequest(grant_request, state)


async def _find_client(
    services: Services, query: MultiMapping[str], network_address: str
) -> tuple[clients.OAuthClient, str]:
    """Return the client and the redirect URI to use. Raises NotRedirectable, TooManyRequests."""
    names, uris = query.getall("client_id", []), query.getall("redirect_uri", [])
    try:
        client = await find_or_read_client(services, names[0], network_address) if len(names) == 1 else None
    except DocumentRejected as rejection:
        raise NotRedirectable(str(rejection)) from None
    if client is None:
        raise NotRedirectable("The application that sent you here is not registered; start again from there")
    registered = client["redirectUris"]
    if not uris and len(registered) == 1:
        return client, registered[0]
    if len(uris) != 1 or not any(clients.matches(uri, uris[0]) for uri in registered):
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


def _redirect_url(services: Services, redirect_uri: str, state: str | None, values: dict[str, str]) -> str:
    return clients.with_query(redirect_uri, {**values, "state": state, "iss": services.base_url})


async def approve(
    ctx: Context,
    request: AuthorizationRequest,
    scopes: Collection[Scope],
    *,
    confirm_in_chat: bool,
    rest_scopes: Collection[str] = (),
) -> str:
    """Grant the client access on behalf of the caller; returns the URL to redirect to, with the code."""
    code = await assistants.create_grant(
        ctx, request.grant_request, scopes, confirm_in_chat=confirm_in_chat, rest_scopes=rest_scopes
    )
    return _redirect_url(ctx.services, request.grant_request.redirect_uri, request.state, {"code": code})


def deny(services: Services, request: AuthorizationRequest) -> str:
    """Return the URL to redirect to when the coach denies access."""
    values = {"error": "access_denied", "error_description": "The coach did not agree"}
    return _redirect_url(services, request.grant_request.redirect_uri, request.state, values)
