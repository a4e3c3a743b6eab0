"""Letting an assistant in: who asks, on whose behalf, and what it will be able to do."""

from __future__ import annotations

from typing import Any

from aiohttp import hdrs, web

from coaching_service.core.auth.access import check_access, coach, public
from coaching_service.core.database.context import Context
from coaching_service.core.errors import BadRequest
from coaching_service.core.validation import Choice, Input
from coaching_service.oauth import authorize
from coaching_service.web.pages import Pages

pages = Pages("/oauth")


class _Decision(Input):
    """What the coach says to it."""

    decision = Choice("allow", "allow_reading", "deny", required=True)


@pages.get("/authorize", access=public(), template="oauth/consent.html", with_request=True, external_redirect=True)
async def consent_page(ctx: Context, request: web.Request) -> dict[str, Any] | web.Response:
    """The question. A request nobody could answer is refused before anybody signs in."""
    try:
        asked = await _asked(ctx, request)
    except authorize.SentBack as sent:
        return _away(sent.location)
    return {"asked": asked.asked, "query": request.rel_url.raw_query_string}


@pages.post("/authorize", access=public(), form=_Decision(), on=consent_page, with_request=True, external_redirect=True)
async def decide(ctx: Context, request: web.Request, form: dict[str, Any]) -> web.Response:
    """The answer, with which the browser goes back to where it came from."""
    try:
        asked = await _asked(ctx, request)
    except authorize.SentBack as sent:
        return _away(sent.location)
    if form["decision"] == "deny":
        return _away(authorize.denied(ctx.services, asked))
    return _away(await authorize.approved(ctx, asked, read_only=form["decision"] == "allow_reading"))


async def _asked(ctx: Context, request: web.Request) -> authorize.AuthorizationRequest:
    """The request, when a coach is there to answer it. Raises BadRequest, SentBack, Unauthorized, Forbidden."""
    try:
        asked = await authorize.read(ctx.services, request.query)
    except authorize.NotRedirectable as refused:
        raise BadRequest(str(refused)) from None
    check_access(coach(), ctx.principal, writes=True)
    return asked


def _away(location: str) -> web.Response:
    # Not web.HTTPFound, which would spell the address anew: clients compare it byte by byte.
    headers = {hdrs.LOCATION: location, hdrs.CACHE_CONTROL: "no-store", hdrs.REFERRER_POLICY: "no-referrer"}
    return web.Response(status=302, headers=headers)
