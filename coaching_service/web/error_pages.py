"""Error pages: what happened and what the user can do next."""

from __future__ import annotations

import structlog
from aiohttp import web

from coaching_service.core.database.connection import as_service_error
from coaching_service.core.errors import (
    BadRequest,
    CompanySuspended,
    InternalError,
    LegacyFailure,
    LoadsConverting,
    OutcomeUnknown,
    ServiceError,
)
from coaching_service.core.http.middleware import REQUEST_ID, reported
from coaching_service.core.token_buckets import RateLimitExceeded
from coaching_service.web import rendering
from coaching_service.web.browser_sessions import BrowserSession, CrossSiteForm, StaleForm
from coaching_service.web.formatting import permission_label

log = structlog.get_logger("coaching_service.web")

_BY_TYPE: dict[type[ServiceError], tuple[str, str]] = {
    StaleForm: ("Please try again", "Open the page again and submit the form from there. Cookies must be enabled."),
    CrossSiteForm: (
        "Request blocked",
        "The form was sent from another site. If it was you, open the page here and submit the form from there.",
    ),
    CompanySuspended: (
        "Suspended",
        "Nobody of your company can use the service for now. All data is still there.",
    ),
    LoadsConverting: (
        "Loads are being converted",
        "Your company changes the unit of its loads. Usually this takes less than a minute; then reload the page.",
    ),
    OutcomeUnknown: (
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


def to_service_error(request: web.Request, error: Exception) -> ServiceError:
    """Return the error to show for an exception; an unexpected one is logged and shown as InternalError.

    A documented 500 of REST is a bad request in the web application.
    """
    if isinstance(error, LegacyFailure):
        return BadRequest(error.message)
    service_error = error if isinstance(error, ServiceError) else as_service_error(error)
    if service_error is None:
        log.error("unexpected_error", request_id=request[REQUEST_ID], route=request.path, exc_info=error)
        return InternalError()
    service_error = reported(request, service_error)
    return OutcomeUnknown() if isinstance(service_error, OutcomeUnknown) else service_error  # users see no keys


def render_error(request: web.Request, browser_session: BrowserSession, error: ServiceError) -> web.Response:
    """Render the page of an error."""
    title, advice = _title_and_advice(error, rendering.is_for_client(request, browser_session.principal))
    messages = [error.message] if isinstance(error.message, str) else error.message
    if permission := error.details.get("permission"):
        messages = [f"The permission “{permission_label(permission)}” is missing"]
    if error.status in _WITHOUT_MESSAGE or isinstance(error, OutcomeUnknown):
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


def _title_and_advice(error: ServiceError, is_for_client: bool) -> tuple[str, str]:
    if type(error) in _BY_TYPE:
        return _BY_TYPE[type(error)]
    if is_for_client and error.status in _FOR_CLIENTS:
        return _FOR_CLIENTS[error.status]
    return _BY_STATUS.get(error.status, _DEFAULT)
