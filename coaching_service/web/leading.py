"""Leading a visitor on: to the page an answer names, or to the sign-in and back."""

from __future__ import annotations

from urllib.parse import urlencode, urlsplit

from aiohttp import web

from coaching_service.web.pages import Go
from coaching_service.web.visits import Visit, local


def sign_in_first(request: web.Request, visit: Visit) -> web.Response:
    """Leads to the sign-in page, and from there back to the page asked for, or to the one a form was sent from."""
    asked = request.method in ("GET", "HEAD")
    stands_here = asked or request.path.startswith("/oauth/")  # a consent is sent to the address of its question
    came_from = urlsplit(request.headers.get("Referer", ""))
    back = came_from._replace(scheme="", netloc="").geturl() if came_from.netloc == request.host else ""
    target = local((request.path_qs if stands_here else back).replace("\\", "%5C"), "")
    response = led("/app/sign-in" + (f"?{urlencode({'next': target})}" if target not in ("", "/app") else ""))
    visit.dress(response)
    if not asked:
        visit.leave_notice(response, "Your session has ended, so nothing was changed. Sign in and send it once more.")
    return response


def go(visit: Visit, answer: Go) -> web.Response:
    """Leads to where an answer says, with its notice and what it does to the session."""
    response = led(answer.to)
    visit.dress(response, session=answer.session, ends=answer.ends)
    if answer.notice:
        visit.leave_notice(response, answer.notice)
    return response


def led(to: str) -> web.Response:
    """Leads to an address of ours."""
    # Not web.HTTPSeeOther, which would spell the address anew.
    return web.Response(
        status=303, headers={"Location": to, "Cache-Control": "no-store", "Referrer-Policy": "same-origin"}
    )
