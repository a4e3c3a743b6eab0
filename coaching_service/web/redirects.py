"""Redirect responses, with the cookies of the browser session."""

from __future__ import annotations

from urllib.parse import urlencode

from aiohttp import web

from coaching_service.core.ids import ObjectId
from coaching_service.web.browser_sessions import BrowserSession, local_path, split_address
from coaching_service.web.pages import Redirect

_SESSION_ENDED = "Your session has ended, so nothing was changed. Sign in and try again."


def redirect_to_sign_in(request: web.Request, browser_session: BrowserSession) -> web.Response:
    """Redirect to the sign-in page, which returns to the page requested, or to the one a form was sent from."""
    is_read = request.method in ("GET", "HEAD")
    if is_read or request.path.startswith("/oauth/"):  # the consent form is sent to the URL of its page
        target = request.path_qs
    else:
        referrer = split_address(request.headers.get("Referer", ""))
        target = referrer._replace(scheme="", netloc="").geturl() if referrer.netloc == request.host else ""
    target = local_path(target.replace("\\", "%5C"), "")
    response = see_other("/app/sign-in" + (f"?{urlencode({'next': target})}" if target not in ("", "/app") else ""))
    browser_session.set_cookies(response)
    if not is_read:
        browser_session.set_notice(response, _SESSION_ENDED)
    return response


def redirect_response(
    browser_session: BrowserSession, redirect: Redirect, change_id: ObjectId | None = None
) -> web.Response:
    """Return the response of a page's Redirect, with its notice and session cookies; `change_id`: what was changed."""
    response = see_other(redirect.location)
    browser_session.set_cookies(
        response, session=redirect.session, ends_session=redirect.ends_session, device_token=redirect.device_token
    )
    if redirect.notice:
        browser_session.set_notice(response, redirect.notice, change_id)
    return response


def see_other(location: str) -> web.Response:
    """Return a 303 to `location`, which is sent unchanged: `web.HTTPSeeOther` would encode its query again."""
    return web.Response(
        status=303, headers={"Location": location, "Cache-Control": "no-store", "Referrer-Policy": "same-origin"}
    )
