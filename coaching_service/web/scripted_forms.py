"""Forms sent by a script of a page, with `Accept: application/json`: the same forms with the outcome as JSON.

A form that succeeded answers `{location, notice, data}`; any other `{code, message, errors}` with the status of the
error, where `errors` has the message of each invalid field. A stale form of the same site also answers `csrf` and
`user`, the present form token and the identifier of the present user, so that the script can send the form again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NotRequired, TypedDict

from aiohttp import web
from marshmallow import ValidationError

from coaching_service.core.errors import NotFound, ServiceError
from coaching_service.core.http.responses import to_json
from coaching_service.core.ids import ObjectId
from coaching_service.web.browser_sessions import BrowserSession, StaleForm
from coaching_service.web.error_pages import describe_missing
from coaching_service.web.forms import FormState
from coaching_service.web.pages import Redirect

_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class _Outcome(TypedDict):
    location: str
    notice: str
    data: Mapping[str, object] | None


class _Rejection(TypedDict):
    code: str | None
    message: str
    errors: dict[str, str]
    csrf: NotRequired[str]
    user: NotRequired[ObjectId | None]


def is_scripted(request: web.Request) -> bool:
    """Return whether a script sent the form and expects JSON."""
    return request.method == "POST" and request.headers.get("Accept") == "application/json"


def success_response(browser_session: BrowserSession, redirect: Redirect) -> web.Response:
    """Return the outcome of a form that would redirect."""
    response = _respond(200, {"location": redirect.location, "notice": redirect.notice, "data": redirect.data})
    browser_session.set_cookies(
        response, session=redirect.session, ends_session=redirect.ends_session, device_token=redirect.device_token
    )
    if redirect.ends_session:
        browser_session.set_notice(response, redirect.notice)  # the script leaves, and cannot store it
    return response


def rejection_response(
    browser_session: BrowserSession, error: ServiceError | ValidationError, form_state: FormState, status: int
) -> web.Response:
    """Return the messages of a form that was rejected, with the `status` of its page."""
    code = error.code if isinstance(error, ServiceError) else "INVALID_FIELDS"
    messages = [*form_state.form_errors, *form_state.errors.values()]
    response = _respond(status, {"code": code, "message": " ".join(messages), "errors": form_state.errors})
    if isinstance(error, ServiceError):
        response.headers.update(error.headers)
    browser_session.set_cookies(response)
    return response


def error_response(request: web.Request, browser_session: BrowserSession, error: ServiceError) -> web.Response:
    """Return an error that concerns the whole request."""
    messages = [error.message] if isinstance(error.message, str) else error.message
    if isinstance(error, NotFound) and request.path.startswith("/train/"):
        messages = [describe_missing(request.path, error)]
    body: _Rejection = {"code": error.code, "message": " ".join(messages), "errors": {}}
    if isinstance(error, StaleForm) and browser_session.is_same_site(request) is True:
        user = browser_session.principal
        body |= {"csrf": browser_session.csrf_token, "user": user.id if user is not None else None}
    response = _respond(error.status, body)
    response.headers.update(error.headers)
    browser_session.set_cookies(response)
    return response


def _respond(status: int, body: _Outcome | _Rejection) -> web.Response:
    return web.Response(status=status, body=to_json(body), content_type="application/json", headers=_HEADERS)
