"""The OAuth consent page: a coach allows or denies an application access to their data."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict

from aiohttp import hdrs, web

from coaching_service.core.auth.access import check_access, coach, public
from coaching_service.core.database.context import Context
from coaching_service.core.errors import BadRequest
from coaching_service.core.fields import Default
from coaching_service.oauth import endpoints
from coaching_service.web.pages import Pages

pages = Pages("/oauth")


class _Decision(TypedDict):
    decision: Literal["allow", "deny"]
    read: Annotated[bool, Default(False)]
    change: Annotated[bool, Default(False)]
    outreach: Annotated[bool, Default(False)]
    confirmInChat: Annotated[bool, Default(False)]


@pages.get("/authorize", access=public(), template="oauth/consent.html", with_request=True, external_redirect=True)
async def consent_page(ctx: Context, request: web.Request) -> dict[str, Any] | web.Response:
    """The consent page. An invalid request is rejected before the coach has to sign in."""
    try:
        authorization = await _read_authorization(ctx, request)
    except endpoints.RejectedWithRedirect as rejection:
        return _redirect_to_client(rejection.location)
    return {"grant": authorization.grant_request, "query": request.rel_url.raw_query_string}


@pages.post("/authorize", access=public(), on=consent_page, with_request=True, external_redirect=True)
async def decide(ctx: Context, request: web.Request, form: _Decision) -> web.Response:
    """Process the coach's decision and redirect the browser to the application."""
    try:
        authorization = await _read_authorization(ctx, request)
    except endpoints.RejectedWithRedirect as rejection:
        return _redirect_to_client(rejection.location)
    if form["decision"] == "deny":
        return _redirect_to_client(endpoints.deny(ctx.services, authorization))
    scopes = [scope for scope in authorization.grant_request.offered if form[scope]]
    if not scopes:
        raise BadRequest("Choose at least one kind of access, or deny")
    location = await endpoints.approve(ctx, authorization, scopes, confirm_in_chat=form["confirmInChat"])
    return _redirect_to_client(location)


async def _read_authorization(ctx: Context, request: web.Request) -> endpoints.AuthorizationRequest:
    """Return the authorization request of a signed-in coach.

    Raises BadRequest, RejectedWithRedirect, Unauthorized and Forbidden.
    """
    try:
        authorization = await endpoints.parse_request(ctx.services, request.query, ctx.network_address)
    except endpoints.NotRedirectable as rejection:
        raise BadRequest(str(rejection)) from None
    check_access(coach(), ctx.principal, writes=True)
    return authorization


def _redirect_to_client(location: str) -> web.Response:
    # Not web.HTTPFound, which encodes the URL again: clients compare it byte by byte.
    headers = {hdrs.LOCATION: location, hdrs.CACHE_CONTROL: "no-store", hdrs.REFERRER_POLICY: "no-referrer"}
    return web.Response(status=302, headers=headers)
