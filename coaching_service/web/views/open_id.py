"""Signing in at the OpenID provider of the operator: to it, and back with its answer.

What belongs to one attempt is in a cookie of the browser, encrypted. The state, the nonce and the verifier of PKCE are
signatures of its number, so that an answer is accepted by the browser that has asked, and once.
"""

from __future__ import annotations

from typing import Annotated, TypedDict
from urllib.parse import urlencode

import structlog
from aiohttp import web

from coaching_service.core.auth import new_token, public
from coaching_service.core.database.context import Context, Services
from coaching_service.core.errors import Conflict, NotFound, SignInRejected
from coaching_service.core.fields import Default
from coaching_service.core.open_id import OpenIdProvider, ProviderError, ProviderUnavailable
from coaching_service.core.validation import Text
from coaching_service.people.second_factor import challenges
from coaching_service.people.sessions import provider_accounts
from coaching_service.web import browser_sessions
from coaching_service.web.pages import Pages, Redirect

log = structlog.get_logger("coaching_service.open_id")
pages = Pages("/auth/oidc")
_ATTEMPT = "sign-in at the OpenID provider"
_TOO_LATE = "That took too long, or was started in another window. Nothing was changed. Try again."
_NOT_REACHED = "{} cannot be reached. Sign in with your password, or try again later."
_REFUSED = "{} did not sign you in here. Sign in with your password, or try again."
_UNKNOWN = "There is no account here for you. Ask the owner of your company for an invitation."
_CONNECT = "Sign in once with your password to connect {}. After that, {} alone signs you in."


class _Start(TypedDict):
    next: Annotated[str | None, Text(max_length=4000)]


class _Answer(TypedDict):
    state: Annotated[str, Text(max_length=500), Default("")]
    code: Annotated[str, Text(max_length=4000), Default("")]
    iss: Annotated[str | None, Text(max_length=4000)]


@pages.get("/start", access=public(), template="", request_class="unlimited")
async def start_provider_sign_in(ctx: Context, query: _Start) -> Redirect:
    """Redirect to the provider."""
    provider = _require_provider(ctx.services)
    number, path = new_token(), browser_sessions.local_path(query["next"], "")
    state, nonce, verifier = (_sign(ctx.services, use, number) for use in ("state", "nonce", "verifier"))
    try:
        url = await provider.authorization_url(state, nonce, verifier)
    except ProviderError as error:
        return _back(provider, error, query["next"])
    return Redirect(url, provider_state=challenges.create(ctx.services, _ATTEMPT, detail=path, nonce=number))


@pages.get("/callback", access=public(), template="", request_class="unlimited", with_request=True)
async def finish_provider_sign_in(ctx: Context, query: _Answer, request: web.Request) -> Redirect:
    """Sign the user in whom the provider names, or ask for the password once to link the account."""
    provider, services = _require_provider(ctx.services), ctx.services
    attempt = await challenges.find(services, _ATTEMPT, browser_sessions.provider_state_of(services, request))
    is_own = attempt is not None and services.vault.verify_signature(f"OpenID state {attempt['nonce']}", query["state"])
    if attempt is None or not is_own or not await challenges.use(ctx, attempt):
        return Redirect("/app/sign-in", _TOO_LATE, provider_state="")
    path = attempt["detail"]
    try:
        nonce, verifier = (_sign(services, use, attempt["nonce"]) for use in ("nonce", "verifier"))
        user = await provider.redeem(query["code"], nonce, verifier, query["iss"])
        session = await provider_accounts.sign_in(ctx, user, ctx.device)
    except ProviderError as error:
        return _back(provider, error, path)
    except (SignInRejected, Conflict):
        return Redirect(_sign_in_path(path), _UNKNOWN, provider_state="")
    if session is not None:
        return Redirect(browser_sessions.landing_path(session.kind, path), session=session, provider_state="")
    if not await provider_accounts.can_be_linked(ctx, user):
        return Redirect(_sign_in_path(path), _UNKNOWN, provider_state="")
    name = provider.registration.name
    linkable = provider_accounts.sign_linkable(ctx, user)
    return Redirect(_sign_in_path(path), _CONNECT.format(name, name), provider_state=linkable)


def _require_provider(services: Services) -> OpenIdProvider:
    if services.open_id is None:
        raise NotFound("page")
    return services.open_id


def _sign(services: Services, use: str, number: str) -> str:
    return services.vault.sign(f"OpenID {use} {number}")


def _sign_in_path(next_path: str | None) -> str:
    path = browser_sessions.local_path(next_path, "")
    return "/app/sign-in" + (f"?{urlencode({'next': path})}" if path else "")


def _back(provider: OpenIdProvider, error: ProviderError, next_path: str | None) -> Redirect:
    """Return to the sign-in page, with the reason in the log."""
    log.warning("sign-in at the provider failed", reason=str(error))
    sentence = _NOT_REACHED if isinstance(error, ProviderUnavailable) else _REFUSED
    name = provider.registration.name
    return Redirect(_sign_in_path(next_path), sentence.format(name[:1].upper() + name[1:]), provider_state="")
