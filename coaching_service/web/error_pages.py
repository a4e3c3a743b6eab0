"""What users read about errors: error pages, rejected forms with what was submitted, and both as JSON for scripts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NotRequired, TypedDict

import structlog
from aiohttp import web
from marshmallow import ValidationError

from coaching_service.core import errors as core_errors
from coaching_service.core.database.connection import as_service_error
from coaching_service.core.http.middleware import REQUEST_ID, reported
from coaching_service.core.http.responses import to_json
from coaching_service.core.ids import ObjectId
from coaching_service.core.rate_limits import RateLimitExceeded
from coaching_service.web import forms, rendering
from coaching_service.web.browser_sessions import BrowserSession, CrossSiteForm, StaleForm
from coaching_service.web.formatting import permission_label, quantity
from coaching_service.web.forms import FormData, FormState, field_names, rejected_form
from coaching_service.web.pages import Page, Redirect

log = structlog.get_logger("coaching_service.web")

_BY_TYPE: dict[type[core_errors.ServiceError], tuple[str, str]] = {
    StaleForm: ("Please try again", "Open the page again and submit the form from there. Cookies must be enabled."),
    CrossSiteForm: (
        "Request blocked",
        "The form was sent from another site. If it was you, open the page here and submit the form from there.",
    ),
    core_errors.CompanySuspended: (
        "Suspended",
        "Nobody of your company can use the service for now. All data is still there.",
    ),
    core_errors.LoadsConverting: (
        "Loads are being converted",
        "Your company changes the unit of its loads. Usually this takes less than a minute; then reload the page.",
    ),
    core_errors.OutcomeUnknown: (
        "It may have been saved",
        "The connection to the database was lost meanwhile. Look before you try again: go back and reload the page.",
    ),
    RateLimitExceeded: ("Too many requests", "Wait a moment, then reload the page. Nothing was changed."),
}
_BY_STATUS = {
    400: ("Invalid request", "Go back and try again."),
    401: ("Sign in", "Your session has ended."),
    403: ("Access denied", "Ask the owner of your company for the permission."),
    404: ("Page not found", "It may have been deleted, or the address is wrong."),
    405: ("Action not available", "Go back and use the buttons on the page."),
    408: ("Request timed out", "Check your connection and try again."),
    409: ("Changed by another user", "Go back, reload the page and repeat your change."),
    413: ("Too much data", "Send less at a time."),
    429: ("Too many attempts", "Wait a moment before you try again."),
    503: ("Temporarily unavailable", "Try again shortly."),
    507: ("No space left", "Nothing was changed. Pages can still be read."),
}
# What clients read instead: they have no permissions, and their support is the coach.
_FOR_CLIENTS = {
    403: ("Access denied", "Go back. If you need this, ask your coach."),
    404: ("Page not found", "Your coach may have moved or removed it, or the address is wrong."),
    409: ("Changed meanwhile", "Go back, reload the page and repeat your change."),
    500: ("Something went wrong", "This is our fault. Try again; if it happens again, tell your coach."),
}
_DEFAULT = ("Something went wrong", "This is our fault. Try again; if the problem persists, contact support.")
_WITHOUT_MESSAGE = (404, 405, 500)


def to_service_error(request: web.Request, error: Exception) -> core_errors.ServiceError:
    """Return the error to show for an exception; an unexpected one is logged and shown as InternalError.

    A documented 500 of REST is a bad request in the web application.
    """
    if isinstance(error, core_errors.LegacyFailure):
        return core_errors.BadRequest(error.message)
    service_error = error if isinstance(error, core_errors.ServiceError) else as_service_error(error)
    if service_error is None:
        log.error("unexpected_error", request_id=request[REQUEST_ID], route=request.path, exc_info=error)
        return core_errors.InternalError()
    service_error = reported(request, service_error)
    return (
        core_errors.OutcomeUnknown() if isinstance(service_error, core_errors.OutcomeUnknown) else service_error
    )  # users see no keys


def render_error(
    request: web.Request, browser_session: BrowserSession, error: core_errors.ServiceError
) -> web.Response:
    """Render the page of an error."""
    title, advice = _title_and_advice(error, rendering.is_for_client(request, browser_session.principal))
    messages = [error.message] if isinstance(error.message, str) else error.message
    if permission := error.details.get("permission"):
        messages = [f"The permission “{permission_label(permission)}” is missing"]
    if error.status in _WITHOUT_MESSAGE or isinstance(error, core_errors.OutcomeUnknown):
        messages = []
    variables = {
        "title": title,
        "advice": advice,
        "messages": messages,
        "status": error.status,
    }
    response = rendering.render_page(request, browser_session, "error.html", variables, status=error.status)
    response.headers.update(error.headers)
    return response


def _title_and_advice(error: core_errors.ServiceError, is_for_client: bool) -> tuple[str, str]:
    if type(error) in _BY_TYPE:
        return _BY_TYPE[type(error)]
    if is_for_client and error.status in _FOR_CLIENTS:
        return _FOR_CLIENTS[error.status]
    return _BY_STATUS.get(error.status, _DEFAULT)


# Errors shown in the form; all others have a page of their own. NotFound: a document chosen in the form was deleted.
FORM_ERRORS = (
    core_errors.BadRequest,
    core_errors.Conflict,
    core_errors.LegacyFailure,
    core_errors.NotFound,
    core_errors.SignInRejected,
    core_errors.TooManyRequests,
)
_MESSAGES_BY_CODE = {
    "CHALLENGE_REJECTED": "That took too long. Sign in again.",
    "SECOND_FACTOR_REJECTED": "The code is wrong, or has been used. Wait for the next one.",
    "PASSKEY_REJECTED": "This passkey is not known here. It may have been removed.",
    "PASSKEYS_UNAVAILABLE": "Passkeys cannot be used at this address.",
    "TOO_MANY_PASSKEYS": "You have 20 passkeys. Remove one first.",
    "PASSKEY_EXISTS": "This passkey was added already.",
    "SECOND_FACTOR_NOT_BEGUN": "There is nothing to confirm. To get new recovery codes, set it up again.",
    "SECOND_FACTOR_MISSING": "Set up two-step sign-in for yourself first, under Security. Nothing was changed.",
    "PROPOSAL_CLOSED": "This was decided already, or has expired. Nothing was changed now.",
    "PROPOSAL_STALE": "The records have changed since. Ask your assistant to propose it again.",
    "ITEM_MOVED": "This item is no longer in the workout: it was moved or removed. Nothing was changed.",
    "ITEM_GONE": "Your coach has removed this from the workout, or moved it to another one, so nothing was saved.",
    "SWAPPED_SETS_LOGGED": "You have logged sets of the other exercise. Take them back, then change the exercise.",
}
_WORKOUT_CODES = frozenset({"WORKOUT_BLOCK_NOT_FOUND", "WORKOUT_ITEM_NOT_FOUND"})


def reject_form_of(
    page: Page, data: FormData, error: ValidationError | core_errors.ServiceError
) -> tuple[FormState, int]:
    """Return the state of the rejected form `page`, and the status of the response."""
    known_fields = field_names(page.schema) | (set(page.upload.file_fields) if page.upload else set())
    return reject(page.form_name, page.path, data, error, known_fields, forms.file_messages(page.upload))


def reject(
    name: str,
    path: str,
    data: FormData,
    error: ValidationError | core_errors.ServiceError,
    known_fields: set[str],
    field_messages: Mapping[str, str] | None = None,
) -> tuple[FormState, int]:
    """Return the state of a rejected form with this name that was sent to `path`, and the status of the response.

    `known_fields`: the names of its fields, without the names of rows. `field_messages`: messages by code that apply to
    this form only.
    """
    if isinstance(error, ValidationError):
        return rejected_form(name, data, error, known_fields, field_messages), core_errors.BadRequest.status
    if message := _form_message(path, error):
        return FormState(name, data, form_errors=[message]), error.status
    return rejected_form(name, data, error, known_fields, field_messages), error.status


def _form_message(path: str, error: core_errors.ServiceError) -> str | None:
    """Return the message of an error in a form; None if its own message serves."""
    if isinstance(error, core_errors.NotFound):
        return describe_missing(path, error)
    if isinstance(error, core_errors.TooManyRequests):
        minutes = -(-int(error.headers.get("Retry-After", 60)) // 60)
        return f"Too many attempts. Try again in {quantity(minutes, 'minute')}."
    return _MESSAGES_BY_CODE.get(error.code or "")


def describe_missing(path: str, error: core_errors.NotFound) -> str:
    """Return the message about a missing document; one that a client cannot see may be on a day hidden by the coach."""
    if not path.startswith("/train/"):
        return f"{error.message}: it has been deleted. Nothing was changed, and your entries are still here."
    subject = "This workout" if error.code in _WORKOUT_CODES else "This"
    return f"{subject} is no longer available. Ask your coach."


# --- Forms sent by a script of a page, with `Accept: application/json`: the same forms with the outcome as JSON -------
# A form that succeeded answers `{location, notice, data}`; any other `{code, message, errors}` with the status of the
# error, where `errors` has the message of each invalid field. A stale form of the same site also answers `csrf` and
# `user`, the present form token and the identifier of the present user, so that the script can send the form again.


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
    browser_session: BrowserSession,
    error: core_errors.ServiceError | ValidationError,
    form_state: FormState,
    status: int,
) -> web.Response:
    """Return the messages of a form that was rejected, with the `status` of its page."""
    code = error.code if isinstance(error, core_errors.ServiceError) else "INVALID_FIELDS"
    messages = [*form_state.form_errors, *form_state.errors.values()]
    response = _respond(status, {"code": code, "message": " ".join(messages), "errors": form_state.errors})
    if isinstance(error, core_errors.ServiceError):
        response.headers.update(error.headers)
    browser_session.set_cookies(response)
    return response


def error_response(
    request: web.Request, browser_session: BrowserSession, error: core_errors.ServiceError
) -> web.Response:
    """Return an error that concerns the whole request."""
    messages = [error.message] if isinstance(error.message, str) else error.message
    if isinstance(error, core_errors.NotFound) and request.path.startswith("/train/"):
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
