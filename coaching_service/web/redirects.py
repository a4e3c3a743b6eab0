"""Leading a visitor on: to the page an answer names, or to the sign-in and back."""

from __future__ import annotations

from urllib.parse import urlencode, urlsplit

from aiohttp import web

from coaching_service.web.browser_sessions import BrowserSession, local
from coaching_service.web.pages import Redirect


def redirect_to_sign_in(request: web.Request, browser_session: BrowserSession) -> web.Response:
    """Leads to the sign-in page, and from there back to the page asked for, or to the one a form was sent from."""
    asked = request.method in ("GET", "HEAD")
    stands_here = asked or request.path.startswith("/oauth/")  # a consent is sent to the address of its question
    came_from = urlsplit(request.headers.get("Referer", ""))
    back = came_from._replace(scheme="", netloc="").geturl() if came_from.netloc == request.host else ""
    target = local((request.path_qs if stands_here else back).replace("\\", "%5C"), "")
    response = see_other("/app/sign-in" + (f"?{urlencode({'next': target})}" if target not in ("", "/app") else ""))
    browser_session.set_cookies(response)
    if not asked:
        browser_session.set_notice(
            response, "Your session has ended, so nothing was changed. Sign in and send it once more."
        )
    return response


def redirect(browser_session: BrowserSession, answer: Redirect) -> web.Response:
    """Leads to where an answer says, with its notice and what it does to the session."""
    response = see_other(answer.location)
    browser_session.set_cookies(response, session=answer.session_token, ends=answer.ends_session)
    if answer.notice:
        browser_session.set_notice(response, answer.notice)
    return response


def see_other(to: str) -> web.Response:
    """Leads to an address of ours."""
    # Not web.HTTPSeeOther, which would spell the address anew.
    return web.Response(
        status=303, headers={"Location": to, "Cache-Control": "no-store", "Referrer-Policy": "same-origin"}
    )
